//! Soak test: random calls from eight threads with shared arrays, each thread on its own stream and sometimes on another one.
//! Between the calls, threads capture graphs, copy through pinned memory and between GPUs, allocate more memory than the device has, and
//! with the feature `fault-injection` make driver and library calls fail. Every result is compared with the CPU's, and no memory may leak.
//!
//! `CUPRUM_SOAK_SECONDS` (default 2) sets the duration, `CUPRUM_SOAK_SEED` the random seed. Without a GPU the CPU is briefly
//! compared with itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuprum::{
    DType, Device, Error, Graph, NdArray, Result, Stream, arange, argwhere, axis, concat, expand_dims, flip, histogram, matmul, ones,
    segment_sum, unique, where_, with_accelerators, with_device, zeros,
};

const THREADS: u64 = 8;
/// Number of arrays that all threads use.
const SHARED: usize = 24;
/// Lengths of rows and columns: 1, small and odd, a warp, several blocks.
const EXTENTS: [usize; 8] = [1, 3, 17, 32, 100, 256, 1000, 4099];

/// xorshift64.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    /// Returns a matrix of small integers, whose sums and products are exact in any order.
    fn array(&mut self, rows: usize, columns: usize) -> Result<NdArray> {
        let (scale, offset) = (1 + self.below(97), self.below(1000));
        let values: Vec<f32> = (0..rows * columns).map(|i| ((i * scale + offset) * 7919 % 17) as f32 - 8.0).collect();
        NdArray::from_vec(values, [rows, columns])
    }

    fn shape(&mut self) -> [usize; 2] {
        loop {
            let [rows, columns] = [EXTENTS[self.below(8)], EXTENTS[self.below(8)]];
            if rows * columns <= 1 << 18 {
                return [rows, columns];
            }
        }
    }
}

cuprum::kernel! {
    /// Returns `x` after a delay proportional to `steps`, which is even.
    fn delayed<T: Float>(x: T, steps: i32) -> T {
        let mut y = x;
        for _ in 0..steps {
            y = 0.5 - y;
        }
        y
    }
}

/// A matrix of small integers, on the device and on the host.
#[derive(Clone)]
struct Pair {
    device: NdArray,
    host: NdArray,
}

impl Pair {
    fn new(random: &mut Random) -> Result<Pair> {
        let [rows, columns] = random.shape();
        let mut same = random.clone();
        let host = with_device(Device::CPU, || same.array(rows, columns))?;
        Ok(Pair { device: random.array(rows, columns)?, host })
    }
}

type RandomCall = fn(&NdArray, &mut Random) -> Result<NdArray>;

/// Calls on a matrix: name and function, which draws the same random numbers on both devices. Results are exact, or compared
/// with a tolerance if the name ends in `~`.
const CALLS: &[(&str, RandomCall)] = &[
    ("map", |a, r| Ok((a * 2.0f32 + r.below(9) as f32).abs()? - a)),
    ("broadcast", |a, r| Ok(a + &r.array(1, a.shape()[1])? * &r.array(a.shape()[0], 1)?)),
    ("transposed", |a, r| Ok(&a.t()?.contiguous()? - r.below(5) as f32)),
    ("mixed layouts", |a, r| Ok(&r.array(a.shape()[1], a.shape()[0])? + &a.t()?)),
    ("functions ~", |a, _| (a.sin()? + a.exp()?).sqrt()),
    ("where", |a, r| where_(&a.greater(r.below(8) as f32)?, a, &-a)),
    ("sum", |a, _| a.sum(())),
    ("sum of rows", |a, _| (a * a).sum(-1)),
    ("sum of columns", |a, _| (a + 1.0f32).sum(0)),
    ("extremes", |a, r| if r.below(2) == 0 { a.max(0) } else { a.min(-1) }),
    ("argmax", |a, r| a.argmax(r.below(2) as isize)),
    ("var ~", |a, _| a.var(-1)),
    ("softmax ~", |a, _| {
        let e = (a - &expand_dims(&a.max(-1)?, [1])?).exp()?;
        Ok(&e / &expand_dims(&e.sum(-1)?, [1])?)
    }),
    ("softmax, dims kept ~", |a, _| {
        let e = (a - &a.max(axis(-1).keepdims())?).exp()?;
        Ok(&e / &e.sum(axis(-1).keepdims())?)
    }),
    ("extremes and sums, dims kept", |a, _| Ok((a - &a.min(axis(-1).keepdims())?) * &a.sum(axis(-1).keepdims())?)),
    ("standardised ~", |a, _| Ok((a - &a.mean(axis(-1).keepdims())?) / &(a.std(axis(-1).keepdims())? + 1.0f32))),
    ("cumsum", |a, r| a.cumsum(r.below(2) as isize)),
    ("product", |a, r| matmul(a, &r.array(a.shape()[1], 33)?)),
    ("product with its transpose", |a, _| matmul(a, &a.t()?)?.sum(0)),
    ("sort", |a, r| a.sort(r.below(2) as isize)),
    ("argsort", |a, _| a.argsort(-1)),
    ("nonzero", |a, _| argwhere(&a.greater(3.0f32)?)),
    ("compress", |a, _| a.extract(&a.less(0.0f32)?)),
    ("take", |a, r| {
        let rows: Vec<i64> = (0..50).map(|_| r.below(a.shape()[0]) as i64).collect();
        a.take(&NdArray::from_slice(&rows)?, 0)
    }),
    ("take in an expression", |a, r| {
        let all = a.ravel()?;
        let places: Vec<i64> = (0..500).map(|_| r.below(all.size()) as i64).collect();
        let places = NdArray::from_slice(&places)?;
        Ok(&all.take(&places, 0)? * &all.take(&(&places * -1 - 1), 0)?)
    }),
    ("sums of segments", |a, r| {
        let (values, n) = (a.ravel()?, a.size() as i64);
        let mut offsets: Vec<i64> = (0..r.below(300)).map(|_| r.below(n as usize + 1) as i64).chain([0, n]).collect();
        offsets.sort_unstable();
        let order = arange(0, n, 1)?;
        segment_sum(&(&values * &values.take(&order, 0)?), &NdArray::from_slice(&offsets)?)
    }),
    ("concat", |a, _| concat(&[a.clone(), &flip(a, None)? * 3.0f32], 0)),
    ("histogram", |a, _| Ok(histogram(a, 17, None, false)?.0)),
    ("unique", |a, _| unique(a)),
    ("integers", |a, r| a.astype(DType::I64)?.cumsum(None)?.index(cuprum::s![..;r.below(5) as isize + 1])),
    ("doubles", |a, _| (a.astype(DType::F64)? * 0.5).sum(-1)),
    ("own kernel", |a, r| delayed(a, 2 * r.below(8) as i32)),
];

