//! Where the election is, who takes part, and how candidates line up.

use std::ffi::OsStr;
use std::path::Path;

use super::election_path;
use super::error::{Refusal, quoted};
use super::source::layers::Layers;
use super::value::ensemble::{self, Ensemble};
use super::value::znode::{self, ZnodePath};
use crate::core::settings::Recipe;
use crate::zookeeper::schema::recipe::RECIPES;

pub struct Place {
    pub ensemble: Ensemble,
    pub name: String,
    pub base: ZnodePath,
    pub election: ZnodePath,
    pub is_shared: bool,
    pub id: String,
    pub recipe: Recipe,
}

pub fn read(layers: &Layers, program: &OsStr) -> Result<Place, Refusal> {
    let ensemble = ensemble::read(layers)?;
    let name = match layers.given("name")? {
        Some(given) => znode::name(&given)?,
        None => name_of(program)?,
    };
    let base = match layers.given("path")? {
        Some(given) => znode::path(&given)?,
        None => znode::default_root().join(&name),
    };
    let id = match layers.given("id")? {
        Some(given) => znode::name(&given)?,
        None => default_id(layers)?,
    };
    let recipe = layers.required("recipe")?.one_of(&RECIPES)?;
    let shared = layers.given("election-path")?;
    let shared = shared.map(|given| election_path::election(&given, &base, recipe)).transpose()?;
    let (is_shared, election) = (shared.is_some(), shared.unwrap_or_else(|| base.join(election_path::OWN)));
    Ok(Place { ensemble, name, base, election, is_shared, id, recipe })
}

fn default_id(layers: &Layers) -> Result<String, Refusal> {
    let id = format!("{}:{}", layers.surroundings.host, layers.surroundings.pid);
    let complaint = format!("the host name makes {}, which cannot be an id; add --id and one", quoted(&id));
    znode::as_name(&id).ok_or_else(|| Refusal::usage("--id", complaint))
}

/// The command's file name, if a znode may be called that.
fn name_of(program: &OsStr) -> Result<String, Refusal> {
    let name = Path::new(program).file_name().unwrap_or_default();
    name.to_str().and_then(znode::as_name).ok_or_else(|| {
        let complaint = format!(
            "the command's file name {} cannot be the name of a znode; add --name and a name like nightly",
            quoted(&name.to_string_lossy())
        );
        Refusal::usage("--name", complaint)
    })
}
