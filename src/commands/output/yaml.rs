//! `-o yaml`: a JSON value as YAML in blocks. A text that a reader of YAML 1.1 or 1.2 could take for anything else is quoted
//! as in JSON, which YAML includes.
//!
//! No library: those that exist are given up, or translated from C and unsafe; all that is needed is here.

use std::fmt::Write as _;

use serde_json::Value;

pub(super) fn of(value: &Value) -> String {
    let mut text = String::new();
    block(value, 0, &mut text);
    text
}

/// The caller has indented the first line.
fn block(value: &Value, indent: usize, text: &mut String) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (count, (key, value)) in entries.iter().enumerate() {
                write!(text, "{:1$}{2}:", "", if count == 0 { 0 } else { indent }, scalar(key)).ok();
                if is_block(value) {
                    write!(text, "\n{:1$}", "", indent + 2).ok();
                    block(value, indent + 2, text);
                } else {
                    text.push(' ');
                    block(value, indent, text);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (count, item) in items.iter().enumerate() {
                write!(text, "{:1$}- ", "", if count == 0 { 0 } else { indent }).ok();
                block(item, indent + 2, text);
            }
        }
        Value::String(string) => writeln!(text, "{}", scalar(string)).unwrap_or_default(),
        // null, a boolean, a number, [] or {}.
        other => writeln!(text, "{other}").unwrap_or_default(),
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(entries) => !entries.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let quoted = Value::from(text).to_string();
    let is_printable = |letter: char| {
        !letter.is_control()
            && !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}'..='\u{feff}' | '\u{fffe}'..='\u{ffff}')
    };
    let mut escaped = String::new();
    for letter in quoted.chars() {
        if is_printable(letter) {
            escaped.push(letter);
        } else {
            write!(escaped, "\\u{:04x}", u32::from(letter)).ok();
        }
    }
    escaped
}

/// Words of YAML 1.1 that are no texts.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// It begins like a name, so that it is no number, time or indicator.
fn is_plain(text: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "_-./:".contains(letter);
    text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/')
        && text.chars().all(is_inner)
        && !text.ends_with(':')
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_and_lists_stand_in_blocks() {
        let value = json!({
            "v": 1,
            "empty": [], "none": {}, "null": null,
            "list": [1, {"a": "x", "b": [true, [2.5, "y"]]}, []],
            "map": {"k": {"deep": -3}},
        });
        let expected = "empty: []\nlist:\n  - 1\n  - a: x\n    b:\n      - true\n      - - 2.5\n        - \"y\"\n  - []\n\
                        map:\n  k:\n    deep: -3\nnone: {}\n\"null\": null\nv: 1\n";
        assert_eq!(of(&value), expected);
        assert_eq!((of(&json!("x")), of(&json!([]))), ("x\n".to_owned(), "[]\n".to_owned()));
    }

    #[test]
    fn what_could_be_read_as_anything_else_is_quoted() {
        for plain in ["nightly", "/a/b", "host:4711", "at-most-one", "db1.example.org"] {
            assert_eq!(scalar(plain), plain);
        }
        for text in
            ["", "No", "null", "1", "12:30:00", "2026-11-21", "a: b", "a:", "- a", "~", "a #b", "*a", "größe", ".inf"]
        {
            assert_eq!(scalar(text), format!("\"{text}\""));
        }
        assert_eq!(scalar("a\"\n\u{1b}\u{7f}\u{85}\u{2028}"), r#""a\"\n\u001b\u007f\u0085\u2028""#);
    }
}