/// Describes where two results differ, or returns `None` if they agree.
fn difference(got: &NdArray, want: &NdArray, tolerance: f64) -> Result<Option<String>> {
    if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
        return Ok(Some(format!("{} {:?}, not {} {:?}", got.dtype(), got.shape(), want.dtype(), want.shape())));
    }
    if got.to_bytes()? == want.to_bytes()? {
        return Ok(None);
    }
    let numbers = |a: &NdArray| with_device(Device::CPU, || a.to_device(Device::CPU)?.astype(DType::F64)?.ravel()?.to_vec::<f64>());
    let (got, want) = (numbers(got)?, numbers(want)?);
    let is_off =
        |(_, (g, w)): &(usize, (&f64, &f64))| !(g == w || g.is_nan() && w.is_nan() || (*g - *w).abs() <= tolerance * w.abs().max(1.0));
    let off: Vec<_> = got.iter().zip(&want).enumerate().filter(is_off).collect();
    let some: Vec<String> = off.iter().take(40).map(|(i, (g, w))| format!("element {i}: {g}, not {w}")).collect();
    Ok(if off.is_empty() { None } else { Some(format!("{} of {} are off: {}", off.len(), want.len(), some.join("; "))) })
}

struct Soak {
    device: Device,
    streams: Vec<Stream>,
    shared: Mutex<Vec<Pair>>,
    /// One element, for [`Soak::delay`].
    one: NdArray,
    /// Another GPU, if there is one.
    peer: Option<Device>,
    calls: AtomicU64,
    /// Number of calls that returned the error of an injected failure.
    #[cfg(feature = "fault-injection")]
    failures: AtomicU64,
}

impl Soak {
    /// Sometimes queues a slow kernel on a stream, which exposes missing synchronization.
    fn delay(&self, random: &mut Random, stream: Stream) -> Result<()> {
        if random.below(6) > 0 || self.device == Device::CPU {
            return Ok(());
        }
        let longest = [1_000, 10_000, 100_000][random.below(3)];
        let steps = 2 * random.below(longest) as i32;
        stream.scope(|| delayed(&self.one, steps)?.eval().map(|_| ()))
    }

