//! Communication engine `tcp`: pieces of arrays travel over TCP connections between processes, through host memory.

use std::sync::Arc;
use std::sync::mpsc::channel;

use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Array, DType, Device, Error, Layout, NdArray, Result, StoredArray};

use super::{Engine, PieceEndpoint, Transfer};
use crate::processes::exchange_ledger::{ENCODED_ROUND_BYTES, ExchangeRound, describe_difference};
use crate::processes::mesh_connections::{MeshConnections, SendJob};

/// Maximum size of a transfer, in bytes. A piece is sent while the next piece is copied to host memory.
const MAX_TRANSFER_BYTES: usize = 16 << 20;

/// The communication engine that sends and receives over the connections of a [`MeshConnections`].
pub(crate) struct TcpEngine {
    connections: Arc<MeshConnections>,
    reason: String,
}

impl TcpEngine {
    /// Returns the engine over `connections`. `reason` says why the ranks use no communication library of their devices, such as NCCL.
    pub fn new(connections: Arc<MeshConnections>, reason: String) -> TcpEngine {
        TcpEngine { connections, reason }
    }

    /// Queues the pieces that this rank sends, one job per piece. Returns the number of jobs.
    fn queue_pieces(
        &self,
        dtype: DType,
        transfers: &[Transfer],
        round: &ExchangeRound,
        pieces: &mut dyn PieceEndpoint,
        done: &std::sync::mpsc::Sender<Result<()>>,
    ) -> Result<usize> {
        let own = self.connections.rank();
        let mut count = 0;
        for to in other_ranks_in_cyclic_order(own, self.connections.size()) {
            // The encoded description of the exchange precedes the first piece to each rank.
            let mut header = round.to_bytes().to_vec();
            for (n, transfer) in transfers.iter().enumerate().filter(|(_, t)| t.from == own && t.to == to) {
                let bytes = ContiguousHostArray::new(&pieces.piece_to_send(n)?)?;
                if bytes.as_ref().len() != transfer.nbytes(dtype) {
                    return Err(Error::value("mesh", "a piece does not have the size of its transfer"));
                }
                self.connections
                    .queue_send_job(to, SendJob { header: std::mem::take(&mut header), piece: Box::new(bytes), done: done.clone() })?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Receives the pieces for this rank. Returns an error if a sender runs a different exchange.
    fn receive_pieces(
        &self,
        member: Device,
        dtype: DType,
        transfers: &[Transfer],
        round: &ExchangeRound,
        pieces: &mut dyn PieceEndpoint,
    ) -> Result<()> {
        let own = self.connections.rank();
        for from in other_ranks_in_cyclic_order(own, self.connections.size()) {
            let mut expected = transfers.iter().enumerate().filter(|(_, t)| t.to == own && t.from == from).peekable();
            if expected.peek().is_none() {
                continue;
            }
            let mut header = [0; ENCODED_ROUND_BYTES];
            self.connections.receive_bytes(from, &mut header)?;
            let other = ExchangeRound::from_bytes(&header);
            if other != *round {
                let message = describe_difference(round, &other);
                let message =
                    message.unwrap_or_else(|| format!("runs another program: it is at exchange {}, not {}", other.number, round.number));
                return Err(self.connections.fail_by_program_difference(from, message));
            }
            for (n, transfer) in expected {
                let mut buffer = HostBuffer::uninit(transfer.nbytes(dtype))?;
                self.connections.receive_bytes(from, buffer.as_mut_bytes()?)?;
                if dtype == DType::Bool {
                    buffer.normalize_bools()?;
                }
                let array = StoredArray::new(dtype, Layout::contiguous(&transfer.shape)?, Arc::new(buffer))?;
                pieces.on_received(n, NdArray::from(array).to_device(member)?)?;
            }
        }
        Ok(())
    }
}

/// Returns the ranks other than `own` in cyclic order, starting with `own` + 1. Each rank thus starts with a different peer, so that not
/// all send to the same rank first.
fn other_ranks_in_cyclic_order(own: usize, size: usize) -> impl Iterator<Item = usize> {
    (1..size).map(move |n| (own + n) % size)
}

/// The elements of a C-contiguous array in host memory.
struct ContiguousHostArray(StoredArray);

impl ContiguousHostArray {
    fn new(array: &NdArray) -> Result<ContiguousHostArray> {
        let host = array.to_device(Device::CPU)?.stored()?;
        if host.layout().is_c_contiguous() {
            Ok(ContiguousHostArray(host))
        } else {
            NdArray::from(host).copy()?.stored().map(ContiguousHostArray)
        }
    }
}

impl AsRef<[u8]> for ContiguousHostArray {
    fn as_ref(&self) -> &[u8] {
        let item = self.0.dtype().itemsize();
        let start = self.0.layout().offset() * item;
        let buffer: Option<&HostBuffer> = self.0.buffer().as_any().downcast_ref();
        buffer.and_then(|buffer| buffer.as_bytes().get(start..start + self.0.layout().size() * item)).unwrap_or_default()
    }
}

impl Drop for TcpEngine {
    fn drop(&mut self) {
        self.connections.close_connections();
    }
}

impl Engine for TcpEngine {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn no_library_reason(&self) -> Option<&str> {
        Some(&self.reason)
    }

    fn max_transfer_bytes(&self) -> usize {
        MAX_TRANSFER_BYTES
    }

    fn perform_transfers(&self, members: &[Device], dtype: DType, transfers: &[Transfer], pieces: &mut dyn PieceEndpoint) -> Result<()> {
        let member = *members.first().ok_or_else(|| Error::value("mesh", "the process has no rank"))?;
        self.connections.run_exchange(dtype, transfers, |round| {
            let (done, results) = channel();
            let jobs = self.queue_pieces(dtype, transfers, &round, pieces, &done)?;
            drop(done);
            pieces.on_all_sent()?;
            self.receive_pieces(member, dtype, transfers, &round, pieces)?;
            self.connections.await_send_jobs(&results, jobs)
        })
    }

    fn check_for_failure(&self) -> Result<()> {
        self.connections.check_for_failure()
    }

    fn fail_mesh(&self, error: &Error) {
        self.connections.fail_mesh(error.clone());
    }
}
