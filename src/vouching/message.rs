//! One datagram: 84 bytes, big-endian, authentic by HMAC-SHA256 (RFC 2104) over all that is before it.
//!
//! ```text
//!  0 "ZLV1"    4 kind u8   5 code u8   6 zero u16   8 lease_ms u32   12 election u64   20 token i64
//! 28 leader u64            36 member u64            44 seq u64       52 HMAC-SHA256, 32 bytes
//! ```
//!
//! Whatever is not used by a kind is zero, so that each message has one form.

use std::time::Duration;

use hmac::digest::Key;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::dropped::Reason;
use crate::zookeeper::schema::vouching::Secret;

/// The length of every datagram.
pub const LENGTH: usize = 84;

const MAGIC: &[u8; 4] = b"ZLV1";
const AUTHENTICATED: usize = 52;

const ASK: u8 = 1;
const ANSWER: u8 = 2;
const GONE: u8 = 3;
const HEARD: u8 = 4;

/// What is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Said {
    /// The leader asks for a promise. In whole milliseconds; rounded up where it is written, at most `u32::MAX` of them.
    Ask { lease: Duration },
    /// The member answers that.
    Answer { promises: bool },
    /// The member takes nothing over any more.
    Gone,
    /// The leader confirms that.
    Heard,
}

/// One message between a leader and a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    pub said: Said,
    /// Of the leader's term.
    pub token: i64,
    /// The instance that asks.
    pub leader: u64,
    /// The instance that is asked.
    pub member: u64,
    /// Of the question.
    pub seq: u64,
}

impl Message {
    /// The datagram, for the election whose base was created by this transaction.
    pub fn write(&self, election: i64, secret: &Secret) -> Vec<u8> {
        let (kind, code, lease) = match self.said {
            Said::Ask { lease } => (ASK, 0, lease),
            Said::Answer { promises } => (ANSWER, u8::from(promises), Duration::ZERO),
            Said::Gone => (GONE, 0, Duration::ZERO),
            Said::Heard => (HEARD, 0, Duration::ZERO),
        };
        let mut datagram = Vec::with_capacity(LENGTH);
        datagram.extend_from_slice(MAGIC);
        datagram.extend_from_slice(&[kind, code, 0, 0]);
        datagram.extend_from_slice(&millis_rounded_up(lease).to_be_bytes());
        datagram.extend_from_slice(&election.to_be_bytes());
        datagram.extend_from_slice(&self.token.to_be_bytes());
        for number in [self.leader, self.member, self.seq] {
            datagram.extend_from_slice(&number.to_be_bytes());
        }
        let code = keyed(secret).chain_update(&datagram).finalize();
        datagram.extend_from_slice(&code.into_bytes());
        datagram
    }

    /// What a datagram says, if it is authentic.
    ///
    /// # Errors
    /// Why it is to be dropped.
    pub fn parse(datagram: &[u8], election: i64, secret: &Secret) -> Result<Self, Reason> {
        if datagram.len() != LENGTH {
            return Err(Reason::Length);
        }
        let (text, code) = datagram.split_at_checked(AUTHENTICATED).ok_or(Reason::Length)?;
        let (message, of) = read(text).ok_or(Reason::Format)?;
        if of != election {
            return Err(Reason::Election);
        }
        // Compares in constant time.
        keyed(secret).chain_update(text).verify_slice(code).map_err(|_| Reason::Secret)?;
        Ok(message)
    }
}

/// What the bytes before the code say, and of which election. Nobody vouches for that yet: ask [`Message::parse`].
pub fn read(mut text: &[u8]) -> Option<(Message, i64)> {
    let rest = &mut text;
    if next::<4>(rest)? != *MAGIC {
        return None;
    }
    let head = next::<4>(rest)?;
    let lease = Duration::from_millis(u32::from_be_bytes(next(rest)?).into());
    let said = match head {
        [ASK, 0, 0, 0] => Said::Ask { lease },
        _ if !lease.is_zero() => return None,
        [ANSWER, code @ (0 | 1), 0, 0] => Said::Answer { promises: code == 1 },
        [GONE, 0, 0, 0] => Said::Gone,
        [HEARD, 0, 0, 0] => Said::Heard,
        _ => return None,
    };
    let election = i64::from_be_bytes(next(rest)?);
    let token = i64::from_be_bytes(next(rest)?);
    let mut number = || next(rest).map(u64::from_be_bytes);
    let message = Message { said, token, leader: number()?, member: number()?, seq: number()? };
    rest.is_empty().then_some((message, election))
}

fn next<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

/// A key that is shorter than a block is filled up with zeros.
fn keyed(secret: &Secret) -> Hmac<Sha256> {
    let mut key = Key::<Hmac<Sha256>>::default();
    key.iter_mut().zip(secret.0).for_each(|(place, byte)| *place = byte);
    Hmac::new(&key)
}