    /// Makes one random call and compares its result.
    fn step(&self, random: &mut Random, stream: Stream) -> Result<()> {
        self.delay(random, stream)?;
        let at = random.below(SHARED);
        let Pair { device, host } = self.shared.lock().unwrap()[at].clone();
        let (name, random_call) = CALLS[random.below(CALLS.len())];
        let mut same = random.clone();
        let before = random.0;
        let accelerators = [None, None, Some(""), Some("cub"), Some("cutensor")][random.below(5)];
        same.below(5);
        let got = stream.scope(|| with_accelerators(accelerators, || random_call(&device, random).and_then(|r| r.eval().cloned()))?)?;
        // Another thread may replace the shared array, which frees it while the call is still running.
        drop(device);
        let want = with_device(Device::CPU, || random_call(&host, &mut same).and_then(|r| r.eval().cloned()))?;
        let reader = self.streams[random.below(self.streams.len())];
        self.delay(random, reader)?;
        let tolerance = if name.ends_with('~') { 2e-5 } else { 0.0 };
        if let Some(why) = reader.scope(|| difference(&got, &want, tolerance))? {
            self.device.synchronize()?;
            let later = difference(&got, &want, tolerance)?.unwrap_or_else(|| "nothing is off".into());
            let shape = host.shape();
            panic!(
                "{name} of {shape:?} on {stream}, read on {reader}, order {accelerators:?}, state {before}: {why}\n    and later {later}"
            );
        }
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Sometimes replaces a shared array, captures a graph, or releases cached memory.
    fn maintain(&self, random: &mut Random, stream: Stream) -> Result<()> {
        match random.below(40) {
            0 => self.device.free_all(),
            1..=3 if self.device != Device::CPU => stream.scope(|| self.graph(random)),
            4..=12 => {
                let new = stream.scope(|| Pair::new(random))?;
                self.replace_shared(random, new)
            }
            13..=25 => {
                // Computed from an existing array without synchronization; small integers again.
                let at = random.below(SHARED);
                let Pair { device, host } = self.shared.lock().unwrap()[at].clone();
                let by = random.below(7) as f32;
                let change = |a: &NdArray| (&(a * 3.0f32) - by).clip(-8.0f32, 8.0f32)?.eval().cloned();
                let new = Pair { device: stream.scope(|| change(&device))?, host: with_device(Device::CPU, || change(&host))? };
                self.replace_shared(random, new)
            }
            26 => stream.synchronize(),
            27 | 28 if self.device != Device::CPU => self.transfers(random, stream),
            29 if self.device != Device::CPU => self.out_of_memory(),
            #[cfg(feature = "fault-injection")]
            30..=33 => self.injected_failure(random, stream),
            _ => Ok(()),
        }
    }

    /// Copies a shared array through pinned memory, and to another GPU and back.
    fn transfers(&self, random: &mut Random, stream: Stream) -> Result<()> {
        self.delay(random, stream)?;
        let Pair { device, host } = self.shared.lock().unwrap()[random.below(SHARED)].clone();
        let pinned = host.pin_memory(self.device)?;
        let mut copies = vec![("pinned memory", stream.scope(|| pinned.to_device(self.device))?)];
        // The copy is still running.
        drop(pinned);
        if let Some(peer) = self.peer {
            let there = stream.scope(|| device.to_device(peer))?;
            let changed = with_device(peer, || (&there + 1.0f32).eval().cloned())?;
            let back = stream.scope(|| changed.to_device(self.device))?;
            copies.push(("another GPU", stream.scope(|| (&back - 1.0f32).eval().cloned())?));
        }
        let reader = self.streams[random.below(self.streams.len())];
        for (path, got) in copies {
            if let Some(why) = reader.scope(|| difference(&got, &host, 0.0))? {
                panic!("copy through {path} of {:?} on {stream}, read on {reader}: {why}", host.shape());
            }
        }
        Ok(())
    }

    /// Allocates more memory than any device has. The pool releases its unused blocks before it reports the error.
    fn out_of_memory(&self) -> Result<()> {
        match zeros(1usize << 45, DType::U8).and_then(|a| a.eval().map(|_| ())) {
            Err(Error::OutOfMemory { .. }) => Ok(()),
            other => panic!("32 TiB: {other:?}"),
        }
    }

    /// Makes a random call while one operation of this thread fails. The call returns the right values or a typed error.
    #[cfg(feature = "fault-injection")]
    fn injected_failure(&self, random: &mut Random, stream: Stream) -> Result<()> {
        use cuprum::core::fault_injection::{CountingScope, FailurePoint, with_failure_in_scope};
        // The other kinds, files and threads, have tests in `tests/faults`.
        const POINTS: [FailurePoint; 8] = [
            FailurePoint::HostMemory,
            FailurePoint::Compile,
            FailurePoint::DeviceMemory,
            FailurePoint::ModuleLoad,
            FailurePoint::Launch,
            FailurePoint::DeviceCopy,
            FailurePoint::Driver,
            FailurePoint::Library,
        ];
        let (point, n) = (POINTS[random.below(POINTS.len())], random.below(12));
        match with_failure_in_scope(CountingScope::Thread, point, n, || self.step(random, stream)) {
            (Err(Error::Backend { .. } | Error::OutOfMemory { .. } | Error::Unsupported { .. }), true) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            (Err(error), _) => panic!("operation {n} of {point:?} fails: {error}"),
            (Ok(()), _) => Ok(()),
        }
    }

    fn replace_shared(&self, random: &mut Random, pair: Pair) -> Result<()> {
        let at = random.below(SHARED);
        let old = std::mem::replace(&mut self.shared.lock().unwrap()[at], pair);
        drop(old);
        Ok(())
    }

    /// Captures a graph and launches it three times on this stream, with new values each time.
    fn graph(&self, random: &mut Random) -> Result<()> {
        let n = [16, 64, 200][random.below(3)];
        let (x, y) = (random.array(n, n)?, random.array(n, n)?);
        let step = |x: &NdArray| Ok([matmul(x, &y)?.sum(-1)?, (x * 2.0f32 + &y).cumsum(0)?, x.sort(-1)?]);
        let (graph, results) = Graph::capture(|| step(&x))?;
        for round in 0..3 {
            let values = random.array(n, n)?;
            graph.update(&x, &values)?;
            graph.launch()?;
            for (got, want) in results.iter().zip(step(&values)?) {
                if let Some(why) = difference(got, &want, 0.0)? {
                    panic!("a graph of {n} x {n}, round {round}: {why}");
                }
            }
        }
        Ok(())
    }

    fn run(&self, seed: u64, until: Instant) {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let mut random = Random((seed + thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    let own = self.streams[thread as usize];
                    with_device(self.device, || {
                        while Instant::now() < until {
                            let stream = if random.below(8) == 0 { self.streams[random.below(self.streams.len())] } else { own };
                            let done = self.step(&mut random, stream).and_then(|()| self.maintain(&mut random, stream));
                            done.unwrap_or_else(|e| panic!("thread {thread}: {e}"));
                        }
                    });
                });
            }
        });
    }
}

