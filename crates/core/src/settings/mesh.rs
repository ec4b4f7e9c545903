//! Settings of meshes over several processes: address, secret, time limit and communication library (engine).

use std::time::Duration;

use crate::error::{Error, Result};
use crate::settings::{SettingCheck, env};

/// Name of the environment variable for the address at which rank 0 of a mesh listens.
pub const ADDRESS_VARIABLE: &str = "CUPRUM_MESH_ADDRESS";
/// Name of the environment variable for the secret that the processes of a mesh share.
pub const SECRET_VARIABLE: &str = "CUPRUM_MESH_SECRET";
/// Name of the environment variable for the time limit of each wait for another process.
pub const TIMEOUT_VARIABLE: &str = "CUPRUM_MESH_TIMEOUT";
/// Name of the environment variable for the communication library (engine) that moves data between processes ([`MeshEngine`]).
pub const ENGINE_VARIABLE: &str = "CUPRUM_MESH_ENGINE";

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum accepted value of `CUPRUM_MESH_TIMEOUT`, in seconds.
const MAX_TIMEOUT_SECONDS: u64 = 1_000_000;

/// The communication library (engine) of a mesh over several processes (`CUPRUM_MESH_ENGINE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeshEngine {
    /// The communication library for the kind of the mesh's devices, such as NCCL, if all ranks have it; else TCP. The default.
    Auto,
    /// TCP, with copies through host memory.
    Tcp,
}

/// Returns the value of `CUPRUM_MESH_ADDRESS`, a host and a port such as `node0:29500`; `None` if it is not set.
///
/// # Errors
/// [`Error::Setting`] if the value is not a host and a port.
pub fn address() -> Result<Option<String>> {
    let Some(text) = env(ADDRESS_VARIABLE) else { return Ok(None) };
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => Ok(Some(text)),
        _ => Err(Error::Setting { variable: ADDRESS_VARIABLE, message: format!("'{text}' is not an address; use HOST:PORT") }),
    }
}

/// Returns the value of `CUPRUM_MESH_SECRET`; `None` if it is not set.
pub fn secret() -> Option<String> {
    env(SECRET_VARIABLE)
}

/// Returns the value of `CUPRUM_MESH_TIMEOUT`, by default 60 seconds.
///
/// # Errors
/// [`Error::Setting`] if the value is not a number of seconds from 1 to 1,000,000.
pub fn timeout() -> Result<Duration> {
    let Some(text) = env(TIMEOUT_VARIABLE) else { return Ok(DEFAULT_TIMEOUT) };
    match text.parse::<u64>() {
        Ok(seconds @ 1..=MAX_TIMEOUT_SECONDS) => Ok(Duration::from_secs(seconds)),
        _ => {
            let message = format!("'{text}' is not a number of seconds; use 1 to {MAX_TIMEOUT_SECONDS}");
            Err(Error::Setting { variable: TIMEOUT_VARIABLE, message })
        }
    }
}

/// Returns the value of `CUPRUM_MESH_ENGINE`.
///
/// # Errors
/// [`Error::Setting`] for an unknown value.
pub fn engine() -> Result<MeshEngine> {
    match env(ENGINE_VARIABLE).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "auto" => Ok(MeshEngine::Auto),
        "tcp" => Ok(MeshEngine::Tcp),
        other => Err(Error::Setting { variable: ENGINE_VARIABLE, message: format!("'{other}' is not known; use auto or tcp") }),
    }
}

inventory::submit! {
    SettingCheck { variable: ADDRESS_VARIABLE, needs_devices: false, run: || address().and(timeout()).and(engine()).map(|_| ()) }
}
