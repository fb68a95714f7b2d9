//! `--acl`: the ACL of the znodes that we create. It must let a host take part, and an error contains no password.

use crate::config::error::{ConfigError, quoted};
use crate::config::source::setting::Setting;
use crate::zookeeper::client::acl::{Acl, Entry, Rights};

const CHOICES: &str = "write open, or a list like creator,world:anyone:r or digest:USER:HASH";
const RIGHTS: &str = "rights are letters of cdrwa: create, delete, read, write, administer";
const HASH: &str = "HASH is made by: printf %s USER:PASSWORD | openssl dgst -sha1 -binary | base64";

/// Length of a SHA-1 in base64.
const HASH_LENGTH: usize = 28;

const CREDENTIALS: &str =
    "needs an identity that the servers know us by; add --auth-file, or name the owners of the znodes";

/// Parses `--acl`. `is_anonymous`: we have no credentials.
pub fn parse(setting: &Setting, is_anonymous: bool) -> Result<Acl, ConfigError> {
    if setting.text == "open" {
        return Ok(Acl::open());
    }
    let entries = setting.text.split(',').map(|text| entry(setting, text)).collect::<Result<Vec<_>, _>>()?;
    if !entries.iter().any(|entry| entry.rights().can_take_part()) {
        return Err(setting.refused(
            "gives no host the rights c, d, r and w, which an election needs; add creator, or an entry with these",
        ));
    }
    if is_anonymous && entries.contains(&Entry::creator()) {
        return Err(ConfigError::configuration(
            &setting.origin,
            format_args!("{} {CREDENTIALS}", quoted(&setting.text)),
        ));
    }
    Ok(Acl::of(entries))
}

fn entry(setting: &Setting, text: &str) -> Result<Entry, ConfigError> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        ["creator"] => Ok(Entry::creator()),
        ["open"] => {
            Err(refused(setting, "has 'open' among others; open stands alone, since it lets everyone do everything"))
        }
        ["digest", user, hash] => Ok(Entry::new("digest", &digest(setting, user, hash)?, Rights::ALL)),
        ["digest", user, hash, letters] => {
            Ok(Entry::new("digest", &digest(setting, user, hash)?, rights(setting, letters)?))
        }
        ["sasl", user] => Ok(Entry::new("sasl", named(setting, user)?, Rights::ALL)),
        ["sasl", user, letters] => Ok(Entry::new("sasl", named(setting, user)?, rights(setting, letters)?)),
        ["world", "anyone", letters] => Ok(Entry::anyone(rights(setting, letters)?)),
        // A user who confuses hash and password has written a secret here.
        ["digest", ..] => {
            Err(setting.refused_unseen(format_args!("has a digest that is not digest:USER:HASH; {HASH}")))
        }
        _ if may_hold_a_secret(setting) => Err(refused(setting, format_args!("has an entry that is none; {CHOICES}"))),
        _ => Err(refused(setting, format_args!("has {}, which is not an ACL entry; {CHOICES}", quoted(text)))),
    }
}

/// An identity of --auth-file, with its password, may stand in it.
fn may_hold_a_secret(setting: &Setting) -> bool {
    let text = setting.text.to_ascii_lowercase();
    text.contains("digest:") || text.contains("sasl:")
}

fn refused(setting: &Setting, complaint: impl std::fmt::Display) -> ConfigError {
    if may_hold_a_secret(setting) { setting.refused_unseen(complaint) } else { setting.refused(complaint) }
}

fn digest(setting: &Setting, user: &str, hash: &str) -> Result<String, ConfigError> {
    let is_base64 = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'+' || letter == b'/';
    let is_hash =
        hash.len() == HASH_LENGTH && hash.strip_suffix('=').is_some_and(|digits| digits.bytes().all(is_base64));
    if !is_hash {
        return Err(setting.refused_unseen(format_args!("has a digest with an invalid hash; {HASH}")));
    }
    Ok(format!("{}:{hash}", named(setting, user)?))
}

fn named<'a>(setting: &Setting, user: &'a str) -> Result<&'a str, ConfigError> {
    if user.is_empty() {
        Err(refused(setting, format_args!("has an entry without a user; {CHOICES}")))
    } else {
        Ok(user)
    }
}

