//! The rendezvous of the processes of a mesh. Rank 0 checks every rank that joins, and sends to each rank the addresses of the other ranks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use cuprum_core::settings::mesh::{ADDRESS_VARIABLE, SECRET_VARIABLE};
use cuprum_core::{Error, Result};

use crate::processes::connection_acceptor::{Acceptor, IncomingConnection};
use crate::processes::engine_choice::{EngineChoice, choose_engine};
use crate::processes::handshake::{CONNECT_RETRY_INTERVAL, ConnectionPurpose, Greeting, HandshakeSession, LibraryOffer, send_greeting};
use crate::processes::tcp_messages::{MAX_TEXT_BYTES, MessageDecoder, MessageEncoder, connect_with_timeout, keep_waiting_until};

/// Additional time that ranks other than 0 wait, so that they receive the error of rank 0.
const EXTRA_WAIT_OF_OTHER_RANKS: Duration = Duration::from_secs(2);

/// The properties with which this process joins a mesh.
#[derive(Clone, Debug)]
pub(crate) struct JoiningProcess {
    pub rank: usize,
    /// Number of ranks.
    pub size: usize,
    /// Host and port of rank 0.
    pub address: String,
    pub secret: Option<String>,
    pub timeout: Duration,
    /// Version of this crate.
    pub version: String,
    pub offer: LibraryOffer,
    /// A random number. The number of rank 0 seeds the random generators of all ranks, unless the user sets a seed.
    pub entropy: u64,
}

/// The result of a rendezvous.
pub(crate) struct RendezvousResult {
    pub engine: EngineChoice,
    /// The `entropy` of rank 0.
    pub entropy: u64,
    /// Addresses at which the lower ranks accept connections, by rank.
    pub addresses: Vec<SocketAddr>,
    pub acceptor: Acceptor,
}

impl JoiningProcess {
    /// Returns the greeting of a connection to another rank.
    pub fn make_greeting(&self, purpose: ConnectionPurpose, port: u16) -> Greeting {
        let offer = if purpose == ConnectionPurpose::Join { self.offer.clone() } else { LibraryOffer::default() };
        Greeting { version: self.version.clone(), size: self.size, rank: self.rank, purpose, port, offer }
    }

    /// Returns the secret, or an empty string if none is set, which is allowed on loopback addresses only.
    pub fn secret_or_empty(&self) -> &str {
        self.secret.as_deref().unwrap_or_default()
    }

    /// Returns the socket addresses of rank 0.
    ///
    /// # Errors
    /// Returns an error if the host cannot be resolved, or if no secret is set and an address is not a loopback address.
    fn resolve_address(&self) -> Result<Vec<SocketAddr>> {
        let resolved = self.address.to_socket_addrs().map_err(|e| format!("the address {} of rank 0: {e}", self.address));
        let addresses: Vec<SocketAddr> = resolved.map_err(|message| Error::Device { op: "mesh", message })?.collect();
        if self.secret.is_none() && !addresses.iter().all(|address| address.ip().is_loopback()) {
            let message = format!("is not set; processes at {}, which is not a loopback address, need the same secret", self.address);
            return Err(Error::Setting { variable: SECRET_VARIABLE, message });
        }
        Ok(addresses)
    }
}

/// Runs the rendezvous with the other processes.
///
/// # Errors
/// Returns [`Error::Rank`] if a rank does not join in time, joins twice, or has a different version, number of ranks or secret.
pub(crate) fn run_rendezvous(candidate: &JoiningProcess) -> Result<RendezvousResult> {
    if candidate.rank == 0 { run_as_rank_0(candidate) } else { run_as_other_rank(candidate) }
}

/// Listens at the address of rank 0. If this machine does not have the address, listens at the same port on all addresses of the machine.
fn listen_as_rank_0(candidate: &JoiningProcess) -> Result<TcpListener> {
    let addresses = candidate.resolve_address()?;
    let failed = |e: std::io::Error| {
        let message = format!("cannot listen at {}: {e}; {ADDRESS_VARIABLE} sets another address", candidate.address);
        Error::Rank { op: "mesh", rank: 0, message }
    };
    match TcpListener::bind(&addresses[..]) {
        Err(e) if e.kind() == std::io::ErrorKind::AddrNotAvailable => {
            let any = |address: &SocketAddr| {
                let ip = if address.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
                SocketAddr::new(ip, address.port())
            };
            TcpListener::bind(&addresses.iter().map(any).collect::<Vec<_>>()[..]).map_err(failed)
        }
        bound => bound.map_err(failed),
    }
}

