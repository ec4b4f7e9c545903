//! Communication engine over the communication library of the devices, such as NCCL: pieces travel between device memories without the
//! host.
//!
//! Exchanges are queued on the devices, and a thread watches the queued exchanges. After a failure, a closed connection or the time limit,
//! this thread aborts them. Received values are then undefined, so readers check for a failure after they have read the values.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cuprum_core::device::collectives::{Communicator, ReceivedPiece, SentPiece};
use cuprum_core::device::{DeviceEvent, driver};
use cuprum_core::{DType, Device, Error, Layout, NdArray, Result, StoredArray, Stream};

use super::{Engine, PieceEndpoint, Transfer};
use crate::processes::mesh_connections::MeshConnections;

/// Time between two checks of queued exchanges.
const QUEUE_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Time between two checks if no exchange is queued.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Time that a started exchange may still take after one of its ranks has closed the connection. Data that this rank sent before may still
/// arrive.
const CLOSED_CONNECTION_GRACE: Duration = Duration::from_millis(400);

/// An exchange that is queued on the device.
struct QueuedExchange {
    /// Event that the device reaches when it begins the exchange.
    begin: Box<dyn DeviceEvent>,
    end: Box<dyn DeviceEvent>,
    /// Time at which the watching thread first saw that the device had begun the exchange; `None` before.
    seen: Option<Instant>,
    /// Ranks with which the rank of this process exchanges pieces in this exchange.
    ranks: Vec<usize>,
}

/// The communication engine that sends and receives by a [`Communicator`].
pub(crate) struct LibraryEngine(Arc<LibraryEngineState>);

struct LibraryEngineState {
    name: &'static str,
    connections: Arc<MeshConnections>,
    communicator: Box<dyn Communicator>,
    queued: Mutex<VecDeque<QueuedExchange>>,
}

impl LibraryEngine {
    /// Returns the engine, and starts the thread that watches exchanges.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn new(name: &'static str, connections: Arc<MeshConnections>, communicator: Box<dyn Communicator>) -> Result<LibraryEngine> {
        let state = Arc::new(LibraryEngineState { name, connections, communicator, queued: Mutex::new(VecDeque::new()) });
        let watched = state.clone();
        let watch = move || {
            while watched.check_or_abort_exchanges() {
                let is_idle = watched.queued.lock().unwrap_or_else(|e| e.into_inner()).is_empty();
                watched.connections.await_failure_or_close(if is_idle { IDLE_CHECK_INTERVAL } else { QUEUE_CHECK_INTERVAL });
            }
        };
        let started = std::thread::Builder::new().name("cuprum-mesh-watch".into()).spawn(watch);
        started.map_err(|e| Error::system("mesh thread", e))?;
        Ok(LibraryEngine(state))
    }
}

impl LibraryEngineState {
    /// Removes finished exchanges from the queue. After a failure, aborts the remaining exchanges and returns false.
    fn check_or_abort_exchanges(&self) -> bool {
        match self
            .connections
            .check_for_failure()
            .and_then(|()| self.communicator.check_async_error())
            .and_then(|()| self.check_queued_exchanges())
        {
            Ok(()) => true,
            Err(error) => {
                // The failure is stored before the abort. A reader that sees undefined values of an aborted exchange then sees the failure
                // too.
                self.connections.fail_mesh_after_grace(error);
                self.communicator.abort();
                self.queued.lock().unwrap_or_else(|e| e.into_inner()).clear();
                false
            }
        }
    }

