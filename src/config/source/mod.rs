//! Where settings come from: the command line, the environment, the configuration file, the defaults.

pub mod command_line_errors;
pub mod file;
pub mod file_permissions;
pub mod file_settings;
pub mod layers;
pub mod origins;
pub mod process_environment;
pub mod setting;
