//! The identities in `--auth-file`: one line each, in the format that Hadoop uses too. No part of a line appears in an
//! error, because it may be a secret.

use crate::config::error::ConfigError;
use crate::zookeeper::client::connect::{Access, Login, Secret};

const EXAMPLE: &str = "write lines like digest:USER:PASSWORD or sasl:USER:PASSWORD";

/// Parses the text of the file or variable named `source`.
pub fn read(source: &str, text: &str) -> Result<Access, ConfigError> {
    let mut access = Access::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let refused = |complaint: &str| {
            ConfigError::configuration(format_args!("{source}:{}", index + 1), format_args!("{complaint}; {EXAMPLE}"))
        };
        let (scheme, login) = line.split_once(':').ok_or_else(|| refused("this line names no scheme"))?;
        let login = self::login(login).map_err(refused)?;
        match scheme {
            "digest" => access.digests.push(login),
            "sasl" if !cfg!(feature = "sasl-digest") => return Err(refused("this build cannot do SASL")),
            "sasl" if access.sasl.is_some() => return Err(refused("one session can log in by SASL only once")),
            "sasl" => access.sasl = Some(login),
            _ => return Err(refused("this line's scheme is neither digest nor sasl")),
        }
    }
    if access.is_anonymous() {
        return Err(ConfigError::configuration(source, format_args!("it contains no identity; {EXAMPLE}")));
    }
    Ok(access)
}

fn login(text: &str) -> Result<Login, &'static str> {
    match text.split_once(':') {
        Some((user, password)) if !user.is_empty() && !password.is_empty() => {
            Ok(Login { user: user.to_owned(), password: Secret::new(password) })
        }
        _ => Err("this line lacks a user or a password"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_identity() {
        let access = read("f", "# ours\n\ndigest:bob:a:b c\r\nsasl:carl:x\ndigest:dora:y").unwrap();
        let login = |user: &str, password| Login { user: user.into(), password: Secret::new(password) };
        assert_eq!(access.digests, [login("bob", "a:b c"), login("dora", "y")]);
        assert_eq!(access.sasl, Some(login("carl", "x")));
    }

    #[test]
    fn what_is_no_identity_is_refused_without_a_word_of_it() {
        let cases = [
            ("", "f: it contains no identity"),
            ("# nothing", "f: it contains no identity"),
            ("hunter2", "f:1: this line names no scheme"),
            ("\nhunter2:hunter2:hunter2", "f:2: this line's scheme is neither digest nor sasl"),
            ("digest:hunter2", "f:1: this line lacks a user or a password"),
            ("digest::hunter2", "f:1: this line lacks a user or a password"),
            ("digest:hunter2:", "f:1: this line lacks a user or a password"),
            ("sasl:a:hunter2\nsasl:b:hunter2", "f:2: one session can log in by SASL only once"),
        ];
        for (text, beginning) in cases {
            let error = read("f", text).unwrap_err();
            assert!(error.sentence.starts_with(beginning), "{text}: {}", error.sentence);
            assert!(!error.sentence.contains("hunter2"), "{}", error.sentence);
        }
    }
}