#[test]
fn random_calls_from_many_threads_and_streams() -> Result<()> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<f64>().expect("a number"));
    let device = Device::all().into_iter().find(|&d| d != Device::CPU).unwrap_or(Device::CPU);
    let default = if device == Device::CPU { 0.3 } else { 2.0 };
    let seconds = number("CUPRUM_SOAK_SECONDS").unwrap_or(default);
    let seed = number("CUPRUM_SOAK_SEED").unwrap_or(1.0) as u64;
    println!("{device} for {seconds} s, seed {seed}");
    with_device(device, || {
        let mut streams = (0..THREADS).map(|_| Stream::new(device)).collect::<Result<Vec<_>>>()?;
        streams.push(Stream::default_of(device));
        let mut random = Random(seed | 1);
        let shared = (0..SHARED).map(|_| Pair::new(&mut random)).collect::<Result<Vec<_>>>()?;
        let peer = Device::all().into_iter().find(|&other| device != Device::CPU && ![Device::CPU, device].contains(&other));
        let soak = Soak {
            device,
            streams,
            shared: Mutex::new(shared),
            one: ones(1, DType::F32)?,
            peer,
            calls: AtomicU64::new(0),
            #[cfg(feature = "fault-injection")]
            failures: AtomicU64::new(0),
        };
        // Allocates the workspaces and counters of every stream and compiles most kernels before memory is measured.
        for stream in &soak.streams {
            stream.scope(|| -> Result<()> {
                let a = ones([1000, 1000], DType::F32)?;
                // The orders use cuBLAS, cuTENSOR and CUB.
                ["", "cub", "cutensor"].iter().try_for_each(|order| {
                    let warm = || matmul(&a, &a)?.sum(())?.item().and_then(|_| a.sum(())?.item());
                    with_accelerators(*order, warm).and_then(|sum| sum).map(|_| ())
                })
            })?;
        }
        soak.run(seed, Instant::now() + Duration::from_secs_f64(seconds / 5.0));
        let used = || -> Result<usize> {
            device.synchronize()?;
            device.free_all()?;
            let shared: usize = soak.shared.lock().unwrap().iter().map(|p| p.device.nbytes()).sum();
            let host: usize = if device == Device::CPU { shared } else { 0 };
            Ok(device.memory_stats()?.used - shared - host)
        };
        let before = used()?;
        soak.run(seed + 1000, Instant::now() + Duration::from_secs_f64(seconds * 0.8));
        let after = used()?;
        #[cfg(feature = "fault-injection")]
        println!("{} injected failures returned errors", soak.failures.into_inner());
        println!("{} calls compared; {after} bytes in use without the shared arrays, {before} before", soak.calls.into_inner());
        assert_eq!(after, before);
        Ok(())
    })
}
