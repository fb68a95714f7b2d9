//! Earlier leaders that were not fenced yet. A host that takes over a held record lists its leader in the new record,
//! until a command is started under it. If the host fails to fence that leader, or dies, the next leader does it.
//!
//! The machine need not know them: a record that lists any is held, and taking over a held record is unclean.
//!
//! A record's contents are not trusted: at most `MOST` entries and `LONGEST_TEXT` bytes for each text; a host that is no
//! host's name is empty; nonsense is ignored.

use crate::core::event::Nonce;
use crate::zookeeper::client::connection::Stat;
use crate::zookeeper::schema::lease::{Holder, Lease, PendingFence, Term, nonce_text};

/// Number of entries kept. Of more, the oldest are dropped, with a warning.
const MOST: usize = 16;
/// Longer names are cut, in bytes.
const LONGEST_TEXT: usize = 512;

impl PendingFence {
    fn of(holder: Holder, token: i64) -> Self {
        let Holder { id, host, pid, nonce, .. } = holder;
        Self { id, host, pid, nonce, token }
    }

    fn cut(mut self) -> Self {
        for text in [&mut self.id, &mut self.host, &mut self.nonce] {
            let end = (0..=LONGEST_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            text.truncate(end);
        }
        if !is_host(&self.host) {
            self.host.clear();
        }
        self
    }

    /// Whether it is of the same process: the nonce begins with its instance.
    fn is_of_process(&self, nonce: &str) -> bool {
        let process = |nonce: &str| nonce.split('-').next().unwrap_or_default().to_owned();
        !nonce.is_empty() && process(&self.nonce) == process(nonce)
    }
}

impl Lease {
    /// Whose command may run under a held record: its holder's or, while that one waits, that of the leader whose lease it waits for.
    /// `None`: the record does not tell.
    pub fn last_to_run(&self) -> Option<Holder> {
        let is_known = |holder: &Holder| !holder.id.is_empty() && !holder.host.is_empty();
        if self.waiting_on.is_none() {
            return self.holder.clone().filter(is_known);
        }
        let nonce = self.waiting_for.as_deref()?;
        let before = self.unfenced.iter().find(|leader| leader.is_of_process(nonce)).cloned()?;
        let PendingFence { id, host, pid, nonce, .. } = before;
        Some(Holder { id, host, pid, nonce, ..Holder::default() }).filter(is_known)
    }
}

/// Whether a fence command may be given this as the name of a host. It goes to programs like ssh, so it must not look like
/// an option; quoting does not help against that.
fn is_host(text: &str) -> bool {
    !text.starts_with('-') && text.chars().all(|letter| letter.is_alphanumeric() || ".-_:".contains(letter))
}

/// The leaders that a process must fence if it takes this record over. `own`: the instances of its programs. `None`: the
/// record cannot be read.
pub(crate) fn to_fence(record: Option<&Lease>, term: &[u8], term_stat: &Stat, own: &[u64]) -> Vec<PendingFence> {
    let leader = || Term::read(term).ok().and_then(|term| term.leader).unwrap_or_default();
    let (mut list, holder) = match record {
        Some(lease) if !lease.is_held() => return Vec::new(),
        Some(lease) => {
            let holder = lease.holder.clone().unwrap_or_else(leader);
            let holder = PendingFence::of(holder, lease.token.unwrap_or(term_stat.mzxid));
            (lease.unfenced.clone(), Some(holder).filter(|_| lease.waiting_on.is_none()))
        }
        None => (Vec::new(), Some(PendingFence::of(leader(), term_stat.mzxid))),
    };
    // Our own earlier attempts to lead have left nothing alive.
    let own: Vec<_> = own.iter().map(|&instance| nonce_text(Nonce { instance, sending: 0 })).collect();
    let is_own = |leader: &PendingFence| own.iter().any(|own| leader.is_of_process(own));
    list.retain(|known| !is_own(known));
    if let Some(holder) = holder.filter(|holder| !is_own(holder)) {
        list.retain(|known| !known.is_of_process(&holder.nonce));
        list.push(holder);
    }
    let given_up = list.len().saturating_sub(MOST);
    if let Some(first) = list.drain(..given_up).next() {
        let PendingFence { id, host, token, .. } = first;
        tracing::warn!(
            given_up,
            id,
            host,
            token,
            "Too many leaders to fence; this one, and any after it, are given up"
        );
    }
    list.into_iter().map(PendingFence::cut).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::action::Entry;
    use crate::core::event::LastRun;
    use crate::core::lease::LEASE_LONGEST;
    use crate::zookeeper::schema::lease;
    use crate::zookeeper::schema::vouching::Neighbourhood;
    use crate::zookeeper::testing::{settings, stat};

    const US: u64 = 0xabc;
    /// That of an earlier program of our process is among them.
    const OURS: [u64; 2] = [US, 0xabd];

    fn list(record: &str) -> Vec<PendingFence> {
        let lease = Lease::read(record.as_bytes()).ok();
        to_fence(lease.as_ref(), br#"{"v":1,"leader":{"id":"of-term"},"lease_ms":1}"#, &stat(), &OURS)
    }

    fn ids(record: &str) -> Vec<String> {
        list(record).into_iter().map(|unfenced| unfenced.id).collect()
    }

    fn held(rest: &str) -> String {
        format!(r#"{{"v":1,"state":"held","lease_ms":5{rest}}}"#)
    }

    #[test]
    fn who_waits_names_the_leader_whose_command_may_still_run() {
        let last = |rest: &str| {
            let lease = Lease::read(held(rest).as_bytes()).unwrap();
            lease.last_to_run().map(|leader| leader.id)
        };
        let holder = r#","holder":{"id":"b","host":"db2","pid":2,"nonce":"b0-1"}"#;
        // The lease of `c` is over, and it waits only to be fenced.
        let unfenced = r#""unfenced":[{"id":"c","host":"h","nonce":"c0-1"},{"id":"a","host":"h","nonce":"a0-1"},{"id":"d","nonce":"d0-1"}]"#;
        let waiting = |rest: &str| last(&format!(r#"{holder},"waiting_on":3,{unfenced}{rest}"#));
        assert_eq!(last(holder).as_deref(), Some("b"));
        assert_eq!(waiting(r#","waiting_for":"a0-7""#).as_deref(), Some("a"));
        assert_eq!(waiting(r#","waiting_for":"e0-7""#), None, "it is not listed");
        assert_eq!(waiting(r#","waiting_for":"d0-7""#), None, "nobody knows on which host it runs");
        assert_eq!(waiting(""), None, "an earlier version does not say for whom");
        assert_eq!(last(""), None, "the record was lost");
    }

    const HOLDER: &str = r#","holder":{"id":"b","host":"h","pid":7,"nonce":"00000000000000bb-3"},"token":9"#;
    const CARRIED: &str = r#","unfenced":[{"id":"a","nonce":"00000000000000aa-1","token":4}]"#;

    #[test]
    fn a_free_record_leaves_nobody_and_a_held_one_its_holder() {
        assert!(list(r#"{"v":1,"state":"free","lease_ms":5,"holder":{"id":"b"}}"#).is_empty());
        let nonce = "00000000000000bb-3".to_owned();
        let holder = PendingFence { id: "b".into(), host: "h".into(), pid: 7, nonce, token: 9 };
        assert_eq!(list(&held(HOLDER)), [holder]);
    }

    #[test]
    fn whom_the_holder_had_to_fence_comes_first_and_a_holder_that_waits_has_run_nothing() {
        assert_eq!(ids(&held(&format!("{HOLDER}{CARRIED}"))), ["a", "b"]);
        assert_eq!(ids(&held(&format!(r#"{HOLDER}{CARRIED},"waiting_on":3"#))), ["a"]);
    }

    #[test]
    fn our_own_earlier_try_is_not_to_be_fenced_and_nobody_twice() {
        for own in ["0000000000000abc-9", "0000000000000abd-1"] {
            let own = format!(r#","holder":{{"id":"us","nonce":"{own}"}}"#);
            assert_eq!(ids(&held(&format!("{own}{CARRIED}"))), ["a"]);
        }
        let carried = r#","unfenced":[{"id":"us","nonce":"0000000000000abc-9","token":4}]"#;
        assert_eq!(ids(&held(&format!("{HOLDER}{carried}"))), ["b"], "another host has failed to fence us");
        let again = r#","holder":{"id":"a","nonce":"00000000000000aa-2"},"token":8"#;
        let list = list(&held(&format!("{again}{CARRIED}")));
        assert_eq!((list.len(), list[0].token), (1, 8));
    }

    #[test]
    fn a_host_that_a_command_could_take_for_an_option_is_none() {
        let host = |host: &str| {
            let host = serde_json::to_string(host).unwrap();
            list(&held(&format!(r#","holder":{{"id":"b","host":{host}}}"#))).remove(0).host
        };
        for name in ["db1", "db1.example.org", "a_b-c", "größe", "::1"] {
            assert_eq!(host(name), name);
        }
        for nonsense in ["-oProxyCommand=reboot", "--all", "a b", "a;b", "$(x)", "a\nb", "a/b", "\u{1b}[2J"] {
            assert_eq!(host(nonsense), "", "{nonsense}");
        }
    }

    #[test]
    fn a_record_that_says_little_or_nothing_leaves_the_leader_of_its_term() {
        for record in [held("").as_str(), "", "nonsense", r#"{"state":"held","unfenced":5}"#] {
            let list = list(record);
            assert_eq!((list[0].id.as_str(), list[0].token, list.len()), ("of-term", stat().mzxid, 1), "{record}");
        }
    }

    #[test]
    fn a_record_carries_them_and_says_the_rest_as_before() {
        let waiting_on = Some(LastRun { mzxid: 3, nonce: Nonce::UNKNOWN });
        let entry = Entry {
            nonce: Nonce { instance: US, sending: 1 },
            token: Some(9),
            lease: LEASE_LONGEST,
            waiting_on,
            vouching: None,
        };
        let said = |unfenced| {
            String::from_utf8(lease::held(&entry, "c", unfenced, &Neighbourhood::default(), &settings())).unwrap()
        };
        let (carried, without) = (said(list(&held(HOLDER))), said(Vec::new()));
        assert_eq!(ids(&carried), ["b"]);
        let (before, _) = carried.split_once(r#","unfenced":[{"id":"b","#).unwrap();
        assert_eq!(format!("{before}}}"), without);
    }

    proptest! {
        #[test]
        fn whatever_a_record_says_the_list_is_short(data: Vec<u8>, id in ".{0,2000}", count in 0_usize..40) {
            prop_assert!(to_fence(Lease::read(&data).ok().as_ref(), &data, &stat(), &OURS).len() <= MOST);
            let one = PendingFence { id, ..PendingFence::default() }.json();
            let many = vec![one.trim(); count].join(",");
            let list = list(&held(&format!(r#","unfenced":[{many}]"#)));
            prop_assert!(list.len() <= MOST && list.iter().all(|unfenced| unfenced.id.len() <= LONGEST_TEXT));
        }
    }
}
