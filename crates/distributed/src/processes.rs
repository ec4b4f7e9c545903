//! Meshes over several processes: launchers' variables, the rendezvous, and the connections between processes.
//!
//! The modules, lowest layer first: `wire` and `authentication`; `handshake`; `acceptor` and `engine_choice`; `rendezvous`;
//! `rank_connections`; `ledger`; `world`. `launch` reads the variables of launchers.

pub(crate) mod acceptor;
pub(crate) mod authentication;
pub(crate) mod engine_choice;
pub(crate) mod handshake;
pub(crate) mod launcher_environment;
pub(crate) mod ledger;
pub(crate) mod rank_connections;
pub(crate) mod rendezvous;
pub(crate) mod wire;
pub(crate) mod world;

#[cfg(test)]
mod tests;
