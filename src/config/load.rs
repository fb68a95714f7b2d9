//! Reads the arguments, the environment and the configuration file. Returns a [`Config`], or the text that ends the
//! program. Connects to nothing, writes and starts nothing.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;

use super::build::{self, Config, FileRead};
use super::error::ConfigError;
use super::source::file::{self, ConfigFile};
use super::source::file_settings::{self, FileSettings};
use super::source::layers::{self, Layers};
use super::source::{command_line_errors, origins};
use crate::cli::{self, EarlyExit, Stream};
use crate::config::source::process_environment::ProcessEnvironment;

impl From<ConfigError> for EarlyExit {
    fn from(error: ConfigError) -> Self {
        let text = format!("zk-leader-run: {}\n", error.sentence);
        Self { text, stream: Stream::Stderr, status: error.status.code() }
    }
}

/// The program name of a releaser. It gets the settings of the file as options, as they were when its supervisor
/// started.
pub const RELEASER: &str = "zk-leader-run-releaser";

/// The name of a program that led, was stopped for longer than its lease, and executed itself again to contend; the number
/// of its memory's descriptor follows, a colon, and the path at which newer versions are looked for.
pub const REJOINED: &str = "zk-leader-run-rejoined:";

/// Reads the command line (with the program's name first), the environment and the configuration file.
///
/// # Errors
///
/// Help, the version or the settings were asked for, or something is wrong.
pub fn load(
    arguments: impl IntoIterator<Item = OsString>,
    process_environment: &ProcessEnvironment,
) -> Result<Config, EarlyExit> {
    let arguments: Vec<_> = arguments.into_iter().collect();
    let is_releaser = arguments.first().is_some_and(|program| program == RELEASER);
    settings_of(&arguments, process_environment, !is_releaser)
}

/// The same for a program that executed itself again: the settings of the file that it had read, if any, count as they
/// were then, and no file is read.
///
/// # Errors
///
/// As for [`load`].
pub fn load_again(
    mut arguments: Vec<OsString>,
    process_environment: &ProcessEnvironment,
    file: Option<FileRead>,
) -> Result<Config, EarlyExit> {
    // Typed options come after those of the file, and override them.
    arguments.splice(1..1, file.iter().flat_map(|file| file.options.iter().cloned()));
    Ok(Config { file, ..settings_of(&arguments, process_environment, false)? })
}

fn settings_of(
    arguments: &[OsString],
    process_environment: &ProcessEnvironment,
    reads_file: bool,
) -> Result<Config, EarlyExit> {
    let grammar = cli::command();
    let matches = grammar.clone().try_get_matches_from(arguments).map_err(|error| stop(&error))?;
    let command: Vec<OsString> = matches.get_many("command").into_iter().flatten().cloned().collect();
    let layers = Layers { matches: &matches, process_environment, file: &FileSettings::default() };
    let found = if reads_file { file::read(&layers, &file_settings::keys(&grammar))? } else { ConfigFile::default() };
    let unknown_variables = layers::check_variables(process_environment)?;
    let name = election_name(command.first(), &Layers { file: &found.settings, ..layers })?;
    let settings = found.settings.of_election(&name);
    let layers = Layers { file: &settings, ..layers };
    let notices: Vec<_> = found.notice.into_iter().chain(unknown_variables).collect();
    if layers.flag("print-config")? {
        return Err(EarlyExit::answer(origins::page(&grammar, &layers, (found.path.as_deref(), &notices))));
    }
    let Some(program) = command.first().cloned() else {
        return Err(command_line_errors::no_command(&grammar, &matches, arguments.last()).into());
    };
    // A releaser starts no command, and a program that was executed again finds out when it is elected.
    let mut config = build::read((&program, reads_file), command, &layers)?;
    config.file = found.path.map(|path| FileRead { path, options: origins::from_file(&grammar, &layers) });
    config.notices.extend(notices);
    Ok(config)
}

/// The election whose section of the file counts, before all values are parsed.
fn election_name(program: Option<&OsString>, layers: &Layers) -> Result<String, ConfigError> {
    let named = layers.given("name")?.map(|setting| setting.text);
    let program = || program.and_then(|program| Path::new(program).file_name());
    Ok(named.unwrap_or_else(|| program().unwrap_or_default().to_string_lossy().into_owned()))
}

fn stop(error: &clap::Error) -> EarlyExit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => EarlyExit::answer(error.render().to_string()),
        _ => command_line_errors::error_of(error, "zk-leader-run").into(),
    }
}