fn rights(setting: &Setting, letters: &str) -> Result<Rights, ConfigError> {
    Rights::of(letters).ok_or_else(|| {
        if may_hold_a_secret(setting) {
            return refused(setting, format_args!("has rights that are none; {RIGHTS}"));
        }
        refused(setting, format_args!("has the rights {}; {RIGHTS}", quoted(letters)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::source::setting::Origin;
    use crate::exit::Status;

    const HASHED: &str = "W/pOOVTTfxTRvg7GEpIIMgr6TvQ=";

    fn read(text: &str) -> Result<Acl, ConfigError> {
        parse(&Setting { origin: Origin::Option("acl"), text: text.to_owned() }, false)
    }

    #[test]
    fn a_list_is_read_entry_by_entry() {
        let digest = |rights| Entry::new("digest", &format!("u:{HASHED}"), rights);
        assert_eq!(read("open"), Ok(Acl::open()));
        assert_eq!(read("creator"), Ok(Acl::of(vec![Entry::creator()])));
        assert_eq!(read(&format!("digest:u:{HASHED}")), Ok(Acl::of(vec![digest(Rights::ALL)])));
        let several = read(&format!("creator,digest:u:{HASHED}:rw,sasl:zk/host@REALM,sasl:b:r,world:anyone:r"));
        let letters = |letters| Rights::of(letters).unwrap();
        let entries = vec![
            Entry::creator(),
            digest(letters("rw")),
            Entry::new("sasl", "zk/host@REALM", Rights::ALL),
            Entry::new("sasl", "b", letters("r")),
            Entry::anyone(letters("r")),
        ];
        assert_eq!(several, Ok(Acl::of(entries)));
    }

    #[test]
    fn what_is_no_list_is_refused_each_with_its_remedy() {
        let cases = [
            ("", "is not an ACL entry; write open"),
            ("closed", "has 'closed', which is not an ACL entry"),
            ("open,creator", "open stands alone"),
            ("creator,", "has '', which is not an ACL entry"),
            ("world:anyone", "is not an ACL entry"),
            ("world:anyone:rx", "has the rights 'rx'; rights are letters of cdrwa"),
            ("world:anyone:r", "gives no host the rights"),
            ("sasl:", "has an entry without a user"),
            ("ip:10.0.0.1:cdrwa", "is not an ACL entry"),
        ];
        for (text, complaint) in cases {
            let error = read(text).unwrap_err();
            assert!(error.sentence.starts_with("--acl: ") && error.sentence.contains(complaint), "{error:?}");
        }
        let nobody = format!("digest:u:{HASHED}:r");
        assert!(read(&nobody).unwrap_err().sentence.contains("gives no host the rights"));
    }

    #[test]
    fn a_creator_without_an_identity_owns_nothing() {
        let setting = Setting { origin: Origin::Option("acl"), text: "creator".to_owned() };
        let error = parse(&setting, true).unwrap_err();
        assert_eq!(error.status, Status::Configuration);
        assert!(error.sentence.starts_with("--acl: 'creator' needs an identity"), "{error:?}");
    }

    #[test]
    fn a_password_in_the_place_of_a_hash_is_not_repeated() {
        for text in
            ["digest:u:hunter2", "digest:u:hunter2:r", "digest:hunter2", "digest:u:hunter2:r:w", "digest:u:hunter2:x"]
        {
            let sentence = read(text).unwrap_err().sentence;
            assert!(!sentence.contains("hunter2") && sentence.contains("openssl dgst -sha1"), "{sentence}");
        }
        // Another entry is refused before it.
        for text in [
            "creater,digest:u:hunter2",
            "open,digest:u:hunter2",
            "world:anyone:rx,digest:u:hunter2",
            "Digest:u:hunter2",
            "sasl:u:hunter2",
            "creater,sasl:u:hunter2",
        ] {
            let sentence = read(text).unwrap_err().sentence;
            assert!(!sentence.contains("hunter2"), "{sentence}");
        }
    }
}
