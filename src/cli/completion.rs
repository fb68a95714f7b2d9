//! What a shell may complete from the ensemble: judged from the words that were typed. Connects to nothing.
//!
//! `zk-leaderctl completions values WORD...`, which the completion scripts call, is no subcommand: its last word is the one under the
//! cursor.

use clap::{Arg, ArgAction, Command};

use super::ctl;

/// The parent of the elections that have a name.
const ROOT: &str = "/zk-leader-run";

/// What the word under the cursor names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    Election,
    Host,
    DrainedHost,
    /// Or its host, where that is unique.
    Participant,
}

/// The word under the cursor, and where to look for what it may become.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    pub wanted: Wanted,
    /// What is there already of the value.
    pub prefix: String,
    /// A command line of `zk-leaderctl` that only reads, with the connection options that were typed.
    pub question: Vec<String>,
}

/// The typed words, if these arguments (without the program's name) ask for values.
pub fn asked_for(arguments: &[String]) -> Option<&[String]> {
    match arguments {
        [completions, values, words @ ..] if completions == "completions" && values == "values" => Some(words),
        _ => None,
    }
}

/// `None`: the ensemble does not know what may stand there.
pub fn of(words: &[String]) -> Option<Completion> {
    let (last, before) = words.split_last()?;
    let command = ctl::command();
    let mut typed = Typed {
        command: &command,
        verb: None,
        pending: None,
        common: Vec::new(),
        positionals: Vec::new(),
        root: ROOT.to_owned(),
        path: None,
    };
    for word in before {
        typed.take(word)?;
    }
    typed.completion(last)
}

/// What was typed before the cursor.
struct Typed<'a> {
    command: &'a Command,
    verb: Option<&'a Command>,
    /// The option whose value comes next.
    pending: Option<&'a Arg>,
    /// Options about the connection.
    common: Vec<String>,
    positionals: Vec<String>,
    root: String,
    path: Option<String>,
}

impl<'a> Typed<'a> {
    /// `None`: it is no option or subcommand of ours.
    fn take(&mut self, word: &str) -> Option<()> {
        if let Some(option) = self.pending.take() {
            self.set(option, word);
            return Some(());
        }
        match (self.option(word), self.verb) {
            (Some((option, Some(value))), _) => self.set(option, value),
            (Some((option, None)), _) if takes_values(option) => self.pending = Some(option),
            (Some((option, None)), _) => self.common.extend(is_about_the_connection(option).then(|| word.to_owned())),
            (None, _) if word.starts_with('-') => return None,
            (None, None) => self.verb = Some(self.command.find_subcommand(word)?),
            (None, Some(_)) => self.positionals.push(word.to_owned()),
        }
        Some(())
    }

    /// An option, with its value if that is in the same word.
    fn option<'w>(&self, word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
        let verbs = self.verb.into_iter().flat_map(Command::get_arguments);
        let mut options = verbs.chain(self.command.get_arguments());
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            return options.find(|option| option.get_long() == Some(name)).map(|option| (option, value));
        }
        let mut letters = word.strip_prefix('-')?.chars();
        let short = letters.next()?;
        let value = Some(letters.as_str()).filter(|value| !value.is_empty());
        options.find(|option| option.get_short() == Some(short)).map(|option| (option, value))
    }

    fn set(&mut self, option: &Arg, value: &str) {
        match option.get_long() {
            Some("root") => value.clone_into(&mut self.root),
            Some("path") => self.path = Some(value.to_owned()),
            Some(long) if is_about_the_connection(option) => self.common.extend([format!("--{long}={value}")]),
            _ => {}
        }
    }

    fn completion(self, last: &str) -> Option<Completion> {
        let (option, prefix) = match (self.pending, self.option(last)) {
            (Some(option), _) => (Some(option), last),
            (None, Some((option, Some(value)))) => (Some(option), value),
            (None, _) if last.starts_with('-') => return None,
            (None, _) => (None, last),
        };
        let verb = self.verb?;
        let value = option.or_else(|| verb.get_positionals().nth(self.positionals.len()))?;
        let wanted = match (value.get_id().as_str(), verb.get_name()) {
            ("name", _) if self.path.is_none() => Wanted::Election,
            ("host", "undrain") => Wanted::DrainedHost,
            ("host", _) => Wanted::Host,
            ("to", _) => Wanted::Participant,
            _ => return None,
        };
        let about = match (wanted, self.path) {
            (Wanted::Participant, Some(path)) => vec!["status".to_owned(), format!("--path={path}")],
            (Wanted::Participant, None) => [vec!["status".to_owned()], self.positionals].concat(),
            (Wanted::Election, _) => vec!["list".to_owned(), format!("--path={ROOT}")],
            _ => vec!["list".to_owned(), format!("--path={}", self.root)],
        };
        let question = [vec![ctl::PROGRAM.to_owned()], self.common, about].concat();
        Some(Completion { wanted, prefix: prefix.to_owned(), question })
    }
}

fn takes_values(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

/// How the answer looks, and how long to wait for it, is not the user's here.
fn is_about_the_connection(option: &Arg) -> bool {
    option.is_global_set() && !matches!(option.get_long(), Some("output" | "json" | "help" | "connect-timeout"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Option<(Wanted, String, String)> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        of(&words).map(|it| (it.wanted, it.prefix, it.question.get(1..).unwrap_or_default().join(" ")))
    }

    #[track_caller]
    fn is(line: &str, wanted: Wanted, prefix: &str, question: &str) {
        assert_eq!(completed(line), Some((wanted, prefix.to_owned(), question.to_owned())), "{line}");
    }

    #[test]
    fn a_place_says_what_may_stand_there_and_the_connection_is_the_typed_one() {
        is("status ", Wanted::Election, "", "list --path=/zk-leader-run");
        is("-z h:1 --tls status ni", Wanted::Election, "ni", "--connect=h:1 --tls list --path=/zk-leader-run");
        is("-zh:1 -o json history -n 5 --watch ni", Wanted::Election, "ni", "--connect=h:1 list --path=/zk-leader-run");
        is("token-check 17 a", Wanted::Election, "a", "list --path=/zk-leader-run");
        is("put --fenced --name=a", Wanted::Election, "a", "list --path=/zk-leader-run");
        is("drain --reason x d", Wanted::Host, "d", "list --path=/zk-leader-run");
        is("undrain --root /r --connect=h:1 ", Wanted::DrainedHost, "", "--connect=h:1 list --path=/r");
        is("handover nightly --to ", Wanted::Participant, "", "status nightly");
        is("handover --to=a:1", Wanted::Participant, "a:1", "status");
        is("handover --path /x --to a", Wanted::Participant, "a", "status --path=/x");
    }

    #[test]
    fn nothing_is_known_of_other_places() {
        let lines = [
            "",
            "sta",
            "status --wat",
            "status a ",
            "status --path /x ",
            "list ",
            "token-check ",
            "put ",
            "lease ",
            "-z ",
            "status -z ",
            "drain --reason ",
            "no-verb ",
            "status --no-option a ",
        ];
        for line in lines {
            assert_eq!(completed(line), None, "{line}");
        }
        assert_eq!(of(&[]), None);
    }
}
