//! How the command is started: its program, directory, environment, streams and terminal.

pub(crate) mod directory;
pub mod environment;
pub(crate) mod launch;
pub(crate) mod streams;
pub(crate) mod terminal;
