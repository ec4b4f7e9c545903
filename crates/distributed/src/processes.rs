//! Meshes over several processes: launchers' variables, the rendezvous, and the connections between processes.
//!
//! The modules, lowest layer first: `tcp_messages` and `authentication`; `handshake`; `connection_acceptor` and `engine_choice`;
//! `rendezvous`; `rank_connections`; `exchange_ledger`; `mesh_connections`. `launcher_environment` reads the variables of launchers.

pub(crate) mod authentication;
pub(crate) mod connection_acceptor;
pub(crate) mod engine_choice;
pub(crate) mod exchange_ledger;
pub(crate) mod handshake;
pub(crate) mod launcher_environment;
pub(crate) mod mesh_connections;
pub(crate) mod rank_connections;
pub(crate) mod rendezvous;
pub(crate) mod tcp_messages;

#[cfg(test)]
mod tests;
