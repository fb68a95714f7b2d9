//! The order to run an auxiliary command: deadlines, environment variables and standard input in one record, at most
//! [`AUXILIARY_LONGEST`] bytes long. Both ends are the same program image, so there is no version and no byte order.
//! Decoding arbitrary bytes returns a possible value or `None`.

use std::ffi::CString;

use super::protocol::{Reader, Writer};
use crate::core::guard_messages::{Deadlines, RunId};

/// The environment and the standard input of one run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Briefing {
    /// `NAME=value`; each replaces an inherited variable of that name.
    pub variables: Vec<CString>,
    /// Empty: it reads nothing.
    pub stdin: Vec<u8>,
}

/// The order to run an auxiliary command once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuxiliaryCommand {
    pub run: RunId,
    pub deadlines: Deadlines,
    pub briefing: Briefing,
}

/// The longest record, in bytes. The lists of holders and names in it are limited to far less.
pub const AUXILIARY_LONGEST: usize = 16 * 1024;
/// Tag, run, two instants, length of the variables; then the variables, each with its NUL, and the standard input.
const HEAD: usize = 1 + 8 + 2 * 8 + 4;
/// Not used by any [`crate::core::guard_messages::Order`].
const TAG: u8 = 0x45;

/// `None`: the record would be too long.
pub fn encode_auxiliary(command: &AuxiliaryCommand) -> Option<Vec<u8>> {
    let variables: Vec<u8> = command
        .briefing
        .variables
        .iter()
        .flat_map(|variable| variable.as_c_str().to_bytes_with_nul())
        .copied()
        .collect();
    let mut head = Writer::<HEAD>::new();
    let length = u32::try_from(variables.len()).ok()?;
    head.tag(TAG).run(command.run).deadlines(command.deadlines).put(length.to_ne_bytes());
    let record = [&head.bytes[..], &variables, &command.briefing.stdin].concat();
    (record.len() <= AUXILIARY_LONGEST).then_some(record)
}

pub fn decode_auxiliary(record: &[u8]) -> Option<AuxiliaryCommand> {
    let (head, body) = record.split_at_checked(HEAD).filter(|_| record.len() <= AUXILIARY_LONGEST)?;
    let mut head = Reader::of::<HEAD>(head)?;
    (head.byte()? == TAG).then_some(())?;
    let (run, deadlines) = (head.run()?, head.deadlines()?);
    let length = usize::try_from(u32::from_ne_bytes(head.take()?)).ok()?;
    let (variables, stdin) = body.split_at_checked(length)?;
    let variables = variables
        .split_inclusive(|&byte| byte == 0)
        .map(|variable| CString::from_vec_with_nul(variable.to_vec()).ok())
        .collect::<Option<Vec<_>>>()?;
    Some(AuxiliaryCommand { run, deadlines, briefing: Briefing { variables, stdin: stdin.to_vec() } })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::time::Timestamp;
    use crate::guard::protocol::decode_order;

    fn commands() -> impl Strategy<Value = AuxiliaryCommand> {
        let variable = "[A-Z_]{1,20}=[^\0]{0,40}".prop_map(|text| CString::new(text).unwrap());
        let variables = proptest::collection::vec(variable, 0..12);
        let stdin = proptest::collection::vec(any::<u8>(), 0..600);
        (any::<u64>(), any::<u64>(), any::<u64>(), variables, stdin).prop_map(|(run, stop, kill, variables, stdin)| {
            let deadlines = Deadlines { stop_at: Timestamp::from_nanos(stop), kill_at: Timestamp::from_nanos(kill) };
            AuxiliaryCommand { run: RunId(run), deadlines, briefing: Briefing { variables, stdin } }
        })
    }

    proptest! {
        #[test]
        fn a_briefing_arrives_as_it_was_sent_and_is_no_other_order(command in commands()) {
            let record = encode_auxiliary(&command).unwrap();
            prop_assert_eq!(decode_order(&record), None);
            prop_assert_eq!(decode_auxiliary(&record), Some(command));
        }

        #[test]
        fn a_spoilt_briefing_is_refused_or_could_have_been_sent(
            command in commands(), at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()
        ) {
            let mut record = encode_auxiliary(&command).unwrap();
            let at = at.index(record.len());
            record[at] = byte;
            record.truncate(cut.index(record.len()) + 1);
            if let Some(command) = decode_auxiliary(&record) {
                prop_assert_eq!(encode_auxiliary(&command), Some(record));
            }
        }

        #[test]
        fn garbage_is_no_auxiliary_command_or_could_have_been_sent(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
            let record = [vec![TAG], noise].concat();
            if let Some(command) = decode_auxiliary(&record) {
                prop_assert_eq!(encode_auxiliary(&command), Some(record));
            }
        }
    }

    #[test]
    fn what_is_too_long_is_not_sent() {
        let briefing = Briefing { variables: vec![], stdin: vec![0; AUXILIARY_LONGEST] };
        let deadlines = Deadlines { stop_at: Timestamp::ZERO, kill_at: Timestamp::ZERO };
        let command = AuxiliaryCommand { run: RunId(1), deadlines, briefing };
        assert_eq!(encode_auxiliary(&command), None);
    }
}
