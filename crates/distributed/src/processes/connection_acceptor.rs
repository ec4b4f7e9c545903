//! Acceptance of connections from other ranks. Each handshake runs on its own thread, so that a silent connection delays no other.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cuprum_core::{Error, Result};

use crate::processes::handshake::{Greeting, HandshakeSession, receive_greeting};
use crate::processes::tcp_messages::{keep_waiting_until, set_tcp_options};

/// Time limit of one handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of handshakes at the same time. Further connections wait until one of them ends.
const MAX_HANDSHAKES: usize = 64;
/// Maximum number of failed handshakes that an error lists.
const MAX_LISTED_FAILURES: usize = 4;
/// Time between two checks for new connections.
const ACCEPT_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A connection whose greeting is authenticated.
pub(crate) struct IncomingConnection {
    pub stream: TcpStream,
    pub address: SocketAddr,
    pub greeting: Greeting,
    pub session: HandshakeSession,
}

/// Accepts connections at one address.
pub(crate) struct Acceptor {
    listener: TcpListener,
    secret: String,
    sender: Sender<IncomingConnection>,
    incoming: Receiver<IncomingConnection>,
    /// Number of handshakes in progress.
    active: Arc<AtomicUsize>,
    /// Descriptions of failed handshakes.
    failures: Arc<Mutex<Vec<String>>>,
}

impl Acceptor {
    /// Accepts connections at `listener`.
    pub fn new(listener: TcpListener, secret: &str) -> Result<Acceptor> {
        listener.set_nonblocking(true).map_err(|e| Error::system("mesh listener", e))?;
        let (sender, incoming) = channel();
        let (active, failures) = (Arc::default(), Arc::default());
        Ok(Acceptor { listener, secret: secret.into(), sender, incoming, active, failures })
    }

    /// Returns the port at which the acceptor listens.
    pub fn port(&self) -> Result<u16> {
        self.listener.local_addr().map(|address| address.port()).map_err(|e| Error::system("mesh listener", e))
    }

    /// Returns the next connection whose handshake succeeds, or `None` after `end`.
    pub fn next_connection(&self, end: Instant) -> Option<IncomingConnection> {
        loop {
            let is_full = self.active.load(Ordering::Relaxed) >= MAX_HANDSHAKES;
            // While no further handshake may start, new connections wait in the backlog of the listening socket.
            let accepted = if is_full { Err(ErrorKind::WouldBlock.into()) } else { self.listener.accept() };
            match accepted {
                Ok((stream, address)) => self.start_handshake(stream, address),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    if let Ok(incoming) = self.incoming.recv_timeout(ACCEPT_POLL_INTERVAL) {
                        return Some(incoming);
                    }
                }
                // An error of one connection does not end the acceptor. Examples are a reset before the connection was accepted, and too
                // many open files.
                Err(e) => {
                    self.add_handshake_failure(format!("a connection failed: {e}"));
                    std::thread::sleep(ACCEPT_POLL_INTERVAL);
                }
            }
            if Instant::now() >= end {
                return self.incoming.try_recv().ok();
            }
        }
    }

    /// Returns the failed handshakes as a suffix of an error message.
    pub fn describe_failures(&self) -> String {
        let failures = self.failures.lock().unwrap_or_else(|e| e.into_inner());
        failures.iter().map(|failure| format!("; {failure}")).collect()
    }

    fn add_handshake_failure(&self, text: String) {
        push_handshake_failure(&self.failures, text);
    }

    fn start_handshake(&self, stream: TcpStream, address: SocketAddr) {
        self.active.fetch_add(1, Ordering::Relaxed);
        let (secret, sender, active, failures) = (self.secret.clone(), self.sender.clone(), self.active.clone(), self.failures.clone());
        let run = move || {
            let mut keep_waiting = keep_waiting_until(Instant::now() + HANDSHAKE_TIMEOUT, 0, || "took too long for its handshake".into());
            let ready = set_tcp_options(&stream).map_err(|e| e.to_string());
            let received = ready.and_then(|()| receive_greeting(&stream, &secret, &mut keep_waiting).map_err(|e| e.error_message()));
            match received {
                // If the acceptor has been dropped, nothing receives the connection, and dropping the connection closes it.
                Ok((greeting, session)) => drop(sender.send(IncomingConnection { stream, address, greeting, session })),
                Err(text) => push_handshake_failure(&failures, format!("the connection from {address} {text}")),
            }
            active.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().name("cuprum-handshake".into()).spawn(run).is_err() {
            self.active.fetch_sub(1, Ordering::Relaxed);
            self.add_handshake_failure(format!("no thread for the connection from {address}"));
        }
    }
}

fn push_handshake_failure(failures: &Mutex<Vec<String>>, text: String) {
    let mut failures = failures.lock().unwrap_or_else(|e| e.into_inner());
    if failures.len() < MAX_LISTED_FAILURES && !failures.contains(&text) {
        failures.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::handshake::{ConnectionPurpose, LibraryOffer, send_greeting};

    #[test]
    fn connections_wait_while_others_are_silent() {
        let acceptor = Acceptor::new(TcpListener::bind("127.0.0.1:0").unwrap(), "").unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], acceptor.port().unwrap()));
        let connect = |_| TcpStream::connect(address).unwrap();
        let silent: Vec<TcpStream> = (0..MAX_HANDSHAKES).map(connect).collect();
        let stream = connect(0);
        set_tcp_options(&stream).unwrap();
        let waiting = std::thread::spawn(move || {
            let offer = LibraryOffer::default();
            let greeting = Greeting { version: "1".into(), size: 2, rank: 1, purpose: ConnectionPurpose::Join, port: 1, offer };
            let mut keep_waiting = keep_waiting_until(Instant::now() + HANDSHAKE_TIMEOUT, 0, || "does not answer".into());
            send_greeting(&stream, "", 0, &greeting, &mut keep_waiting).unwrap().is_some()
        });
        assert!(acceptor.next_connection(Instant::now() + Duration::from_millis(300)).is_none());
        assert_eq!(acceptor.active.load(Ordering::Relaxed), MAX_HANDSHAKES);
        drop(silent);
        assert_eq!(acceptor.next_connection(Instant::now() + Duration::from_secs(5)).unwrap().greeting.rank, 1);
        assert!(waiting.join().unwrap());
    }
}
