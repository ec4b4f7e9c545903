//! The handshake of a new connection: each side proves that it knows the shared secret, and the connecting side says which rank it is.
//!
//! The accepting side sends a nonce. The connecting side answers with its own nonce, its greeting, and an authentication code of both
//! nonces and the greeting. The code of the reply covers both nonces too, so that neither side accepts a replayed message.

use std::net::TcpStream;
use std::time::Duration;

use cuprum_core::{Error, Result};

use crate::processes::authentication::{HASH_BYTES, Hash, authentication_code, is_equal_in_constant_time, new_nonce};
use crate::processes::tcp_messages::{
    KeepWaiting, MAX_TEXT_BYTES, MessageDecoder, MessageEncoder, WireError, read_full, read_message, write_full, write_message,
};

const PROTOCOL_MAGIC: &[u8; 8] = b"cuprumsh";
/// Version of the handshake messages and of the frames that processes of a mesh exchange.
const PROTOCOL_VERSION: u16 = 1;
const HANDSHAKE_HEADER_BYTES: usize = 8 + 2 + HASH_BYTES;
/// Time between two attempts to connect to another rank.
pub(crate) const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(25);
/// Largest greeting in bytes.
const MAX_GREETING_BYTES: usize = 6 * MAX_TEXT_BYTES;

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionPurpose {
    /// A process joins the mesh: the connection to rank 0 during the rendezvous.
    Join,
    /// The control connection of two ranks, which carries announcements of exchanges and failures.
    Control,
    /// Pieces of arrays.
    Data,
}

/// The communication library by which a rank can exchange data between devices, or the reason why the rank cannot use one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LibraryOffer {
    /// Kind of the rank's device.
    pub kind: String,
    /// Name of the communication library. Empty if the rank cannot use such a library.
    pub library: String,
    /// Version of the communication library, or the reason why the rank cannot use such a library.
    pub detail: String,
    /// Identifier of the physical device.
    pub device_id: Vec<u8>,
}

/// The first message of the connecting side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// Version of this crate.
    pub version: String,
    /// Number of ranks of the mesh.
    pub size: usize,
    pub rank: usize,
    pub purpose: ConnectionPurpose,
    /// Port at which the rank accepts connections of higher ranks.
    pub port: u16,
    pub offer: LibraryOffer,
}

impl Greeting {
    fn encode_greeting(&self) -> Vec<u8> {
        let LibraryOffer { kind, library, detail, device_id } = &self.offer;
        let fields = MessageEncoder::default()
            .write_text(&self.version)
            .write_u64(self.size as u64)
            .write_u64(self.rank as u64)
            .write_u8(self.purpose as u8);
        fields.write_u64(u64::from(self.port)).write_text(kind).write_text(library).write_text(detail).write_bytes(device_id).0
    }

    fn decode_greeting(bytes: &[u8]) -> Option<Greeting> {
        let mut fields = MessageDecoder(bytes);
        let (version, size, rank) = (fields.read_text()?, fields.read_usize()?, fields.read_usize()?);
        let code = fields.read_u8()?;
        let purpose =
            [ConnectionPurpose::Join, ConnectionPurpose::Control, ConnectionPurpose::Data].into_iter().find(|p| *p as u8 == code)?;
        let port = u16::try_from(fields.read_u64()?).ok()?;
        let offer = LibraryOffer {
            kind: fields.read_text()?,
            library: fields.read_text()?,
            detail: fields.read_text()?,
            device_id: fields.read_bytes()?.to_vec(),
        };
        Some(Greeting { version, size, rank, purpose, port, offer })
    }
}

/// The decision of the accepting side about a connection. The discriminant is the first byte of the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplyStatus {
    Accepted = 0,
    /// The connection is refused. The reply contains the reason.
    Refused = 1,
    /// The two sides have different secrets, so the connecting side cannot verify the authentication code of this reply.
    WrongSecret = 2,
}

