//! The JSON of a znode: an object with the version of its format in the field `v`.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of every format.
pub(crate) const VERSION: u32 = 1;

/// Why the content of a znode cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("{0}")]
    Json(String),
    #[error("its format is version {0}")]
    Version(u32),
    #[error("it is held with a lease of 0 ms")]
    NoLease,
    #[error("it has an order without an id")]
    OrderWithoutId,
}

/// Reads the JSON of a format whose version is `version`.
///
/// # Errors
///
/// It is not of this shape, or of another version.
pub(crate) fn read<T: DeserializeOwned>(data: &[u8], version: impl FnOnce(&T) -> u32) -> Result<T, SchemaError> {
    let read = serde_json::from_slice(data).map_err(|error| SchemaError::Json(error.to_string()))?;
    match version(&read) {
        VERSION => Ok(read),
        other => Err(SchemaError::Version(other)),
    }
}

/// Plain structs of numbers and strings always serialize.
pub(crate) fn written(json: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(json).unwrap_or_default()
}
