//! The connections of a process to all other processes of a mesh, and the mesh's first failure, after which the mesh is unusable.
//!
//! Each pair of ranks has two connections. The control connection carries announcements, failures and reports of progress, and a thread
//! always reads it. The data connection carries pieces of arrays, which a thread writes and the exchanging thread reads. Two ranks can
//! therefore send large pieces to each other at the same time.
//!
//! A rank reads from one rank at a time, so a rank that sends to it may wait although neither hangs. Ranks therefore report that their
//! data moves, and a wait ends only after the time limit without such a report.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cuprum_core::{DType, Error, Result};

use crate::engines::Transfer;
use crate::processes::exchange_ledger::{ENCODED_ROUND_BYTES, ExchangeLedger, ExchangeRound};
use crate::processes::rank_connections::RankConnections;
use crate::processes::tcp_messages::{
    KeepWaiting, MAX_TEXT_BYTES, MessageDecoder, MessageEncoder, SOCKET_POLL_INTERVAL, WireError, read_full, read_message, write_full,
    write_message,
};

/// Time that this process waits for another rank to report the cause, before it reports a closed connection or a late rank itself.
const FAILURE_REPORT_GRACE: Duration = Duration::from_millis(300);
/// Time limit for reporting a failure to all other ranks.
const FAILURE_REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// First byte of a frame of the control connection that announces an exchange.
const ANNOUNCEMENT_FRAME: u8 = 1;
/// First byte of a frame of the control connection that reports a failure.
const FAILURE_FRAME: u8 = 2;
/// The only byte of a frame on the control connection that reports progress: the sender still transfers data.
const PROGRESS_FRAME: u8 = 3;
/// Number of progress reports that a transferring rank sends within one time limit.
const PROGRESS_REPORTS_PER_TIMEOUT: u32 = 20;

/// Bytes to send: a header, which may be empty, then a range of host memory.
pub(crate) struct SendJob {
    pub header: Vec<u8>,
    pub piece: Box<dyn AsRef<[u8]> + Send>,
    pub done: Sender<Result<()>>,
}

/// The connections to another rank, and the state of that rank.
struct Peer {
    rank: usize,
    control: Mutex<TcpStream>,
    data: TcpStream,
    /// Queue of the thread that sends to this rank. `None` after the connections are closed.
    jobs: Mutex<Option<Sender<SendJob>>>,
    /// Number of the last exchange that the rank has announced.
    announced: AtomicU64,
    is_closed: AtomicBool,
}

/// The connections of this process to all other processes of a mesh, shared by the threads that read and write them.
pub(crate) struct MeshConnections {
    rank: usize,
    size: usize,
    timeout: Duration,
    /// Creation time of these connections, to which other times are relative.
    started: Instant,
    /// Time at which any rank last reported progress on a data connection, in milliseconds since the connections were created.
    last_progress: AtomicU64,
    /// Earliest time at which this rank sends its next progress report, in milliseconds since the connections were created.
    next_report: AtomicU64,
    peers: Vec<Peer>,
    ledger: Mutex<ExchangeLedger>,
    failure: OnceLock<Error>,
    /// Wakes waiting threads when the mesh fails or a connection closes.
    change: (Mutex<()>, Condvar),
    is_ended: AtomicBool,
    /// Lock that is held during an exchange, so that exchanges do not overlap.
    exchanging: Mutex<()>,
}

