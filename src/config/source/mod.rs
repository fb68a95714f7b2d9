//! Where settings come from: the command line, the environment, the configuration file, the defaults.

pub mod file;
pub mod file_settings;
pub mod layers;
pub mod mistake;
pub mod origins;
pub mod setting;
pub mod surroundings;
pub mod trust;