/// A promise may be too long, and never too short.
fn millis_rounded_up(length: Duration) -> u32 {
    u32::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELECTION: i64 = 0x0000_0001_0000_0002;

    /// Made with `hmac` and `struct` of Python, with the bytes 0 to 31 as the secret.
    const ASKS: &str = "5a4c56310100000000003a9800000001000000020000000300000007112233445566778899aabbccddeeff00000000000000002a\
                        ed18b83c3d856d4d8313649860c5f1fc9d0131bf9b43d4b4965bc8d2fc0b2b1e";
    const PROMISES: &str = "5a4c5631020100000000000000000001000000020000000300000007112233445566778899aabbccddeeff00000000000000002a\
                            a4bc967a3870738740dd987dd14e9c2e657d00716a8993b6a4652a3b3fcdc4fd";

    fn secret() -> Secret {
        Secret(std::array::from_fn(|at| u8::try_from(at).unwrap()))
    }

    fn message(said: Said) -> Message {
        Message {
            said,
            token: 0x0000_0003_0000_0007,
            leader: 0x1122_3344_5566_7788,
            member: 0x99aa_bbcc_ddee_ff00,
            seq: 42,
        }
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn every() -> [Message; 5] {
        let lease = Duration::from_secs(15);
        let [yes, no] = [true, false].map(|promises| Said::Answer { promises });
        [Said::Ask { lease }, yes, no, Said::Gone, Said::Heard].map(message)
    }

    fn parse(datagram: &[u8]) -> Result<Message, Reason> {
        Message::parse(datagram, ELECTION, &secret())
    }

    /// These bytes in front, and a right code behind them.
    fn authentic(change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut datagram = message(Said::Gone).write(ELECTION, &secret());
        datagram.truncate(AUTHENTICATED);
        change(&mut datagram);
        let code = keyed(&secret()).chain_update(&datagram).finalize().into_bytes();
        datagram.extend_from_slice(&code);
        datagram
    }

    #[test]
    fn the_bytes_are_those_that_another_program_makes() {
        let [asks, promises, ..] = every();
        assert_eq!(asks.write(ELECTION, &secret()), bytes(ASKS));
        assert_eq!(promises.write(ELECTION, &secret()), bytes(PROMISES));
        assert_eq!((parse(&bytes(ASKS)), parse(&bytes(PROMISES))), (Ok(asks), Ok(promises)));
    }

    #[test]
    fn every_message_is_read_as_it_was_written() {
        for message in every() {
            assert_eq!(parse(&message.write(ELECTION, &secret())), Ok(message));
        }
    }

    #[test]
    fn a_lease_is_rounded_up_to_milliseconds() {
        for (lease, millis) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_millis(7), 7),
            (Duration::MAX, u32::MAX),
        ] {
            assert_eq!(millis_rounded_up(lease), millis, "{lease:?}");
        }
    }

    #[test]
    fn no_bit_may_be_changed() {
        for message in every() {
            let datagram = message.write(ELECTION, &secret());
            for bit in 0..LENGTH * 8 {
                let mut changed = datagram.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(parse(&changed).is_err(), "bit {bit} of {message:?}");
            }
        }
    }

    #[test]
    fn what_is_too_short_or_too_long_is_dropped() {
        let mut datagram = bytes(ASKS);
        for length in 0..LENGTH {
            assert_eq!(parse(&datagram[..length]), Err(Reason::Length));
        }
        datagram.push(0);
        assert_eq!(parse(&datagram), Err(Reason::Length));
    }

    #[test]
    fn what_is_authentic_and_has_no_meaning_is_dropped() {
        assert_eq!(parse(&authentic(|_| ())), Ok(message(Said::Gone)), "otherwise this proves nothing");
        let changes = [(0, b'Y'), (3, b'2'), (4, 0), (4, 5), (4, 255), (5, 1), (6, 1), (7, 1), (8, 1), (11, 1)];
        for (at, value) in changes {
            assert_eq!(parse(&authentic(|text| text[at] = value)), Err(Reason::Format), "byte {at} is {value}");
        }
        let maybe = authentic(|text| text[4..6].copy_from_slice(&[ANSWER, 2]));
        assert_eq!(parse(&maybe), Err(Reason::Format));
    }

    #[test]
    fn other_secrets_and_other_elections_are_told_apart() {
        let datagram = bytes(ASKS);
        let mut other = secret();
        other.0[31] ^= 1;
        assert_eq!(Message::parse(&datagram, ELECTION, &other), Err(Reason::Secret));
        assert_eq!(Message::parse(&datagram, ELECTION + 1, &secret()), Err(Reason::Election));
    }
}
