//! Meshes over several processes. Each test runs this program several times, with a launcher's variables and the name of a program.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cuprum_backend_cpu as _;
use cuprum_core::profiler::{BenchmarkLimits, benchmark_on};
use cuprum_core::random::{Generator, default_rng};
use cuprum_core::{
    DType, Device, Error, NdArray, Result, arange, axis, concat, exp, explain, greater, matmul, nonzero, ones, s, take, with_device,
};
use cuprum_distributed::Placement::{Partial, Replicate, Shard};
use cuprum_distributed::{Mesh, PartialOp, Placement, ShardedArray};

/// Names the program of a process that a test has started.
const PROGRAM: &str = "CUPRUM_TEST_PROGRAM";
/// Time limit of the waits for other processes, in seconds.
const TIMEOUT: u64 = 3;

/// A program with its name.
type Program = (&'static str, fn() -> Result<()>);

/// The programs that tests run.
const PROGRAMS: [Program; 8] = [
    ("agreement", agreement),
    ("grid", grid),
    ("killed", || one_rank_ends(|| std::process::abort())),
    ("raising", || one_rank_ends(|| Err(Error::value("program", "a rank raises")))),
    ("hanging", hanging),
    ("another", another_program),
    ("out_of_memory", out_of_memory),
    ("benchmark", benchmark),
];

/// The entry of a started process. Without the variable, it is a test without effect.
#[test]
fn process() {
    let Ok(name) = std::env::var(PROGRAM) else { return };
    let (_, run) = PROGRAMS.iter().find(|(n, _)| *n == name).unwrap();
    match run() {
        Ok(()) => println!("\nRESULT ok"),
        Err(error) => {
            println!("\nRESULT {error}");
            std::process::exit(3);
        }
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn start(program: &str, rank: usize, size: usize, port: u16) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process", "--nocapture", "--test-threads=1"]).env(PROGRAM, program);
    command.env("RANK", rank.to_string()).env("WORLD_SIZE", size.to_string()).env("LOCAL_RANK", rank.to_string());
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    command.env("CUPRUM_MESH_TIMEOUT", TIMEOUT.to_string()).env("CUPRUM_DEVICE", "cpu").env("CUPRUM_NUM_THREADS", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns the text after `RESULT` of a finished process; its whole output if it has no result.
fn result(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find_map(|line| line.strip_prefix("RESULT ")) {
        Some(result) => result.into(),
        None => format!("{:?}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

/// Runs a program in `size` processes and returns their results.
fn run(program: &str, size: usize) -> Vec<String> {
    let port = free_port();
    let children: Vec<Child> = (0..size).map(|rank| start(program, rank, size, port)).collect();
    children.into_iter().map(|child| result(&child.wait_with_output().unwrap())).collect()
}

/// Returns random numbers of mixed magnitude, whose sums depend on the order of additions.
fn numbers(shape: &[usize], dtype: DType) -> Result<NdArray> {
    with_device(Device::CPU, || {
        let normal = Generator::new(7).normal(0.0, 4.0, shape, DType::F64)?;
        (exp(&normal)? * &normal).astype(dtype)
    })
}

/// A function with its name.
type Function = (&'static str, fn(&NdArray) -> Result<NdArray>);

/// Functions of one array, with the rules of all families.
const FUNCTIONS: [Function; 16] = [
    ("map", |a| exp(&(a / 1e6)).map(|e| e * 2.0 + a)),
    ("sum", |a| a.sum(())),
    ("column sums", |a| a.sum(0)),
    ("row sums", |a| a.sum(axis(-1).keepdims())),
    ("variance", |a| a.var(0)),
    ("softmax", |a| {
        let e = exp(&(a - a.max(axis(-1).keepdims())?))?;
        Ok(&e / e.sum(axis(-1).keepdims())?)
    }),
    ("argmax", |a| a.argmax(0)),
    ("cumsum", |a| a.cumsum(0)),
    ("sort", |a| a.sort(0)),
    ("transpose", |a| Ok(a.t()? + 1.0)),
    ("shifted slices", |a| Ok(a.index(s![1.., ..])? - a.index(s![..-1, ..])?)),
    ("steps", |a| a.index(s![..;-2, 1..])?.copy()),
    ("joins", |a| concat([a, &(a + 1.0)], 0)),
    ("mask", |a| nonzero(&greater(a, 0.0)?)?.remove(0).astype(DType::F64)),
    ("take", |a| {
        let rows = (arange(0, 5, 1)? * 3) % (a.shape()[0] as i64);
        take(a, &rows, 0)
    }),
    ("assignment", |a| {
        let mut b = a.copy()?;
        b.assign(s![1..3, ..], -1.0)?;
        Ok(b)
    }),
];

/// Compares functions of sharded arrays with the same mesh in one process.
fn compare(mesh: Mesh, alone: Mesh, placements: &[Vec<Placement>]) -> Result<()> {
    for (shape, dtype) in [(&[400, 30][..], DType::F64), (&[7, 300], DType::F32), (&[5, 3], DType::F64)] {
        let a = numbers(shape, dtype)?;
        for placements in placements {
            let (over, one) = (a.shard(&mesh, placements)?, a.shard(&alone, placements)?);
            for (name, f) in FUNCTIONS {
                let of = |mesh: Mesh, array: &NdArray| with_device(mesh.device(), || f(array)?.to_bytes());
                assert!(of(mesh, &over)? == of(alone, &one)?, "{name} of {shape:?} {placements:?} on {mesh:?}");
            }
        }
    }
    Ok(())
}

fn agreement() -> Result<()> {
    let mesh = Mesh::from_env()?;
    let size = mesh.size();
    let alone = Mesh::loopback(size)?;
    assert_eq!((mesh.engine_name(), mesh.local_ranks().len()), ("tcp", 1));
    assert!(format!("{mesh:?}").contains("rank 0: devices of kind cpu have no such library"), "{mesh:?}");
    assert!(Mesh::from_env()? == mesh && alone != mesh);
    compare(mesh, alone, &[vec![Shard(0)], vec![Shard(1)], vec![Replicate]])?;
    // All pairs of placements.
    let all = [Shard(0), Shard(1), Replicate, Partial(PartialOp::Sum), Partial(PartialOp::Max)];
    let want = numbers(&[9, 5], DType::F64)?.to_bytes()?;
    for from in all {
        for to in all {
            let a = numbers(&[9, 5], DType::F64)?.shard(&mesh, [from])?.reshard([to])?;
            assert_eq!(a.placements(), Some(vec![to]));
            assert!(a.to_bytes()? == want, "{from} -> {to}");
        }
    }
    // Products, by rows and with a divided sum.
    let (a, b) = (numbers(&[30, 40], DType::F64)?, numbers(&[40, 20], DType::F64)?);
    for (of_a, of_b) in [(Shard(0), Replicate), (Shard(1), Shard(0)), (Shard(0), Shard(0)), (Replicate, Shard(1))] {
        let product = |mesh: &Mesh| matmul(&a.shard(mesh, [of_a])?, &b.shard(mesh, [of_b])?)?.to_bytes();
        assert!(product(&mesh)? == product(&alone)?, "{of_a} @ {of_b}");
    }
    // New arrays, random numbers of a seed, and unpredictable ones, which are the same in all processes.
    with_device(mesh.device(), || {
        assert_eq!(arange(5, 1005, 2)?.to_vec::<i64>()?, (5..1005).step_by(2).collect::<Vec<i64>>());
        assert_eq!(ones([3, 100], DType::F32)?.sum(())?.item()?, 300.0);
        let drawn = default_rng(3).normal(0.0, 1.0, [777], DType::F64)?;
        assert!(drawn.to_bytes()? == with_device(Device::CPU, || default_rng(3).normal(0.0, 1.0, [777], DType::F64)?.to_bytes())?);
        let unseeded = [default_rng(None).random([4], DType::F64)?, default_rng(None).random([4], DType::F64)?];
        assert_ne!(unseeded[0].to_vec::<f64>()?, unseeded[1].to_vec::<f64>()?);
        for array in unseeded {
            let mine = array.to_device(Device::CPU)?;
            let places: Vec<usize> = mesh.local_ranks().collect();
            // The largest difference between the ranks is 0.
            let [low, high] = [PartialOp::Min, PartialOp::Max].map(|op| {
                let part = mine.to_device(mesh.device())?.shard(&mesh, [Partial(op)])?;
                part.reshard([Replicate])?.to_vec::<f64>()
            });
            assert!(low? == high? && places.len() == 1);
        }
        Ok(())
    })?;
    // Records have the bytes that all ranks receive. Values print alike in all processes.
    let a = numbers(&[384, 4], DType::F32)?.shard(&mesh, [Shard(0)])?;
    let (b, calls) = explain(|| a.reshard([Shard(1)]));
    b?;
    let record = calls.iter().find(|call| call.op == "all_to_all").unwrap();
    assert_eq!((record.served_by, record.bytes), (Some("tcp"), 384 * 4 * 4 * (size - 1) / size));
    assert_eq!(format!("{a:?}").lines().next(), format!("{:?}", a.to_device(Device::CPU)?).lines().next());
    // Each process has one part.
    let parts = a.local_shards()?;
    assert_eq!((parts.len(), parts[0].shape()[0], parts[0].device()), (1, 384 / size, Device::CPU));
    Ok(())
}

fn grid() -> Result<()> {
    let size = std::env::var("WORLD_SIZE").unwrap().parse::<usize>().unwrap();
    let wrong = Mesh::from_env_grid(&[size, 2]).unwrap_err().to_string();
    assert!(wrong.contains(&format!("has {} ranks, but there are {size} processes", 2 * size)), "{wrong}");
    for shape in [[size, 1], [1, size], [size / 2, 2]] {
        let (mesh, alone) = (Mesh::from_env_grid(&shape)?, Mesh::loopback_grid(&shape)?);
        compare(mesh, alone, &[vec![Shard(0), Shard(1)], vec![Shard(1), Replicate], vec![Shard(0), Shard(0)]])?;
    }
    Ok(())
}

/// Runs collective operations, and ends rank 1 in between by `end`. Returns the error of the others, after a check that it stays.
fn one_rank_ends(end: impl FnOnce() -> Result<()>) -> Result<()> {
    let mesh = Mesh::from_env()?;
    let a = numbers(&[100, 3], DType::F64)?.shard(&mesh, [Shard(0)])?;
    a.sum(0)?.to_bytes()?;
    if mesh.local_ranks().contains(&1) {
        return end();
    }
    let started = Instant::now();
    let error = a.sum(0)?.to_bytes().unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(TIMEOUT + 2), "{:?}", started.elapsed());
    assert!(matches!(error, Error::Rank { .. }), "{error}");
    for later in [ones([2], DType::F32).and_then(|one| one.to_device(mesh.device())), a.cumsum(0), a.reshard([Replicate])] {
        assert_eq!(later.and_then(|b| b.to_bytes()).unwrap_err().to_string(), error.to_string());
    }
    // Other devices and meshes are usable.
    assert_eq!(ones([5], DType::F32)?.shard(&Mesh::loopback(3)?, [Shard(0)])?.sum(())?.item()?, 5.0);
    Err(error)
}

fn hanging() -> Result<()> {
    one_rank_ends(|| {
        std::thread::sleep(Duration::from_secs(TIMEOUT + 4));
        Ok(())
    })
}

fn another_program() -> Result<()> {
    let mesh = Mesh::from_env()?;
    let rows = if mesh.local_ranks().contains(&1) { 120 } else { 100 };
    numbers(&[rows, 3], DType::F64)?.shard(&mesh, [Shard(0)])?.sum(0)?.to_bytes().map(drop)
}

fn out_of_memory() -> Result<()> {
    let mesh = Mesh::from_env()?;
    let a = numbers(&[3000, 30], DType::F64)?.shard(&mesh, [Shard(0)])?;
    a.sum(0)?.to_bytes()?;
    if mesh.local_ranks().contains(&1) {
        Device::CPU.set_memory_limit(Some(Device::CPU.memory_stats()?.used + 1000))?;
    }
    for _ in 0..3 {
        (&a + 1.0).sum(0)?.to_bytes()?;
    }
    Ok(())
}

/// Benchmarks an operation in processes with different time limits. All run the same number of calls.
fn benchmark() -> Result<()> {
    for mesh in [Mesh::from_env()?, Mesh::from_env_grid(&[1, 2])?] {
        let a = numbers(&[10, 3], DType::F64)?.to_device(mesh.device())?.shard(&mesh, vec![Shard(0); mesh.shape().len()])?;
        let max_seconds = 0.05 * (1 + mesh.local_ranks().start) as f64;
        let limits = BenchmarkLimits { warmup: 1_000_000, repeat: 1_000_000, max_seconds };
        assert!(benchmark_on(&[mesh.device()], limits, || a.sum(0))?.1.host.len() > 1);
        a.cumsum(0)?.to_bytes()?; // fails if the numbers of exchanges differ
    }
    Ok(())
}

#[test]
fn benchmarks_run_the_same_calls_in_all_processes() {
    assert_eq!(run("benchmark", 2), ["ok"; 2]);
}

#[test]
fn results_are_those_of_one_process() {
    for size in [2, 3, 4] {
        let started = Instant::now();
        assert_eq!(run("agreement", size), vec!["ok"; size]);
        println!("{size} processes: {:?}", started.elapsed());
    }
}

#[test]
fn grids_of_processes() {
    assert_eq!(run("grid", 4), vec!["ok"; 4]);
}

#[test]
fn a_rank_that_is_killed_or_raises_ends_the_others() {
    for (program, own) in [("killed", None), ("raising", Some("[program] a rank raises"))] {
        let started = Instant::now();
        let results = run(program, 3);
        for rank in [0, 2] {
            assert!(results[rank].starts_with("[mesh] rank 1 closed its connection"), "{program}: {results:?}");
        }
        assert!(own.is_none_or(|own| own == results[1]), "{results:?}");
        assert!(started.elapsed() < Duration::from_secs(TIMEOUT), "no wait lasts until the time limit");
    }
}

#[test]
fn a_rank_that_hangs_ends_the_others() {
    let results = run("hanging", 3);
    for rank in [0, 2] {
        assert!(results[rank].starts_with(&format!("[mesh] rank 1 has not answered for {TIMEOUT} s")), "{results:?}");
    }
}

#[test]
fn another_program_is_named() {
    let results = run("another", 3);
    for rank in [0, 2] {
        assert!(results[rank].starts_with("[mesh] rank 1 runs another program: its exchange 1 "), "{results:?}");
    }
    assert!(results[1].contains("runs another program"), "{results:?}");
}

#[test]
fn too_little_memory_on_one_rank_ends_all() {
    let results = run("out_of_memory", 3);
    for rank in [0, 2] {
        assert!(results[rank].starts_with("[mesh] rank 1 failed: ") && results[rank].contains("out of memory"), "{results:?}");
    }
    assert!(results[1].contains("out of memory"), "{results:?}");
}

#[test]
fn faults_of_the_variables_are_errors() {
    let port = free_port();
    let pair = |change: &dyn Fn(&mut Command)| {
        let mut children = vec![start("agreement", 0, 2, port)];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "process", "--nocapture"]).env(PROGRAM, "agreement").env("CUPRUM_DEVICE", "cpu");
        let variables =
            [("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1"), ("MASTER_ADDR", "127.0.0.1"), ("CUPRUM_MESH_TIMEOUT", "3")];
        command.envs(variables).env("MASTER_PORT", port.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
        change(&mut command);
        children.push(command.spawn().unwrap());
        children.into_iter().map(|child| result(&child.wait_with_output().unwrap())).collect::<Vec<_>>()
    };
    let alike = pair(&|command| {
        command.env("WORLD_SIZE", "3");
    });
    assert_eq!(alike, ["[mesh] rank 1 expects 3 ranks, rank 0 expects 2"; 2]);
    let secret = pair(&|command| {
        command.env("CUPRUM_MESH_SECRET", "x");
    });
    assert!(secret[0].contains("rank 1 has not joined within 3 s; the connection from 127.0.0.1:"), "{secret:?}");
    assert!(secret[1].contains("rank 0 has another secret; set CUPRUM_MESH_SECRET"), "{secret:?}");
}
