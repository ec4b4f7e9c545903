//! The connections of each pair of ranks: the higher rank connects, the lower one accepts.

use std::net::TcpStream;
use std::time::Instant;

use cuprum_core::{Error, Result};

use crate::processes::handshake::{ConnectionPurpose, send_greeting};
use crate::processes::rendezvous::{JoiningProcess, RendezvousResult};
use crate::processes::tcp_messages::{connect_with_timeout, keep_waiting_until};

/// The two connections to another rank.
pub(crate) struct RankConnections {
    pub rank: usize,
    pub control: TcpStream,
    pub data: TcpStream,
}

/// Maximum size of the reply to a greeting, in bytes.
const MAX_REPLY_BYTES: usize = 4096;

/// Connects to all lower ranks, and accepts the connections of all higher ranks.
///
/// # Errors
/// Returns [`Error::Rank`] if a rank cannot be reached or does not connect in time.
pub(crate) fn connect_to_other_ranks(candidate: &JoiningProcess, meeting: &RendezvousResult) -> Result<Vec<RankConnections>> {
    let end = Instant::now() + candidate.timeout;
    let mut links = Vec::new();
    for (rank, address) in meeting.addresses.iter().enumerate() {
        let open = |purpose: ConnectionPurpose| -> Result<TcpStream> {
            let late = || format!("does not answer at {address} within {} s", candidate.timeout.as_secs());
            let failed = |e: std::io::Error| Error::Rank { op: "mesh", rank, message: format!("is not reached at {address}: {e}") };
            let mut keep_waiting = keep_waiting_until(end, rank, late);
            loop {
                let left = end.saturating_duration_since(Instant::now()).max(std::time::Duration::from_millis(1));
                let stream = connect_with_timeout(address, left).map_err(failed)?;
                let greeting = candidate.make_greeting(purpose, 0);
                if let Some(session) = send_greeting(&stream, candidate.secret_or_empty(), rank, &greeting, &mut keep_waiting)? {
                    session.await_reply(&stream, rank, MAX_REPLY_BYTES, &mut keep_waiting)?;
                    return Ok(stream);
                }
            }
        };
        links.push(RankConnections { rank, control: open(ConnectionPurpose::Control)?, data: open(ConnectionPurpose::Data)? });
    }
    let mut halves: Vec<[Option<TcpStream>; 2]> = (candidate.rank + 1..candidate.size).map(|_| [None, None]).collect();
    while let Some(missing) = halves.iter().position(|pair| pair.iter().any(Option::is_none)) {
        let Some(incoming) = meeting.acceptor.next_connection(end) else {
            let message = format!("has not connected within {} s{}", candidate.timeout.as_secs(), meeting.acceptor.describe_failures());
            return Err(Error::Rank { op: "mesh", rank: candidate.rank + 1 + missing, message });
        };
        let (rank, purpose) = (incoming.greeting.rank, incoming.greeting.purpose);
        let mut keep_waiting = keep_waiting_until(end, rank, || "does not receive a reply".into());
        let slot = rank.checked_sub(candidate.rank + 1).and_then(|n| halves.get_mut(n)).and_then(|pair| match purpose {
            ConnectionPurpose::Control => Some(&mut pair[0]),
            ConnectionPurpose::Data => Some(&mut pair[1]),
            ConnectionPurpose::Join => None,
        });
        match slot {
            Some(slot @ None) => {
                incoming.session.accept_connection(&incoming.stream, &[], &mut keep_waiting).map_err(|e| e.into_rank_error(rank))?;
                *slot = Some(incoming.stream);
            }
            _ => {
                // The refusal is only a courtesy, so errors are ignored: without the refusal, the other process sees a closed connection.
                let _ = incoming.session.refuse_connection(&incoming.stream, rank, "exists twice", &mut keep_waiting);
                return Err(Error::Rank { op: "mesh", rank, message: "exists twice".into() });
            }
        }
    }
    for (n, pair) in halves.into_iter().enumerate() {
        if let [Some(control), Some(data)] = pair {
            links.push(RankConnections { rank: candidate.rank + 1 + n, control, data });
        }
    }
    Ok(links)
}