/// The secret and the nonces of one connection, which authenticate the reply to its greeting.
pub(crate) struct HandshakeSession {
    secret: String,
    /// Nonce of the accepting side, then of the connecting side.
    nonces: [Hash; 2],
}

impl HandshakeSession {
    fn reply_authentication_code(&self, status: ReplyStatus, body: &[u8]) -> Hash {
        authentication_code(&self.secret, &[b"reply", &self.nonces[0], &self.nonces[1], &[status as u8], body])
    }

    fn send_reply(&self, stream: &TcpStream, status: ReplyStatus, body: &[u8], keep_waiting: KeepWaiting) -> Result<(), WireError> {
        let code = self.reply_authentication_code(status, body);
        write_full(stream, &[status as u8], keep_waiting)?;
        write_full(stream, &code, keep_waiting)?;
        write_message(stream, body, keep_waiting)
    }

    /// Accepts the connection with the message `body`.
    pub fn accept_connection(&self, stream: &TcpStream, body: &[u8], keep_waiting: KeepWaiting) -> Result<(), WireError> {
        self.send_reply(stream, ReplyStatus::Accepted, body, keep_waiting)
    }

    /// Refuses the connection because of a failure of rank `rank`.
    pub fn refuse_connection(&self, stream: &TcpStream, rank: usize, message: &str, keep_waiting: KeepWaiting) -> Result<(), WireError> {
        self.send_reply(stream, ReplyStatus::Refused, &MessageEncoder::default().write_u64(rank as u64).write_text(message).0, keep_waiting)
    }

    /// Waits for the reply of the accepting side, rank `server`. Returns the message in the reply, of at most `limit` bytes.
    ///
    /// # Errors
    /// Returns the error that the other side sends, or an error if the secrets differ or the connection closes.
    pub fn await_reply(&self, stream: &TcpStream, server: usize, limit: usize, keep_waiting: KeepWaiting) -> Result<Vec<u8>> {
        let of_server = |message: String| Error::Rank { op: "mesh", rank: server, message };
        let (mut status, mut code) = ([0], [0; HASH_BYTES]);
        read_full(stream, &mut status, keep_waiting).map_err(|e| e.into_rank_error(server))?;
        read_full(stream, &mut code, keep_waiting).map_err(|e| e.into_rank_error(server))?;
        let body = read_message(stream, limit, keep_waiting).map_err(|e| e.into_rank_error(server))?;
        let status = [ReplyStatus::Accepted, ReplyStatus::Refused, ReplyStatus::WrongSecret].into_iter().find(|s| *s as u8 == status[0]);
        let status = status
            .filter(|s| *s == ReplyStatus::WrongSecret || is_equal_in_constant_time(&code, &self.reply_authentication_code(*s, &body)));
        match status {
            Some(ReplyStatus::Accepted) => Ok(body),
            Some(ReplyStatus::Refused) => {
                let mut fields = MessageDecoder(&body);
                let (rank, message) = (fields.read_usize().unwrap_or(server), fields.read_text().unwrap_or_default());
                Err(Error::Rank { op: "mesh", rank, message })
            }
            Some(ReplyStatus::WrongSecret) => {
                Err(of_server("has another secret; set CUPRUM_MESH_SECRET to the same text everywhere".into()))
            }
            None => Err(of_server("does not know the secret in CUPRUM_MESH_SECRET".into())),
        }
    }
}

fn encode_header(nonce: &Hash) -> Vec<u8> {
    [&PROTOCOL_MAGIC[..], &PROTOCOL_VERSION.to_le_bytes(), nonce].concat()
}