    /// Removes finished exchanges from the queue. Returns an error if the first remaining exchange takes too long.
    fn check_queued_exchanges(&self) -> Result<()> {
        let mut queued = self.queued.lock().unwrap_or_else(|e| e.into_inner());
        while let Some(first) = queued.front_mut() {
            // An exchange with a device error counts as finished, because the next operation on the device returns the error. The mesh is
            // not marked as failed, because this error also occurs while a process exits.
            if first.end.is_reached().unwrap_or(true) {
                queued.pop_front();
                continue;
            }
            if first.seen.is_none() && first.begin.is_reached().unwrap_or(false) {
                first.seen = Some(Instant::now());
            }
            let Some(seen) = first.seen else { return Ok(()) };
            let closed = self.connections.closed_ranks().find(|rank| first.ranks.contains(rank));
            if let Some(rank) = closed.filter(|_| seen.elapsed() > CLOSED_CONNECTION_GRACE) {
                return Err(Error::Rank { op: "mesh", rank, message: "closed its connection".into() });
            }
            if seen.elapsed() > self.connections.timeout() {
                return Err(self.connections.timeout_error(first.ranks.first().copied().unwrap_or(self.connections.rank())));
            }
            return Ok(());
        }
        Ok(())
    }
}

impl Drop for LibraryEngine {
    fn drop(&mut self) {
        self.0.connections.close_connections();
    }
}

impl Engine for LibraryEngine {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn perform_transfers(&self, members: &[Device], dtype: DType, transfers: &[Transfer], pieces: &mut dyn PieceEndpoint) -> Result<()> {
        let state = &self.0;
        let device = *members.first().ok_or_else(|| Error::value("mesh", "the process has no rank"))?;
        let own = state.connections.rank();
        state.connections.run_exchange(dtype, transfers, |_| {
            let (mut sends, mut receives, mut indices) = (Vec::new(), Vec::new(), Vec::new());
            for (n, transfer) in transfers.iter().enumerate() {
                let nbytes = transfer.nbytes(dtype);
                if transfer.from == own {
                    let array = pieces.piece_to_send(n)?.contiguous()?.stored()?;
                    let byte_offset = array.layout().offset() * dtype.itemsize();
                    sends.push(SentPiece { to: transfer.to, buffer: array.buffer().clone(), byte_offset, nbytes });
                } else if transfer.to == own {
                    receives.push(ReceivedPiece { from: transfer.from, nbytes });
                    indices.push(n);
                }
            }
            let mut ranks: Vec<usize> = sends.iter().map(|s| s.to).chain(receives.iter().map(|r| r.from)).collect();
            ranks.sort_unstable();
            ranks.dedup();
            let Some(&first) = ranks.first() else { return pieces.on_all_sent() };
            let stream = Stream::current(device);
            let begin = driver(device)?.record_event(stream)?;
            let started = Instant::now();
            let mut patience = state.connections.keep_waiting_for(first);
            let mut keep_waiting = || {
                if let Some(rank) = state.connections.closed_ranks().find(|rank| ranks.contains(rank)) {
                    return Err(Error::Rank { op: "mesh", rank, message: "closed its connection".into() });
                }
                patience(started.elapsed())
            };
            let buffers = state.communicator.send_and_receive(&sends, &receives, &mut keep_waiting)?;
            let end = driver(device)?.record_event(stream)?;
            state.queued.lock().unwrap_or_else(|e| e.into_inner()).push_back(QueuedExchange { begin, end, seen: None, ranks });
            pieces.on_all_sent()?;
            for (n, buffer) in indices.into_iter().zip(buffers) {
                let array = StoredArray::new(dtype, Layout::contiguous(&transfers[n].shape)?, buffer)?;
                pieces.on_received(n, NdArray::from(array))?;
            }
            Ok(())
        })
    }

    fn check_for_failure(&self) -> Result<()> {
        self.0.connections.check_for_failure()
    }

    fn fail_mesh(&self, error: &Error) {
        self.0.connections.fail_mesh(error.clone());
    }

    fn wait_for_exchanges(&self) -> Result<()> {
        loop {
            self.0.connections.check_for_failure()?;
            if self.0.queued.lock().unwrap_or_else(|e| e.into_inner()).is_empty() {
                return self.0.connections.check_for_failure();
            }
            std::thread::sleep(QUEUE_CHECK_INTERVAL / 5);
        }
    }
}
