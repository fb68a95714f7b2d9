//! The election's place, our identity, and the order of candidates.

use std::ffi::OsStr;
use std::path::Path;

use super::election_path;
use super::error::{ConfigError, quoted};
use super::source::layers::Layers;
use super::value::ensemble::{self, Ensemble};
use super::value::znode::{self, ZnodePath};
use crate::core::settings::Recipe;
use crate::zookeeper::schema::control::drain::DRAINS;
use crate::zookeeper::schema::recipe::RECIPES;

/// Below the same parent as the election itself.
const RESERVED: &str =
    "is the name of the znode that holds the drains of all elections beside it; write another one, like nightly";

pub struct ElectionSettings {
    pub ensemble: Ensemble,
    pub name: String,
    pub base: ZnodePath,
    /// The directory of the candidates.
    pub candidates: ZnodePath,
    pub is_shared: bool,
    pub id: String,
    pub recipe: Recipe,
}

pub fn read(layers: &Layers, program: &OsStr) -> Result<ElectionSettings, ConfigError> {
    let ensemble = ensemble::read(layers)?;
    let name = match layers.given("name")? {
        Some(setting) => znode::name(&setting)?,
        None => default_name(program, layers.given("path")?.is_some())?,
    };
    let path = layers.given("path")?;
    let base = match &path {
        Some(setting) => znode::path(setting)?,
        None => znode::default_root().join(&name),
    };
    if base.as_str().rsplit('/').next() == Some(DRAINS) {
        let setting = path.or(layers.given("name")?);
        return Err(setting.map_or_else(|| ConfigError::usage("--name", RESERVED), |setting| setting.refused(RESERVED)));
    }
    let id = match layers.given("id")? {
        Some(setting) => znode::name(&setting)?,
        None => default_id(layers)?,
    };
    let recipe = layers.required("recipe")?.one_of(&RECIPES)?;
    let shared = layers.given("election-path")?;
    let shared = shared.map(|setting| election_path::election(&setting, &base, recipe)).transpose()?;
    let (is_shared, candidates) = (shared.is_some(), shared.unwrap_or_else(|| base.join(election_path::OWN)));
    Ok(ElectionSettings { ensemble, name, base, candidates, is_shared, id, recipe })
}

fn default_id(layers: &Layers) -> Result<String, ConfigError> {
    let id = format!("{}:{}", layers.process_environment.host, layers.process_environment.pid);
    let complaint = format!("the host name makes {}, which cannot be an id; add --id and one", quoted(&id));
    znode::as_name(&id).ok_or_else(|| ConfigError::usage("--id", complaint))
}

/// Programs that run another program or a script: their file name does not identify a job.
const INTERPRETERS: &str = "sh bash dash ash ksh zsh fish csh tcsh busybox python perl ruby node php lua Rscript java pwsh env \
    nice ionice chrt taskset numactl prlimit nohup timeout setsid stdbuf flock sudo doas su runuser setpriv gosu chroot unshare nsenter \
    systemd-run docker podman npm npx dotnet";

/// `python3.11` is `python`.
fn is_interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.split(' ').any(|interpreter| interpreter == plain)
}

/// The command's file name, if it is a valid znode name. Two jobs of one interpreter would share an election, and the
/// second would wait for ever. With `--path`, the name is only for display.
fn default_name(program: &OsStr, has_path: bool) -> Result<String, ConfigError> {
    let name = Path::new(program).file_name().unwrap_or_default();
    if !has_path && name.to_str().is_some_and(is_interpreter) {
        let complaint = format!(
            "is missing: every job that {} runs would share one election; add --name and a name like nightly, the same on \
             every host",
            quoted(&name.to_string_lossy())
        );
        return Err(ConfigError::usage("--name", complaint));
    }
    name.to_str().and_then(znode::as_name).ok_or_else(|| {
        let complaint = format!(
            "the command's file name {} cannot be the name of a znode; add --name and a name like nightly",
            quoted(&name.to_string_lossy())
        );
        ConfigError::usage("--name", complaint)
    })
}
