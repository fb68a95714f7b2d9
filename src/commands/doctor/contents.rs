//! Checks the znodes of an election: what cannot be read, is foreign, missing or there twice.

use super::{Finding, advice, good, wrong};
use crate::zookeeper::admin::view::{Candidate, ElectionView, Unreadable, last_run_path};
use crate::zookeeper::client::ensure_path::parent;
use crate::zookeeper::schema::control::drain::DRAINS;
use crate::zookeeper::schema::control::remedy;
use crate::zookeeper::schema::paths::LAYOUT;

fn unreadable(znode: &Unreadable, election: &ElectionView) -> Finding {
    let Unreadable { path, why, is_forbidden, is_newer } = znode;
    if *is_forbidden {
        // What we may not read may be in good order.
        return advice("record", format!("which hosts are drained is not known: {why}"));
    }
    if *is_newer {
        return wrong("record", format!("{path} cannot be read: {why}; use the newer zk-leaderctl that knows it"));
    }
    let root = parent(&election.base);
    let remedy = match (path.rsplit('/').next(), drained_host(path, root)) {
        (_, Some(host)) => {
            let undrain = remedy::about_host("undrain", host, root);
            format!("it orders nothing, so {host} is not drained; {undrain} deletes it")
        }
        (Some("lease"), _) => "the holder or its successor writes it anew".to_owned(),
        (Some("control"), _) => {
            let enable = remedy::about_election("enable", &election.base);
            format!("it orders nothing; {enable} writes it anew")
        }
        // Deleted, it would allow a second run of its period.
        (Some("last"), _) if *path == last_run_path(&election.base) => {
            "while it stands, --once-per counts its last write as a run; do not delete it, the next run writes it anew"
                .to_owned()
        }
        _ => "it is only for people; delete it".to_owned(),
    };
    wrong("record", format!("{path} cannot be read: {why}; {remedy}"))
}

/// The host, if the path is that of a drain below this root.
fn drained_host<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    path.strip_prefix(root)?.strip_prefix('/')?.strip_prefix(DRAINS)?.strip_prefix('/')
}

/// Checks the znodes of the election.
pub(super) fn findings(election: &ElectionView) -> Vec<Finding> {
    let mut findings: Vec<_> = election.unreadable.iter().map(|znode| unreadable(znode, election)).collect();
    if let [first, ..] = election.foreign.as_slice() {
        let count = election.foreign.len();
        let remedy = if election.is_shared {
            "Curator counts them as contenders, other libraries fail; keep other znodes out of the election directory"
        } else {
            "they are ignored; keep other znodes out of the election directory"
        };
        findings.push(wrong("election", format!("{count} foreign znodes, such as {first}: {remedy}")));
    }
    findings.extend(beside_another(election));
    findings.extend(queue(&election.line, &election.directory));
    for slot in &election.slots {
        if slot.term.is_none() || slot.lease.is_none() && !election.is_unreadable(&slot.lease_path()) {
            let text =
                format!("{} or its record is missing; the next contender makes it again, and waits", slot.term_path);
            findings.push(wrong("record", text));
        }
    }
    if election.is_shared {
        let (directory, count) = (&election.directory, election.line.len());
        let text = format!(
            "this election is shared with other libraries by --election-path ({directory}), so one leader at a time is best effort; \
             {count} in line"
        );
        findings.push(advice("election", text));
    }
    if election.members.is_empty() && !election.line.is_empty() && !election.is_shared {
        findings.push(advice(
            "members",
            "no candidate in line has a member znode: all run an older version, or may not write it",
        ));
    }
    if findings.is_empty() {
        findings.push(nothing_wrong(election));
    }
    findings
}

/// Who made this election with `--path` meant to take part in that of another library.
fn beside_another(election: &ElectionView) -> Option<Finding> {
    let (base, stranger, ours) = (&election.base, election.stranger.as_ref()?, LAYOUT.join(", "));
    let text = format!("{base} is an election of another library, too: it holds the candidate {stranger}");
    let remedy = format!(
        "our command runs beside the leader of that election; give its hosts another --path, with --election-path {base} to take part \
         there, and once none of them runs with --path {base}, delete what we have made there: {ours}"
    );
    Some(wrong("election", format!("{text}; {remedy}")))
}