fn run_as_rank_0(candidate: &JoiningProcess) -> Result<RendezvousResult> {
    let acceptor = Acceptor::new(listen_as_rank_0(candidate)?, candidate.secret_or_empty())?;
    let end = Instant::now() + candidate.timeout;
    let mut joined: Vec<Option<IncomingConnection>> = (1..candidate.size).map(|_| None).collect();
    let failure = loop {
        let missing: Vec<usize> = (1..candidate.size).filter(|rank| joined[rank - 1].is_none()).collect();
        let Some(&first) = missing.first() else { break None };
        let Some(incoming) = acceptor.next_connection(end) else {
            let others = if missing.len() > 1 { format!(", nor have {} other ranks", missing.len() - 1) } else { String::new() };
            let message = format!("has not joined within {} s{others}{}", candidate.timeout.as_secs(), acceptor.describe_failures());
            break Some((first, message, None));
        };
        let rank = incoming.greeting.rank;
        if let Some(message) = reason_to_refuse(candidate, &incoming.greeting, |rank| joined[rank - 1].is_some()) {
            break Some((rank, message, Some(incoming)));
        }
        joined[rank - 1] = Some(incoming);
    };
    if let Some((rank, message, last)) = failure {
        let mut keep_waiting = keep_waiting_until(Instant::now() + EXTRA_WAIT_OF_OTHER_RANKS, 0, || "took too long".into());
        for incoming in joined.iter().flatten().chain(&last) {
            // The refusal is only a courtesy, so errors are ignored: without the refusal, the other process sees a closed connection.
            let _ = incoming.session.refuse_connection(&incoming.stream, rank, &message, &mut keep_waiting);
        }
        return Err(Error::Rank { op: "mesh", rank, message });
    }
    let joined: Vec<IncomingConnection> = joined.into_iter().flatten().collect();
    let offers: Vec<LibraryOffer> = std::iter::once(&candidate.offer).chain(joined.iter().map(|i| &i.greeting.offer)).cloned().collect();
    let engine = choose_engine(&offers);
    let addresses: Vec<SocketAddr> = joined.iter().map(|i| SocketAddr::new(i.address.ip(), i.greeting.port)).collect();
    let message = encode_reply(&engine, candidate.entropy, &addresses);
    for incoming in &joined {
        let rank = incoming.greeting.rank;
        let mut keep_waiting =
            keep_waiting_until(end + EXTRA_WAIT_OF_OTHER_RANKS, rank, || "does not receive the addresses of the ranks".into());
        incoming.session.accept_connection(&incoming.stream, &message, &mut keep_waiting).map_err(|e| e.into_rank_error(rank))?;
    }
    Ok(RendezvousResult { engine, entropy: candidate.entropy, addresses: Vec::new(), acceptor })
}

/// Returns why rank 0 refuses a greeting, or `None` if the rank may join.
fn reason_to_refuse(candidate: &JoiningProcess, greeting: &Greeting, has_joined: impl Fn(usize) -> bool) -> Option<String> {
    let Greeting { version, size, rank, .. } = greeting;
    if *version != candidate.version {
        return Some(format!("has version {version} of cuprum, rank 0 has {}", candidate.version));
    }
    if *size != candidate.size {
        return Some(format!("expects {size} ranks, rank 0 expects {}", candidate.size));
    }
    if *rank >= candidate.size {
        return Some(format!("is out of range: the mesh has {} ranks", candidate.size));
    }
    if *rank == 0 || has_joined(*rank) {
        return Some("exists twice".into());
    }
    (greeting.purpose != ConnectionPurpose::Join).then(|| "connects before it has joined".into())
}