impl MeshConnections {
    /// Starts the threads that read and write the given connections.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
    pub fn start_threads(rank: usize, size: usize, timeout: Duration, links: Vec<RankConnections>) -> Result<Arc<MeshConnections>> {
        let mut peers = Vec::new();
        let mut receivers: Vec<Receiver<SendJob>> = Vec::new();
        for link in links {
            let (sender, receiver) = channel();
            receivers.push(receiver);
            let (control, jobs) = (Mutex::new(link.control), Mutex::new(Some(sender)));
            peers.push(Peer {
                rank: link.rank,
                control,
                data: link.data,
                jobs,
                announced: AtomicU64::new(0),
                is_closed: AtomicBool::new(false),
            });
        }
        let connections = Arc::new(MeshConnections {
            rank,
            size,
            timeout,
            started: Instant::now(),
            last_progress: AtomicU64::new(0),
            next_report: AtomicU64::new(0),
            peers,
            ledger: Mutex::new(ExchangeLedger::new(size)),
            failure: OnceLock::new(),
            change: (Mutex::new(()), Condvar::new()),
            is_ended: AtomicBool::new(false),
            exchanging: Mutex::new(()),
        });
        for (n, receiver) in receivers.into_iter().enumerate() {
            let clone = |stream: &TcpStream| stream.try_clone().map_err(|e| Error::system("mesh connection", e));
            let peer = &connections.peers[n];
            let control = clone(&peer.control.lock().unwrap_or_else(|e| e.into_inner()))?;
            // Reads need no time limit, because `MeshConnections::close_connections` shuts the connection down.
            control.set_read_timeout(None).map_err(|e| Error::system("mesh connection", e))?;
            let data = clone(&peer.data)?;
            let (reading, sending) = (connections.clone(), connections.clone());
            start_thread("cuprum-mesh-control", move || reading.read_control_until_closed(n, &control))?;
            start_thread("cuprum-mesh-data", move || sending.run_send_jobs(n, &data, &receiver))?;
        }
        Ok(connections)
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the time limit of each wait for another process.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns the first failure of the mesh as an error. Returns `Ok` if the mesh has not failed.
    pub fn check_for_failure(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Stores `error` as the failure of the mesh and reports it to all ranks, unless the mesh has already failed. Returns the first
    /// failure.
    pub fn fail_mesh(&self, error: Error) -> Error {
        if self.failure.set(error.clone()).is_err() {
            return self.failure.get().cloned().unwrap_or(error);
        }
        self.signal_state_change();
        let (rank, message) = match &error {
            Error::Rank { rank, message, .. } => (*rank, message.clone()),
            other => (self.rank, format!("failed: {other}")),
        };
        let frame = MessageEncoder::default().write_u64(rank as u64).write_text(&message).0;
        let end = Instant::now() + FAILURE_REPORT_TIMEOUT;
        let mut keep_waiting = |_| if Instant::now() < end { Ok(()) } else { Err(error.clone()) };
        for peer in self.peers.iter().filter(|peer| !peer.is_closed.load(Ordering::Relaxed)) {
            let control = peer.control.lock().unwrap_or_else(|e| e.into_inner());
            // A rank that does not receive the report notices the closed connection or the missing data.
            let _ =
                write_full(&control, &[FAILURE_FRAME], &mut keep_waiting).and_then(|()| write_message(&control, &frame, &mut keep_waiting));
        }
        error
    }

    /// Records that the process of `rank` runs a different program, unless the mesh has already failed. Returns the first failure.
    ///
    /// The failure is not reported to other ranks. Other ranks compare the programs themselves, and a report would let `rank` blame this
    /// process.
    pub fn fail_by_program_difference(&self, rank: usize, message: String) -> Error {
        let error = Error::Rank { op: "mesh", rank, message };
        let _ = self.failure.set(error.clone());
        self.signal_state_change();
        self.failure.get().cloned().unwrap_or(error)
    }

    /// Waits up to `FAILURE_REPORT_GRACE` for another rank to report the cause. Without such a report, stores `error` as the failure and
    /// reports it. Returns the first failure.
    pub fn fail_mesh_after_grace(&self, error: Error) -> Error {
        let end = Instant::now() + FAILURE_REPORT_GRACE;
        while self.failure.get().is_none() && Instant::now() < end && !self.is_ended.load(Ordering::Relaxed) {
            std::thread::sleep(SOCKET_POLL_INTERVAL / 4);
        }
        self.fail_mesh(error)
    }

    /// Returns the ranks whose connections are closed.
    pub fn closed_ranks(&self) -> impl Iterator<Item = usize> {
        self.peers.iter().filter(|peer| peer.is_closed.load(Ordering::Acquire)).map(|peer| peer.rank)
    }

    /// Returns the error of a wait for `rank` that has exceeded the time limit. The error names the rank that has announced the fewest
    /// exchanges, which may be the cause.
    pub fn timeout_error(&self, rank: usize) -> Error {
        let announced = |peer: &&Peer| (peer.announced.load(Ordering::Relaxed), peer.rank != rank);
        let slowest = self.peers.iter().min_by_key(announced).map_or(rank, |peer| peer.rank);
        let last = self.peer_of_rank(slowest).map_or(0, |peer| peer.announced.load(Ordering::Relaxed));
        let message = format!("has not answered for {} s, after exchange {last}", self.timeout.as_secs());
        Error::Rank { op: "mesh", rank: slowest, message }
    }

    /// Runs an exchange: announces the exchange to all ranks, then calls `run`. An error of `run` marks the mesh as failed.
    pub fn run_exchange<R>(&self, dtype: DType, transfers: &[Transfer], run: impl FnOnce(ExchangeRound) -> Result<R>) -> Result<R> {
        let _exchanging = self.exchanging.lock().unwrap_or_else(|e| e.into_inner());
        self.check_for_failure()?;
        let (round, fault) = self.ledger.lock().unwrap_or_else(|e| e.into_inner()).begin_exchange(dtype, transfers);
        self.announce_exchange(&round)?;
        if let Some((rank, message)) = fault {
            return Err(self.fail_by_program_difference(rank, message));
        }
        run(round).map_err(|error| self.fail_mesh(error))
    }

    fn announce_exchange(&self, round: &ExchangeRound) -> Result<()> {
        let mut frame = vec![ANNOUNCEMENT_FRAME];
        frame.extend(round.to_bytes());
        for peer in self.peers.iter().filter(|peer| !peer.is_closed.load(Ordering::Relaxed)) {
            let control = peer.control.lock().unwrap_or_else(|e| e.into_inner());
            // A connection that has closed is ignored here. The exchange reports it only if this process waits for data of that rank.
            if let Err(WireError::Stopped(error)) = write_full(&control, &frame, &mut self.keep_waiting_for(peer.rank)) {
                drop(control);
                return Err(self.fail_mesh_after_grace(error));
            }
        }
        Ok(())
    }

    /// Returns a [`KeepWaiting`] function for a wait for data or messages of `rank`. The function ends the wait if the mesh fails. It also
    /// ends the wait if, for the duration of the time limit, neither this wait nor any data connection of the mesh makes progress.
    ///
    /// Progress elsewhere counts because `rank` may itself be waiting for a rank whose data arrives slowly.
    pub fn keep_waiting_for(&self, rank: usize) -> impl FnMut(Duration) -> Result<()> {
        move |idle| {
            self.check_for_failure()?;
            if idle < self.timeout || self.time_since_progress() < self.timeout { Ok(()) } else { Err(self.timeout_error(rank)) }
        }
    }

    /// Returns a [`KeepWaiting`] function like [`MeshConnections::keep_waiting_for`], for the data connection of `rank`. The function also
    /// reports the progress of the transfer.
    fn keep_waiting_for_transfer(&self, rank: usize) -> impl FnMut(Duration) -> Result<()> {
        let mut keep_waiting = self.keep_waiting_for(rank);
        move |idle| {
            if idle.is_zero() {
                self.report_progress();
            }
            keep_waiting(idle)
        }
    }

    fn millis_since_start(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    fn time_since_progress(&self) -> Duration {
        Duration::from_millis(self.millis_since_start().saturating_sub(self.last_progress.load(Ordering::Relaxed)))
    }

    fn progress_report_interval(&self) -> u64 {
        (self.timeout / PROGRESS_REPORTS_PER_TIMEOUT).as_millis() as u64
    }

    /// Records that data has moved, and reports it to all ranks unless the last report is recent.
    fn report_progress(&self) {
        let now = self.millis_since_start();
        self.last_progress.fetch_max(now, Ordering::Relaxed);
        let due = self.next_report.load(Ordering::Relaxed);
        let next = now + self.progress_report_interval();
        if now < due || self.next_report.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let mut try_once = |_| Err(Error::value("mesh", "the rank does not read"));
        for peer in self.peers.iter().filter(|peer| !peer.is_closed.load(Ordering::Relaxed)) {
            // A report may be dropped, because another report follows. Blocking on the lock could take as long as an announcement to a rank
            // that hangs.
            if let Ok(control) = peer.control.try_lock() {
                let _ = write_full(&control, &[PROGRESS_FRAME], &mut try_once);
            }
        }
    }

    /// Queues a job for the thread that sends to `rank`.
    pub fn queue_send_job(&self, rank: usize, job: SendJob) -> Result<()> {
        let ended = || Error::Rank { op: "mesh", rank, message: "has no connection".into() };
        let peer = self.peer_of_rank(rank).ok_or_else(ended)?;
        let jobs = peer.jobs.lock().unwrap_or_else(|e| e.into_inner());
        jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(ended)
    }

    /// Waits until `count` jobs are sent.
    pub fn await_send_jobs(&self, results: &Receiver<Result<()>>, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            match results.recv_timeout(SOCKET_POLL_INTERVAL) {
                Ok(result) => {
                    result?;
                    left -= 1;
                }
                Err(RecvTimeoutError::Timeout) => self.check_for_failure()?,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::value("mesh", "the thread of a connection has ended")),
            }
        }
        Ok(())
    }

    /// Reads from the data connection of a rank.
    pub fn receive_bytes(&self, rank: usize, out: &mut [u8]) -> Result<()> {
        let peer = self.peer_of_rank(rank).ok_or_else(|| Error::Rank { op: "mesh", rank, message: "has no connection".into() })?;
        match read_full(&peer.data, out, &mut self.keep_waiting_for_transfer(rank)) {
            Ok(()) => {
                self.report_progress();
                Ok(())
            }
            Err(e) => Err(self.fail_mesh_after_grace(e.into_rank_error(rank))),
        }
    }

    fn peer_of_rank(&self, rank: usize) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.rank == rank)
    }

    fn signal_state_change(&self) {
        drop(self.change.0.lock().unwrap_or_else(|e| e.into_inner()));
        self.change.1.notify_all();
    }

    /// Waits for a failure or a closed connection, but not longer than `limit`.
    pub fn await_failure_or_close(&self, limit: Duration) {
        let guard = self.change.0.lock().unwrap_or_else(|e| e.into_inner());
        drop(self.change.1.wait_timeout(guard, limit));
    }

    /// Handles the frames of peer number `n` until its control connection closes.
    fn read_control_until_closed(&self, n: usize, control: &TcpStream) {
        let peer = &self.peers[n];
        let mut keep_waiting = |_| Ok(());
        while self.handle_next_frame(peer, control, &mut keep_waiting).is_some() {}
        peer.is_closed.store(true, Ordering::Release);
        self.signal_state_change();
    }

    /// Reads one frame from the control connection of `peer` and acts on it. Returns `None` if the connection has ended or the frame is
    /// invalid.
    fn handle_next_frame(&self, peer: &Peer, control: &TcpStream, keep_waiting: KeepWaiting) -> Option<()> {
        let mut kind = [0];
        read_full(control, &mut kind, keep_waiting).ok()?;
        match kind[0] {
            ANNOUNCEMENT_FRAME => {
                let mut bytes = [0; ENCODED_ROUND_BYTES];
                read_full(control, &mut bytes, keep_waiting).ok()?;
                let round = ExchangeRound::from_bytes(&bytes);
                peer.announced.fetch_max(round.number, Ordering::Relaxed);
                let message = self.ledger.lock().unwrap_or_else(|e| e.into_inner()).compare_or_store_announcement(peer.rank, round);
                if let Some(message) = message {
                    self.fail_by_program_difference(peer.rank, message);
                }
            }
            FAILURE_FRAME => {
                let frame = read_message(control, 2 * MAX_TEXT_BYTES, keep_waiting).ok()?;
                let mut fields = MessageDecoder(&frame);
                let (rank, message) = (fields.read_usize()?, fields.read_text()?);
                self.record_reported_failure(peer.rank, rank, message);
            }
            // The sending rank makes no further report during the following interval, so progress is assumed until the interval ends.
            PROGRESS_FRAME => {
                let progress = self.millis_since_start() + self.progress_report_interval();
                self.last_progress.fetch_max(progress, Ordering::Relaxed);
            }
            _ => return None,
        }
        Some(())
    }

    /// Stores a failure that `reporter` has reported, unless the mesh has already failed. The failure is not passed on, because `reporter`
    /// reports it to all ranks.
    fn record_reported_failure(&self, reporter: usize, rank: usize, message: String) {
        // If the connection between two ranks fails, each of the two ranks reports the other one as failed.
        let rank = if rank == self.rank { reporter } else { rank };
        let _ = self.failure.set(Error::Rank { op: "mesh", rank, message });
        self.signal_state_change();
    }

    /// Sends the jobs in the queue of peer number `n` on its data connection, until the queue is closed.
    fn run_send_jobs(&self, n: usize, data: &TcpStream, jobs: &Receiver<SendJob>) {
        let rank = self.peers[n].rank;
        while let Ok(job) = jobs.recv() {
            let header = write_full(data, &job.header, &mut self.keep_waiting_for_transfer(rank));
            let sent = header.and_then(|()| write_full(data, (*job.piece).as_ref(), &mut self.keep_waiting_for_transfer(rank)));
            self.report_progress();
            let sent = sent.map_err(|e| self.fail_mesh_after_grace(e.into_rank_error(rank)));
            drop(job.piece);
            // If the exchange has ended after a failure, the receiver of the result is gone, and the error is ignored.
            let _ = job.done.send(sent);
        }
    }

    /// Closes all connections, which ends the threads that serve them.
    pub fn close_connections(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        for peer in &self.peers {
            *peer.jobs.lock().unwrap_or_else(|e| e.into_inner()) = None;
            let control = peer.control.lock().unwrap_or_else(|e| e.into_inner());
            // Errors are ignored, because the connection may already be closed.
            let _ = control.shutdown(Shutdown::Both);
            let _ = peer.data.shutdown(Shutdown::Both);
        }
    }
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = std::thread::Builder::new().name(name.into()).spawn(run);
    started.map(drop).map_err(|e| Error::system("mesh thread", e))
}