fn nothing_wrong(election: &ElectionView) -> Finding {
    let (base, line) = (&election.base, election.line.len());
    match (line, election.members.len()) {
        (0, 0) if !election.is_shared => {
            let nobody =
                "nobody takes part (as between two runs of a cron job); start zk-leader-run on two hosts or more";
            advice("election", format!("{base}: {nobody}"))
        }
        (_, 1) => good("election", format!("{base}: {line} in line, 1 member")),
        (_, members) => good("election", format!("{base}: {line} in line, {members} members")),
    }
}

/// Checks the candidates in line.
fn queue(line: &[Candidate], directory: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for candidate in line {
        if candidate.facts.owner == 0 {
            let remedy = if LAYOUT.contains(&candidate.name.as_str()) {
                "an election of ours was made there by --path, and belongs elsewhere: give its hosts another --path, and delete it \
                 once none of them runs with this one"
            } else {
                "delete it"
            };
            let path = format!("{directory}/{}", candidate.name);
            let text = "is persistent and has no owner: no candidate behind it will ever lead";
            findings.push(wrong("line", format!("{path} {text}; {remedy}")));
        }
    }
    for (index, candidate) in line.iter().enumerate() {
        let same = |other: &&_| is_double(candidate, other);
        if let Some(other) = line.iter().take(index).find(same) {
            let remedy = "it goes with its session; if it stays, delete it";
            findings.push(wrong("line", format!("{} has two candidates, {} too: {remedy}", candidate.id, other.name)));
        }
    }
    findings
}

fn is_double(one: &Candidate, other: &Candidate) -> bool {
    one.id == other.id && one.facts.owner == other.facts.owner && one.facts.owner != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `enable` refuses to write over it.
    #[test]
    fn a_record_of_a_newer_format_is_left_to_a_newer_version() {
        let znode =
            |is_newer| Unreadable { path: "/r/e/control".into(), why: "W".into(), is_newer, ..Unreadable::default() };
        let election = ElectionView { base: "/r/e".into(), ..ElectionView::default() };
        let said = |is_newer| unreadable(&znode(is_newer), &election).said;
        assert_eq!(said(true), "/r/e/control cannot be read: W; use the newer zk-leaderctl that knows it");
        assert!(
            said(false).ends_with("; it orders nothing; zk-leaderctl enable --path /r/e writes it anew"),
            "{}",
            said(false)
        );
    }

    #[test]
    fn nobody_is_told_to_delete_what_decides_whether_a_job_runs_again() {
        let election = ElectionView { base: "/r/e".into(), ..ElectionView::default() };
        let said = |path: &str| unreadable(&Unreadable { path: path.into(), ..Unreadable::default() }, &election).said;
        assert!(said("/r/e/runs/last").contains("do not delete it"), "{}", said("/r/e/runs/last"));
        assert!(said("/r/e/members/last").ends_with("delete it"), "{}", said("/r/e/members/last"));
    }

    #[test]
    fn what_never_leads_is_named_with_its_path_and_an_election_of_ours_is_not_to_be_deleted() {
        let persistent = |name: &str| Candidate { name: name.into(), ..Candidate::default() };
        let said = |name: &str| queue(&[persistent(name)], "/app/latch").remove(0).said;
        let rest = "is persistent and has no owner: no candidate behind it will ever lead; ";
        assert_eq!(said("_c_1-latch-0"), format!("/app/latch/_c_1-latch-0 {rest}delete it"));
        for name in LAYOUT {
            let ours = said(name);
            assert!(ours.starts_with(&format!("/app/latch/{name} {rest}an election of ours was made there")), "{ours}");
            assert!(ours.ends_with("another --path, and delete it once none of them runs with this one"), "{ours}");
        }
    }
}
