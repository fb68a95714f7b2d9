//! Text for the next program of this process: JSON in a sealed memory file.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The file is at its beginning.
///
/// # Errors
/// If there is no memory, or a name is not UTF-8.
pub fn write(name: &CStr, content: &impl Serialize) -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let mut file = File::from(memfd_create(name, flags)?);
    file.write_all(&serde_json::to_vec(content)?)?;
    file.rewind()?;
    let seals = SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file)
}

/// # Errors
/// If it is none.
pub fn read<T: DeserializeOwned>(file: File) -> io::Result<T> {
    Ok(serde_json::from_reader(file)?)
}
