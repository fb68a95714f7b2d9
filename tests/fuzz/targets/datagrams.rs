//! What anybody may send to a host that vouches: with a right code behind it, and with whatever came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use zk_leader_run::vouching::message::{LENGTH, Message, read};
use zk_leader_run::zookeeper::schema::vouching::Secret;

const SECRET: Secret = Secret([7; Secret::LENGTH]);

fuzz_target!(|data: &[u8]| {
    let election = data.get(12..20).map_or(0, |bytes| i64::from_be_bytes(bytes.try_into().unwrap()));
    if let Ok(message) = Message::parse(data, election, &SECRET) {
        assert_eq!(data.len(), LENGTH);
        assert_eq!(message.write(election, &SECRET), data, "each message has one form");
    }
    if let Some((message, election)) = data.get(..52).and_then(read) {
        let datagram = message.write(election, &SECRET);
        assert_eq!(datagram.get(..52), data.get(..52), "each message has one form");
        assert_eq!(Message::parse(&datagram, election, &SECRET), Ok(message));
        assert!(Message::parse(&datagram, election.wrapping_add(1), &SECRET).is_err());
    }
});
