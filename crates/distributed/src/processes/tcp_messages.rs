//! Reads and writes of a given number of bytes on TCP streams, and the encoding of small messages. The caller decides how long a read or
//! write waits.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use cuprum_core::host_buffer::try_reserve;
use cuprum_core::{Error, Result};

/// Maximum time that one attempt to read or write blocks. The [`KeepWaiting`] function is called after each attempt.
pub(crate) const SOCKET_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A function that is called until a read or write is complete, with the time since the last progress. An error ends the wait.
pub(crate) type KeepWaiting<'a> = &'a mut dyn FnMut(Duration) -> Result<()>;

/// The reason why a read or write ended before its last byte.
#[derive(Debug)]
pub(crate) enum WireError {
    /// The other process closed the connection, or the connection failed.
    Closed(String),
    /// The other process does not follow the mesh protocol, or has another secret.
    Fault(String),
    /// The caller stopped waiting.
    Stopped(Error),
}

impl WireError {
    /// Converts the I/O error to a cuprum error. `rank` is the rank of the other process.
    pub fn into_rank_error(self, rank: usize) -> Error {
        match self {
            WireError::Closed(message) | WireError::Fault(message) => Error::Rank { op: "mesh", rank, message },
            WireError::Stopped(error) => error,
        }
    }

    /// Returns the error message, without the rank of the other process.
    pub fn error_message(&self) -> String {
        match self {
            WireError::Closed(message) | WireError::Fault(message) | WireError::Stopped(Error::Rank { message, .. }) => message.clone(),
            WireError::Stopped(error) => error.to_string(),
        }
    }
}

/// Returns a [`KeepWaiting`] function that ends the wait at `end`. The error names `rank` and has the message that `late` returns.
pub(crate) fn keep_waiting_until(end: Instant, rank: usize, late: impl Fn() -> String) -> impl FnMut(Duration) -> Result<()> {
    move |_| if Instant::now() < end { Ok(()) } else { Err(Error::Rank { op: "mesh", rank, message: late() }) }
}

/// Sets the timeouts and other options that reads and writes of this module require.
pub(crate) fn set_tcp_options(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SOCKET_POLL_INTERVAL))?;
    stream.set_write_timeout(Some(SOCKET_POLL_INTERVAL))
}

/// Connects to `address` within `limit`, and prepares the connection.
pub(crate) fn connect_with_timeout(address: &SocketAddr, limit: Duration) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, limit)?;
    // If nothing listens at a port of this machine, the system may also assign that port to the new socket. The socket is then connected to
    // itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    set_tcp_options(&stream)?;
    Ok(stream)
}

/// Fills `out` from the stream.
pub(crate) fn read_full(mut stream: &TcpStream, out: &mut [u8], keep_waiting: KeepWaiting) -> Result<(), WireError> {
    transfer_until_complete(out.len(), keep_waiting, |done| stream.read(&mut out[done..]))
}

/// Writes all of `bytes` to the stream.
pub(crate) fn write_full(mut stream: &TcpStream, bytes: &[u8], keep_waiting: KeepWaiting) -> Result<(), WireError> {
    transfer_until_complete(bytes.len(), keep_waiting, |done| stream.write(&bytes[done..]))
}

/// Calls `step` with the number of bytes transferred so far, until this number is `len`. `step` returns the number of bytes that it has
/// transferred.
fn transfer_until_complete(
    len: usize,
    keep_waiting: KeepWaiting,
    mut step: impl FnMut(usize) -> std::io::Result<usize>,
) -> Result<(), WireError> {
    let (mut done, mut last) = (0, Instant::now());
    while done < len {
        match step(done) {
            Ok(0) => return Err(WireError::Closed("closed its connection".into())),
            Ok(n) => {
                done += n;
                last = Instant::now();
                // `keep_waiting` is called even after progress, so that a deadline ends a transfer that is slow but never stalls.
                if done < len {
                    keep_waiting(Duration::ZERO).map_err(WireError::Stopped)?;
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                keep_waiting(last.elapsed()).map_err(WireError::Stopped)?;
            }
            Err(e) => return Err(WireError::Closed(format!("closed its connection ({e})"))),
        }
    }
    Ok(())
}

/// Writes the length of a message, then the message.
pub(crate) fn write_message(stream: &TcpStream, message: &[u8], keep_waiting: KeepWaiting) -> Result<(), WireError> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    write_full(stream, &length.to_le_bytes(), keep_waiting)?;
    write_full(stream, message, keep_waiting)
}

/// Reads a message of at most `limit` bytes.
pub(crate) fn read_message(stream: &TcpStream, limit: usize, keep_waiting: KeepWaiting) -> Result<Vec<u8>, WireError> {
    let mut length = [0; 4];
    read_full(stream, &mut length, keep_waiting)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > limit {
        return Err(WireError::Fault(format!("sends a message of {length} bytes, above the limit of {limit}")));
    }
    let mut message = Vec::new();
    try_reserve("mesh", &mut message, length).map_err(WireError::Stopped)?;
    message.resize(length, 0);
    read_full(stream, &mut message, keep_waiting)?;
    Ok(message)
}

