//! Acknowledged writes that `ZooKeeper` itself has lost: a leader did not have them when it synchronized a server that did.
//! ZOOKEEPER-4643 and ZOOKEEPER-4646 are ways to get there.
//!
//! Never: a judgement of what followed from it.

use super::history::Exchange;
use super::protocol::Outcome;

/// What a leader of `ZooKeeper` writes into its log (`LearnerHandler.syncFollower`).
const LINE: &str = "Synchronizing with Learner sid: ";

/// What a server writes that has applied a write, and has other data than the one that sent it (once in its life).
const MISMATCH: &str = "First digest mismatch on txn";

/// The servers whose data were not those of their leader: what they answer may be what nobody else has, also candidates of
/// sessions that are over.
pub fn differing(logs: &[String]) -> Vec<String> {
    let differs = |(_, log): &(usize, &String)| log.contains(MISMATCH);
    logs.iter().enumerate().filter(differs).map(|(server, _)| format!("z{server}")).collect()
}

/// From the logs of the servers, one line for each synchronization that cost such writes.
pub fn losses(logs: &[String], exchanges: &[Exchange]) -> Vec<String> {
    let acknowledged: Vec<i64> = exchanges.iter().filter_map(acknowledged).collect();
    let lines = logs.iter().flat_map(|log| log.lines());
    let synchronized = lines.filter_map(|line| line.split_once(LINE)).filter_map(|(_, rest)| {
        let number = rest.split(' ').next()?;
        Some((number, zxid(rest, "lastProcessedZxid=")?, zxid(rest, "peerLastZxid=")?))
    });
    let costly = synchronized.filter_map(|(server, leaders, servers)| {
        let lost = acknowledged.iter().filter(|zxid| leaders < **zxid && **zxid <= servers).count();
        (lost > 0).then(|| format!("z{server} had {servers:#x}, its leader {leaders:#x}: {lost} acknowledged writes"))
    });
    costly.collect()
}

/// The zxid of a write that was done, and said to be.
fn acknowledged(exchange: &Exchange) -> Option<i64> {
    let reply = exchange.reply.as_ref()?;
    let is_done = !reply.outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)));
    (exchange.request.is_multi && is_done).then_some(reply.zxid)
}

fn zxid(text: &str, name: &str) -> Option<i64> {
    let (_, rest) = text.split_once(name)?;
    let digits = rest.split(' ').next()?.trim().strip_prefix("0x")?;
    i64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::super::history::read;
    use super::*;

    const RECORDED: &str = include_str!("recorded.jsonl");

    fn log(leaders: i64, servers: i64) -> Vec<String> {
        let line = format!(
            "... {LINE}1 maxCommittedLog={leaders:#x} lastProcessedZxid={leaders:#x} peerLastZxid={servers:#x}"
        );
        vec![line]
    }

    #[test]
    fn a_server_that_differs_says_so() {
        let logs = [log(1, 1), vec!["... ERROR ... DataTree - First digest mismatch on txn: 7,0,8,9,-10".to_owned()]];
        assert_eq!(differing(&logs.concat()), ["z1"]);
    }

    #[test]
    fn only_a_leader_without_an_acknowledged_write_of_the_server_has_lost_one() {
        let recorded = read(RECORDED);
        let done: Vec<i64> = recorded.iter().filter_map(acknowledged).collect();
        let (&first, &last) = (done.first().unwrap(), done.last().unwrap());
        assert_eq!(losses(&log(first - 1, first), &recorded).len(), 1);
        assert!(losses(&log(first, first), &recorded).is_empty());
        assert!(losses(&log(last, last + 7), &recorded).is_empty());
        assert!(losses(&log(last, first), &recorded).is_empty());
    }
}