/// Reads the magic number, the protocol version and the nonce of the other side.
fn read_header(stream: &TcpStream, keep_waiting: KeepWaiting) -> Result<Hash, WireError> {
    let mut bytes = [0; HANDSHAKE_HEADER_BYTES];
    read_full(stream, &mut bytes, keep_waiting)?;
    let (magic, rest) = bytes.split_at(PROTOCOL_MAGIC.len());
    let (protocol, nonce) = rest.split_at(2);
    if magic != PROTOCOL_MAGIC {
        return Err(WireError::Fault("is not a process of a mesh".into()));
    }
    if protocol != PROTOCOL_VERSION.to_le_bytes() {
        let other = u16::from_le_bytes([protocol[0], protocol[1]]);
        return Err(WireError::Fault(format!("has version {other} of the mesh protocol, not {PROTOCOL_VERSION}")));
    }
    nonce.try_into().map_err(|_| WireError::Fault("sends a short nonce".into()))
}

/// Sends the greeting to rank `server`.
///
/// Returns `None` if the other side closes the connection before sending its header, for example because it cannot start a thread. The
/// caller then connects again.
pub(crate) fn send_greeting(
    stream: &TcpStream,
    secret: &str,
    server: usize,
    greeting: &Greeting,
    keep_waiting: KeepWaiting,
) -> Result<Option<HandshakeSession>> {
    let received = match read_header(stream, keep_waiting) {
        Err(WireError::Closed(_)) => {
            std::thread::sleep(CONNECT_RETRY_INTERVAL);
            return keep_waiting(CONNECT_RETRY_INTERVAL).map(|()| None);
        }
        received => received.map_err(|e| e.into_rank_error(server))?,
    };
    let nonces = [received, new_nonce()];
    let body = greeting.encode_greeting();
    let authentication_code = authentication_code(secret, &[b"greeting", &nonces[0], &nonces[1], &body]);
    for bytes in [&encode_header(&nonces[1])[..], &authentication_code] {
        write_full(stream, bytes, keep_waiting).map_err(|e| e.into_rank_error(server))?;
    }
    write_message(stream, &body, keep_waiting).map_err(|e| e.into_rank_error(server))?;
    Ok(Some(HandshakeSession { secret: secret.into(), nonces }))
}

/// Receives the greeting of a connection and checks its authentication code. The caller sends the reply, unless this function fails.
///
/// # Errors
/// Returns an error if the connection closes, or if the other side does not follow the mesh protocol or has a different secret.
pub(crate) fn receive_greeting(
    stream: &TcpStream,
    secret: &str,
    keep_waiting: KeepWaiting,
) -> Result<(Greeting, HandshakeSession), WireError> {
    let own = new_nonce();
    write_full(stream, &encode_header(&own), keep_waiting)?;
    let session = HandshakeSession { secret: secret.into(), nonces: [own, read_header(stream, keep_waiting)?] };
    let mut sent = [0; HASH_BYTES];
    read_full(stream, &mut sent, keep_waiting)?;
    let body = read_message(stream, MAX_GREETING_BYTES, keep_waiting)?;
    if !is_equal_in_constant_time(&sent, &authentication_code(secret, &[b"greeting", &session.nonces[0], &session.nonces[1], &body])) {
        session.send_reply(stream, ReplyStatus::WrongSecret, &[], keep_waiting)?;
        return Err(WireError::Fault("has another secret".into()));
    }
    let greeting = Greeting::decode_greeting(&body).ok_or_else(|| WireError::Fault("sends a greeting that ends early".into()))?;
    Ok((greeting, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_read_as_written() {
        let offer = LibraryOffer { kind: "cuda".into(), library: "nccl".into(), detail: "2.28.3".into(), device_id: vec![1, 2] };
        let greeting = Greeting { version: "1.2.3".into(), size: 4, rank: 3, purpose: ConnectionPurpose::Data, port: 99, offer };
        let bytes = greeting.encode_greeting();
        assert_eq!(Greeting::decode_greeting(&bytes), Some(greeting));
        (0..bytes.len()).for_each(|end| assert_eq!(Greeting::decode_greeting(&bytes[..end]), None));
    }
}