fn run_as_other_rank(candidate: &JoiningProcess) -> Result<RendezvousResult> {
    let addresses = candidate.resolve_address()?;
    let end = Instant::now() + candidate.timeout;
    let late = || format!("has not answered within {} s", candidate.timeout.as_secs());
    let mut keep_waiting = keep_waiting_until(end + EXTRA_WAIT_OF_OTHER_RANKS, 0, late);
    let (stream, acceptor, session): (TcpStream, Acceptor, HandshakeSession) = loop {
        let stream = connect_with_retries(candidate, &addresses, end)?;
        // Higher ranks connect to the local address from which this rank reaches rank 0, so the listener binds that address.
        let local = stream.local_addr().and_then(|own| TcpListener::bind(SocketAddr::new(own.ip(), 0)));
        let acceptor = Acceptor::new(local.map_err(|e| Error::system("mesh listener", e))?, candidate.secret_or_empty())?;
        let greeting = candidate.make_greeting(ConnectionPurpose::Join, acceptor.port()?);
        if let Some(session) = send_greeting(&stream, candidate.secret_or_empty(), 0, &greeting, &mut keep_waiting)? {
            break (stream, acceptor, session);
        }
    };
    let reply = session.await_reply(&stream, 0, 4 * MAX_TEXT_BYTES + candidate.size * MAX_TEXT_BYTES / 8, &mut keep_waiting)?;
    let leader = stream.peer_addr().map_err(|e| Error::system("mesh connection", e))?;
    let decoded = decode_reply(&reply, candidate.size);
    let (engine, entropy, others) =
        decoded.ok_or_else(|| Error::Rank { op: "mesh", rank: 0, message: "sends addresses that end early".into() })?;
    let addresses = std::iter::once(leader).chain(others).take(candidate.rank).collect();
    Ok(RendezvousResult { engine, entropy, addresses, acceptor })
}

/// Connects to rank 0. Retries until `end`, because rank 0 may start later.
fn connect_with_retries(candidate: &JoiningProcess, addresses: &[SocketAddr], end: Instant) -> Result<TcpStream> {
    loop {
        let mut last = None;
        for address in addresses {
            let left = end.saturating_duration_since(Instant::now()).max(CONNECT_RETRY_INTERVAL);
            match connect_with_timeout(address, left) {
                Ok(stream) => return Ok(stream),
                Err(e) => last = Some(e),
            }
        }
        if Instant::now() >= end {
            let reason = last.map_or_else(|| "no address".into(), |e| e.to_string());
            let message = format!("is not reached at {} within {} s: {reason}", candidate.address, candidate.timeout.as_secs());
            return Err(Error::Rank { op: "mesh", rank: 0, message });
        }
        std::thread::sleep(CONNECT_RETRY_INTERVAL);
    }
}

/// Encodes the reply of rank 0 to joining ranks. `addresses` are the addresses of ranks 1, 2 and so on.
fn encode_reply(engine: &EngineChoice, entropy: u64, addresses: &[SocketAddr]) -> Vec<u8> {
    let fields = match engine {
        EngineChoice::Tcp { reason } => MessageEncoder::default().write_u8(0).write_text(reason).write_bytes(&[]),
        EngineChoice::Library { name, id } => MessageEncoder::default().write_u8(1).write_text(name).write_bytes(id),
    };
    addresses.iter().fold(fields.write_u64(entropy), |fields, address| fields.write_text(&address.to_string())).0
}

fn decode_reply(message: &[u8], size: usize) -> Option<(EngineChoice, u64, Vec<SocketAddr>)> {
    let mut fields = MessageDecoder(message);
    let (has_library, text, id) = (fields.read_u8()? == 1, fields.read_text()?, fields.read_bytes()?.to_vec());
    let engine = if has_library { EngineChoice::Library { name: text, id } } else { EngineChoice::Tcp { reason: text } };
    let entropy = fields.read_u64()?;
    let addresses = (1..size).map(|_| fields.read_text()?.parse().ok()).collect::<Option<Vec<_>>>()?;
    Some((engine, entropy, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_rank_0_is_read_as_written() {
        let addresses: Vec<SocketAddr> = vec!["10.0.0.1:80".parse().unwrap(), "[::1]:443".parse().unwrap()];
        for engine in [EngineChoice::Tcp { reason: "why".into() }, EngineChoice::Library { name: "lib".into(), id: vec![3; 128] }] {
            let message = encode_reply(&engine, 42, &addresses);
            assert_eq!(decode_reply(&message, 3), Some((engine, 42, addresses.clone())));
            assert_eq!(decode_reply(&message, 4), None);
            (0..message.len()).for_each(|end| assert_eq!(decode_reply(&message[..end], 3), None));
        }
    }
}
