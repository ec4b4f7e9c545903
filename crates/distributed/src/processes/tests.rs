//! Rendezvous, exchanges and failures of several ranks, each on a thread of its own.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuprum_backend_cpu as _;
use cuprum_core::{DType, Device, Error, NdArray, Result};

use crate::engines::{Engine, PieceEndpoint, TcpEngine, Transfer};
use crate::processes::engine_choice::{EngineChoice, make_library_offer};
use crate::processes::mesh_connections::{MeshConnections, SendJob};
use crate::processes::rank_connections::connect_to_other_ranks;
use crate::processes::rendezvous::{JoiningProcess, run_rendezvous};

/// Returns the address of a port that was free a moment ago.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("127.0.0.1:{}", listener.local_addr().unwrap().port())
}

/// Returns `size` ranks with a time limit of two seconds.
fn candidates(size: usize) -> Vec<JoiningProcess> {
    let address = free_address();
    let offer = make_library_offer(Device::CPU, cuprum_core::settings::mesh::MeshEngine::Auto);
    let candidate = |rank| JoiningProcess {
        rank,
        size,
        address: address.clone(),
        secret: None,
        timeout: Duration::from_secs(2),
        version: "1.0.0".into(),
        offer: offer.clone(),
        entropy: rank as u64,
    };
    (0..size).map(candidate).collect()
}

/// A rank after the rendezvous.
struct Rank {
    connections: Arc<MeshConnections>,
    engine: TcpEngine,
}

impl Rank {
    fn join(candidate: &JoiningProcess) -> Result<Rank> {
        let meeting = run_rendezvous(candidate)?;
        assert_eq!(meeting.entropy, 0);
        let EngineChoice::Tcp { reason } = &meeting.engine else { panic!("the host has no library") };
        let connections = MeshConnections::start_threads(
            candidate.rank,
            candidate.size,
            candidate.timeout,
            connect_to_other_ranks(candidate, &meeting)?,
        )?;
        Ok(Rank { engine: TcpEngine::new(connections.clone(), reason.clone()), connections })
    }

    /// Sends `values` numbers to each rank and receives as many from each.
    fn all_to_all(&self, values: usize) -> Result<Vec<(usize, NdArray)>> {
        let (own, size) = (self.connections.rank(), self.connections.size());
        let pairs = (0..size).flat_map(|from| (0..size).map(move |to| (from, to))).filter(|(from, to)| from != to);
        let transfers: Vec<Transfer> = pairs.map(|(from, to)| Transfer { from, to, shape: [values].into_iter().collect() }).collect();
        let mut numbers = Numbers { own, values, transfers: &transfers, received: Vec::new() };
        self.engine.perform_transfers(&[Device::CPU], DType::F64, &transfers, &mut numbers)?;
        let received = numbers.received;
        for (n, array) in &received {
            let first = (1000 * transfers[*n].from + own) as f64;
            assert!(array.to_vec::<f64>()?.iter().enumerate().all(|(n, value)| *value == first + n as f64));
        }
        Ok(received)
    }
}

/// Pieces of `values` numbers, which depend on the sender and the receiver.
struct Numbers<'a> {
    own: usize,
    values: usize,
    transfers: &'a [Transfer],
    received: Vec<(usize, NdArray)>,
}

impl PieceEndpoint for Numbers<'_> {
    fn piece_to_send(&mut self, transfer: usize) -> Result<NdArray> {
        let first = (1000 * self.own + self.transfers[transfer].to) as f64;
        NdArray::from_vec((0..self.values).map(|n| first + n as f64).collect::<Vec<_>>(), self.values)
    }

    fn on_all_sent(&mut self) -> Result<()> {
        Ok(())
    }

    fn on_received(&mut self, transfer: usize, array: NdArray) -> Result<()> {
        self.received.push((transfer, array));
        Ok(())
    }
}