/// Maximum size of a text in a message, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 1000;

/// Writes the fields of a message.
#[derive(Default)]
pub(crate) struct MessageEncoder(pub Vec<u8>);

impl MessageEncoder {
    /// Appends an integer of one byte.
    pub fn write_u8(mut self, value: u8) -> MessageEncoder {
        self.0.push(value);
        self
    }

    /// Appends an integer.
    pub fn write_u64(mut self, value: u64) -> MessageEncoder {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends the length of `bytes`, then `bytes`. Bytes after the first [`MAX_TEXT_BYTES`] are left out.
    pub fn write_bytes(mut self, bytes: &[u8]) -> MessageEncoder {
        let bytes = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
        self.0.extend((bytes.len() as u16).to_le_bytes());
        self.0.extend(bytes);
        self
    }

    /// Appends text, shortened to [`MAX_TEXT_BYTES`] bytes.
    pub fn write_text(self, text: &str) -> MessageEncoder {
        let end = (0..=text.len().min(MAX_TEXT_BYTES)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.write_bytes(&text.as_bytes()[..end])
    }
}

/// Reads the fields of a message. Each method returns `None` if the message ends before the end of the field.
pub(crate) struct MessageDecoder<'a>(pub &'a [u8]);

impl<'a> MessageDecoder<'a> {
    fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns the next integer of one byte.
    pub fn read_u8(&mut self) -> Option<u8> {
        self.take_bytes(1).map(|bytes| bytes[0])
    }

    /// Returns the next integer.
    pub fn read_u64(&mut self) -> Option<u64> {
        self.take_bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Reads the next integer of the message as an index. Returns `None` if the message ends before it, or if it exceeds `usize`.
    pub fn read_usize(&mut self) -> Option<usize> {
        self.read_u64().and_then(|value| usize::try_from(value).ok())
    }

    /// Returns the next bytes.
    pub fn read_bytes(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.take_bytes(2)?.try_into().ok()?);
        self.take_bytes(usize::from(length))
    }

    /// Returns the next text.
    pub fn read_text(&mut self) -> Option<String> {
        self.read_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_where_their_fields_end() {
        let long = "é".repeat(MAX_TEXT_BYTES);
        let message = MessageEncoder::default().write_u8(7).write_u64(1 << 40).write_text("rank").write_text(&long).0;
        let mut decoder = MessageDecoder(&message);
        assert_eq!((decoder.read_u8(), decoder.read_usize(), decoder.read_text()), (Some(7), Some(1 << 40), Some("rank".into())));
        assert_eq!(decoder.read_text().map(|text| text.len()), Some(MAX_TEXT_BYTES));
        assert_eq!((decoder.read_u8(), decoder.read_u64(), decoder.read_bytes()), (None, None, None));
        assert_eq!(MessageDecoder(&message[..5]).read_u64().and(MessageDecoder(&message[..5]).read_text()), None);
        // A length beyond the end of the message is no field.
        assert_eq!(MessageDecoder(&[255, 255, 1]).read_bytes(), None);
    }

    #[test]
    fn reads_refuse_long_messages_and_end_when_the_caller_stops() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (reader, _) = listener.accept().unwrap();
        [&writer, &reader].iter().for_each(|stream| set_tcp_options(stream).unwrap());
        let mut forever = |_| Ok(());
        write_message(&writer, b"abc", &mut forever).unwrap();
        assert_eq!(read_message(&reader, 3, &mut forever).unwrap(), b"abc");
        write_full(&writer, &u32::MAX.to_le_bytes(), &mut forever).unwrap();
        assert!(read_message(&reader, 3, &mut forever).unwrap_err().error_message().contains("above the limit of 3"));
        let end = Instant::now() + Duration::from_millis(30);
        let late = read_full(&reader, &mut [0], &mut keep_waiting_until(end, 4, || "is late".into())).unwrap_err();
        assert_eq!(late.error_message(), "is late");
        assert_eq!(late.into_rank_error(1).to_string(), "[mesh] rank 4 is late");
        let slow = std::thread::spawn(move || {
            for _ in 0..40 {
                write_full(&writer, &[0], &mut |_| Ok(())).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let end = Instant::now() + Duration::from_millis(50);
        read_full(&reader, &mut [0; 40], &mut keep_waiting_until(end, 4, || "is late".into())).unwrap_err();
        slow.join().unwrap();
        while read_full(&reader, &mut [0], &mut forever).is_ok() {}
        let closed = read_full(&reader, &mut [0], &mut forever).unwrap_err().into_rank_error(1);
        assert!(closed.to_string().starts_with("[mesh] rank 1 closed its connection"), "{closed}");
    }

    #[test]
    fn a_connection_does_not_reach_itself() {
        // Linux gives even ports to connections first.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let address = SocketAddr::new(free.ip(), free.port() & !1);
        let end = Instant::now() + Duration::from_millis(500);
        while Instant::now() < end {
            if let Ok(stream) = connect_with_timeout(&address, Duration::from_secs(1)) {
                assert_ne!(stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            }
        }
    }
}
