//! What an operator types to change an order, complete: it names the election or the root wherever `zk-leaderctl` would
//! look elsewhere.

use std::borrow::Cow;

/// The parent of elections unless `--path` says otherwise.
pub const DEFAULT_ROOT: &str = "/zk-leader-run";

/// `zk-leaderctl VERB`, about the election with this base (within the chroot).
pub fn about_election(verb: &str, base: &str) -> String {
    let name = base.strip_prefix(DEFAULT_ROOT).and_then(|rest| rest.strip_prefix('/'));
    match name.filter(|name| !name.contains('/') && !name.starts_with('-')) {
        Some(name) => format!("zk-leaderctl {verb} {}", word(name)),
        None => format!("zk-leaderctl {verb} --path {}", word(base)),
    }
}

/// `zk-leaderctl VERB HOST`, about the elections below this root (within the chroot).
pub fn about_host(verb: &str, host: &str, root: &str) -> String {
    let root = if root == DEFAULT_ROOT { String::new() } else { format!(" --root {}", word(root)) };
    if host.starts_with('-') {
        return format!("zk-leaderctl {verb}{root} -- {}", word(host));
    }
    format!("zk-leaderctl {verb} {}{root}", word(host))
}

/// `zk-leaderctl list`, of the elections beside this base (within the chroot).
pub fn list_beside(base: &str) -> String {
    match base.rsplit_once('/') {
        Some((root, _)) if !root.is_empty() && root != DEFAULT_ROOT => list_below(root),
        _ => "zk-leaderctl list".to_owned(),
    }
}

/// `zk-leaderctl list`, of the elections below this root (within the chroot).
pub fn list_below(root: &str) -> String {
    format!("zk-leaderctl list --path {}", word(root))
}

/// The text as one word of a shell.
pub fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@%+,".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_of_the_elections_beside_the_one_that_was_meant() {
        assert_eq!(list_beside("/zk-leader-run/nightly"), "zk-leaderctl list");
        assert_eq!(list_beside("/jobs/x y/z"), "zk-leaderctl list --path '/jobs/x y'");
        assert_eq!(list_below("/x y"), "zk-leaderctl list --path '/x y'");
        assert_eq!(list_beside("/nightly"), "zk-leaderctl list", "no path names all znodes");
    }

    #[test]
    fn an_election_is_named_or_else_its_whole_path_is() {
        let remedy = |base| about_election("enable", base);
        assert_eq!(remedy("/zk-leader-run/nightly"), "zk-leaderctl enable nightly");
        assert_eq!(remedy("/zk-leader-run/x y"), "zk-leaderctl enable 'x y'");
        assert_eq!(remedy("/zk-leader-run/-x"), "zk-leaderctl enable --path /zk-leader-run/-x");
        assert_eq!(remedy("/zk-leader-run/team/nightly"), "zk-leaderctl enable --path /zk-leader-run/team/nightly");
        assert_eq!(remedy("/zk-leader-runs/nightly"), "zk-leaderctl enable --path /zk-leader-runs/nightly");
        assert_eq!(remedy("/jobs/it's"), r"zk-leaderctl enable --path '/jobs/it'\''s'");
    }

    #[test]
    fn a_host_is_named_with_every_root_but_the_usual_one() {
        assert_eq!(about_host("undrain", "db1", "/zk-leader-run"), "zk-leaderctl undrain db1");
        assert_eq!(about_host("undrain", "db1", "/jobs"), "zk-leaderctl undrain db1 --root /jobs");
        assert_eq!(about_host("undrain", "--force", "/jobs"), "zk-leaderctl undrain --root /jobs -- --force");
    }
}