/// Runs `f` for each candidate on a thread of its own, and returns the results.
fn run<R: Send>(candidates: &[JoiningProcess], f: impl Fn(&JoiningProcess) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = candidates.iter().map(|candidate| scope.spawn(|| f(candidate))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Runs a rendezvous and returns the errors, empty for none.
fn errors(candidates: &[JoiningProcess]) -> Vec<String> {
    run(candidates, |candidate| Rank::join(candidate).map(drop).map_err(|e| e.to_string()).err().unwrap_or_default())
}

#[test]
fn ranks_exchange_pieces_larger_than_the_buffers_of_connections() {
    for size in [2, 4] {
        let received = run(&candidates(size), |candidate| {
            let rank = Rank::join(candidate).unwrap();
            (0..20).for_each(|n| drop(rank.all_to_all(n + 1).unwrap()));
            rank.all_to_all(1 << 20).unwrap().len()
        });
        assert!(received.iter().all(|n| *n == size - 1));
    }
}

#[test]
fn secrets_are_compared() {
    let mut ranks = candidates(3);
    ranks.iter_mut().for_each(|rank| rank.secret = Some("open sesame".into()));
    assert_eq!(errors(&ranks), ["", "", ""]);
    let mut ranks = candidates(2);
    ranks[1].secret = Some("sesame".into());
    let [first, second]: [String; 2] = errors(&ranks).try_into().unwrap();
    assert!(first.starts_with("[mesh] rank 1 has not joined within 2 s; the connection from 127.0.0.1:"), "{first}");
    assert!(first.ends_with("has another secret"), "{first}");
    assert!(second.starts_with("[mesh] rank 0 has another secret; set CUPRUM_MESH_SECRET"), "{second}");
    let mut ranks = candidates(2);
    ranks.truncate(1);
    ranks[0].address = "192.0.2.1:9".into();
    assert!(errors(&ranks)[0].starts_with("CUPRUM_MESH_SECRET: is not set; processes at 192.0.2.1:9"), "{:?}", errors(&ranks));
}

#[test]
fn faults_of_a_rank_are_told_to_all() {
    let fault = |change: &dyn Fn(&mut JoiningProcess), message: &str| {
        let mut ranks = candidates(3);
        change(&mut ranks[2]);
        let found = errors(&ranks);
        assert_eq!((&found[0], &found[2]), (&message.to_string(), &message.to_string()));
        // Rank 1 may join after the fault was found, when rank 0 has left.
        assert!(found[1] == message || found[1].starts_with("[mesh] rank 0 "), "{found:?}");
    };
    fault(&|rank| rank.rank = 1, "[mesh] rank 1 exists twice");
    fault(&|rank| rank.size = 4, "[mesh] rank 2 expects 4 ranks, rank 0 expects 3");
    fault(&|rank| (rank.rank, rank.size) = (3, 3), "[mesh] rank 3 is out of range: the mesh has 3 ranks");
    fault(&|rank| rank.version = "0.9.0".into(), "[mesh] rank 2 has version 0.9.0 of cuprum, rank 0 has 1.0.0");
}

#[test]
fn missing_ranks_end_the_wait() {
    let mut ranks = candidates(4);
    ranks.truncate(2);
    let started = Instant::now();
    let want = "[mesh] rank 2 has not joined within 2 s, nor have 1 other ranks".to_string();
    assert_eq!(errors(&ranks), [want.clone(), want]);
    let mut ranks = candidates(2);
    ranks.remove(0);
    ranks[0].timeout = Duration::from_secs(1);
    let error = errors(&ranks).remove(0);
    assert!(error.starts_with("[mesh] rank 0 is not reached at 127.0.0.1:"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn strangers_do_not_end_a_rendezvous() {
    let ranks = candidates(2);
    let address = ranks[0].address.clone();
    let stranger = std::thread::spawn(move || {
        let end = Instant::now() + Duration::from_secs(2);
        let mut streams = Vec::new();
        while streams.len() < 3 && Instant::now() < end {
            if let Ok(mut stream) = std::net::TcpStream::connect(&address) {
                let _ = std::io::Write::write_all(&mut stream, &[b'x'; 64][..64 * streams.len().min(1)]);
                streams.push(stream);
            }
        }
        streams.len()
    });
    let joined = run(&ranks, |candidate| {
        std::thread::sleep(Duration::from_millis(300 * candidate.rank as u64));
        Rank::join(candidate).map(|rank| rank.all_to_all(3).unwrap().len()).unwrap()
    });
    assert_eq!((joined, stranger.join().unwrap()), (vec![1, 1], 3));
}

#[test]
fn a_closed_connection_is_opened_again() {
    let joined = run(&candidates(2), |candidate| {
        if candidate.rank == 0 {
            drop(TcpListener::bind(&candidate.address).unwrap().accept().unwrap());
        }
        Rank::join(candidate).map(|rank| rank.all_to_all(3).unwrap().len()).unwrap()
    });
    assert_eq!(joined, [1, 1]);
}

/// Joins three ranks, runs `last` on rank 2, and returns the errors of the others' exchanges.
fn failures(last: impl Fn(&Rank) + Sync) -> Vec<String> {
    let failure = |candidate: &JoiningProcess| {
        let rank = Rank::join(candidate).unwrap();
        rank.all_to_all(3).unwrap();
        if candidate.rank == 2 {
            last(&rank);
            return String::new();
        }
        let exchange = || rank.all_to_all(3).map(drop).map_err(|e| (matches!(e, Error::Rank { .. }), e.to_string()));
        let first = exchange().unwrap_err();
        assert!(first.0, "{first:?}");
        assert_eq!(exchange().unwrap_err(), first, "the mesh stays failed");
        assert_eq!(rank.engine.check_for_failure().unwrap_err().to_string(), first.1);
        first.1
    };
    let mut found = run(&candidates(3), failure);
    found.pop();
    found
}

#[test]
fn a_closed_connection_names_its_rank() {
    let started = Instant::now();
    for error in failures(|rank| rank.connections.close_connections()) {
        assert!(error.starts_with("[mesh] rank 2 closed its connection"), "{error}");
    }
    assert!(started.elapsed() < Duration::from_secs(2), "no wait lasts until the time limit");
}

#[test]
fn a_late_rank_is_named_after_the_time_limit() {
    let started = Instant::now();
    let errors = failures(|_| std::thread::sleep(Duration::from_secs(4)));
    assert_eq!(errors, ["[mesh] rank 2 has not answered for 2 s, after exchange 1"; 2]);
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_slow_transfer_does_not_end_the_waits_of_other_ranks() {
    const LARGE: usize = 64 << 20;
    const PIECES: usize = 20;
    let mut ranks = candidates(3);
    ranks.iter_mut().for_each(|rank| rank.timeout = Duration::from_secs(1));
    run(&ranks, |candidate| {
        let rank = Rank::join(candidate).unwrap();
        let connections = &rank.connections;
        let send = |to: usize, bytes: usize| {
            let (done, results) = std::sync::mpsc::channel();
            connections.queue_send_job(to, SendJob { header: Vec::new(), piece: Box::new(vec![1; bytes]), done }).unwrap();
            move || connections.await_send_jobs(&results, 1)
        };
        match candidate.rank {
            // Receives for two seconds from rank 1, while rank 2 waits both for its pieces and for an answer.
            0 => {
                connections.receive_bytes(1, &mut [0; PIECES]).unwrap();
                connections.receive_bytes(2, &mut vec![0; LARGE]).unwrap();
                send(2, 1)().unwrap();
                std::thread::sleep(Duration::from_secs(3));
            }
            1 => (0..PIECES).for_each(|_| {
                std::thread::sleep(Duration::from_millis(100));
                send(0, 1)().unwrap();
            }),
            _ => {
                let sent = send(0, LARGE);
                connections.receive_bytes(0, &mut [0]).unwrap();
                sent().unwrap();
                // Rank 0 reads no more, which only the sender notices.
                let error = send(0, LARGE)().unwrap_err().to_string();
                assert_eq!(error, "[mesh] rank 0 has not answered for 1 s, after exchange 0");
            }
        }
        // Rank 1 keeps its connections open.
        if candidate.rank == 1 {
            std::thread::sleep(Duration::from_secs(3));
        }
    });
}

#[test]
fn an_error_of_a_rank_is_told_to_all() {
    let errors = failures(|rank| {
        rank.engine.fail_mesh(&Error::value("sum", "no memory"));
        std::thread::sleep(Duration::from_millis(500));
    });
    assert_eq!(errors, ["[mesh] rank 2 failed: [sum] no memory"; 2]);
}

#[test]
fn another_program_is_an_error_of_its_rank() {
    let errors = failures(|rank| {
        let error = rank.all_to_all(4).unwrap_err().to_string();
        assert!(error.contains("runs another program: its exchange 2 moves other pieces than 6 pieces of float64"), "{error}");
        std::thread::sleep(Duration::from_millis(500));
    });
    for error in errors {
        assert_eq!(error, "[mesh] rank 2 runs another program: its exchange 2 moves other pieces than 6 pieces of float64");
    }
}
