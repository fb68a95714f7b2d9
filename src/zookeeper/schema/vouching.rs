//! What hosts that vouch for one another learn from `ZooKeeper`, so that they can talk without it.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The name of the znode below the base that holds the secret.
pub const VOUCH: &str = "vouch";

/// Several times as many as two rosters and a line name.
const MOST: usize = 64;

/// The key of all messages of one election: `<base>/vouch`, for those entries of `--acl` that may write.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub [u8; Self::LENGTH]);

impl Secret {
    pub const LENGTH: usize = 32;

    /// `None`: not of this length.
    pub fn read(data: &[u8]) -> Option<Self> {
        data.try_into().ok().map(Self)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a secret")
    }
}

/// As records, terms and members name an instance: 16 hexadecimal digits.
pub(crate) fn instance_text(instance: u64) -> String {
    format!("{instance:016x}")
}

/// `None`: it is not of this form.
pub(crate) fn parse_instance(text: &str) -> Option<u64> {
    // The number alone may have a sign.
    let is_hex = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

/// A process that can be asked directly.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Neighbour {
    pub instance: u64,
    pub id: String,
    pub address: SocketAddr,
}

/// What is known, from the newest session on. It outlives the session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Neighbourhood {
    /// The czxid of the base, which tells this election from another of the same name.
    pub election: Option<i64>,
    /// `None`: not read yet, or there is none.
    pub secret: Option<Secret>,
    /// Of members in line and of rosters, each instance once.
    pub neighbours: Vec<Neighbour>,
}

impl Neighbourhood {
    pub fn of(&self, instance: u64) -> Option<&Neighbour> {
        self.neighbours.iter().find(|neighbour| neighbour.instance == instance)
    }

    /// These were just seen. Those that were seen longest ago are forgotten first.
    pub(crate) fn note(&mut self, seen: impl Iterator<Item = Neighbour>) {
        for neighbour in seen {
            self.neighbours.retain(|known| known.instance != neighbour.instance);
            self.neighbours.push(neighbour);
        }
        let too_many = self.neighbours.len().saturating_sub(MOST);
        self.neighbours.drain(..too_many);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(instance: u64, port: u16) -> Neighbour {
        Neighbour { instance, id: "a".into(), address: SocketAddr::from(([10, 0, 0, 1], port)) }
    }

    #[test]
    fn each_instance_is_known_once_by_what_was_seen_last_and_those_of_long_ago_are_forgotten() {
        let mut known = Neighbourhood::default();
        known.note([host(7, 1), host(8, 1), host(7, 2)].into_iter());
        assert_eq!((known.neighbours.len(), known.of(7).map(|host| host.address.port())), (2, Some(2)));
        known.note((100..).map(|instance| host(instance, 1)).take(MOST));
        assert_eq!((known.neighbours.len(), known.of(8)), (MOST, None));
        known.note([host(100, 1), host(7, 3)].into_iter());
        assert!(known.of(100).is_some(), "it was just seen again");
        assert_eq!((known.neighbours.len(), known.of(101)), (MOST, None));
    }

    #[test]
    fn a_secret_has_its_length_and_is_not_printed() {
        assert_eq!((Secret::read(&[7; 31]), Secret::read(&[7; 33])), (None, None));
        assert_eq!(format!("{:?}", Secret::read(&[7; 32])), "Some(a secret)");
    }
}
