//! Ordering of streams that share a block of memory: its last writer, and its users since then.
//!
//! A read on the writer's stream, or on a stream that has waited for the write, costs one load. Any other stream waits on the
//! device for a point after the write. This module does not use the driver.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A set of streams: bit n for stream n.
pub(super) type StreamSet = u64;

pub(super) fn only(stream: u32) -> StreamSet {
    1 << (stream & 63)
}

/// Returns the stream numbers in a set.
pub(super) fn numbers(set: StreamSet) -> impl Iterator<Item = u32> {
    (0..64).filter(move |&n| set & only(n) != 0)
}

/// An abstract set of streams, so that ordering can be tested without a GPU.
pub(super) trait Queues {
    /// A point in a stream.
    type Mark: Clone;
    type Error;
    /// Returns a point after all work queued so far on a stream.
    fn mark(&self, stream: u32) -> Result<Self::Mark, Self::Error>;
    /// Makes later work of a stream wait for the point.
    fn wait(&self, stream: u32, mark: &Self::Mark) -> Result<(), Self::Error>;
}

/// The streams that have used a block.
#[derive(Debug)]
pub(super) struct Uses<M> {
    /// The stream of the last write.
    writer: AtomicU32,
    /// The writer, and the streams ordered after its last write.
    current: AtomicU64,
    /// All streams that have used the block since its allocation.
    all: AtomicU64,
    /// A point in the writer's stream after the last write, once recorded. The lock orders the streams that wait for it.
    written: Mutex<Option<M>>,
}

impl<M: Clone> Uses<M> {
    /// State of a block that was allocated on a stream, whose first use is a write there.
    pub fn new(stream: u32) -> Uses<M> {
        let set = only(stream);
        Uses { writer: AtomicU32::new(stream), current: AtomicU64::new(set), all: AtomicU64::new(set), written: Mutex::new(None) }
    }

    /// Orders work that reads the block and is queued next on a stream.
    #[inline]
    pub fn read<Q: Queues<Mark = M>>(&self, stream: u32, queues: &Q) -> Result<(), Q::Error> {
        if self.current.load(Ordering::Acquire) & only(stream) != 0 { Ok(()) } else { self.read_elsewhere(stream, queues) }
    }

    #[cold]
    fn read_elsewhere<Q: Queues<Mark = M>>(&self, stream: u32, queues: &Q) -> Result<(), Q::Error> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if self.current.load(Ordering::Acquire) & only(stream) != 0 {
            return Ok(()); // another thread has waited meanwhile
        }
        let mark = match &*written {
            Some(mark) => mark,
            None => written.insert(queues.mark(self.writer.load(Ordering::Relaxed))?),
        };
        queues.wait(stream, mark)?;
        self.all.fetch_or(only(stream), Ordering::Relaxed);
        self.current.fetch_or(only(stream), Ordering::Release);
        Ok(())
    }

    /// Orders work that writes the block and is queued next on a stream. The caller prevents other threads from queuing work
    /// on the block meanwhile.
    #[inline]
    pub fn write<Q: Queues<Mark = M>>(&self, stream: u32, queues: &Q) -> Result<(), Q::Error> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written = None;
        let others = self.current.load(Ordering::Acquire) & !only(stream);
        for other in numbers(others) {
            queues.wait(stream, &queues.mark(other)?)?;
        }
        self.writer.store(stream, Ordering::Relaxed);
        self.all.fetch_or(only(stream), Ordering::Relaxed);
        self.current.store(only(stream), Ordering::Release);
        Ok(())
    }

    /// Records a point after the last write. Without one, the first reader on another stream waits for all work queued until
    /// then.
    pub fn written_at(&self, mark: M) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
    }

    /// Returns all streams that have used the block, except one.
    pub fn others(&self, stream: u32) -> StreamSet {
        self.all.load(Ordering::Acquire) & !only(stream)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use super::super::pool::{Block, Fence, Pool, Taken};
    use super::*;

    const STREAMS: usize = 4;

    /// A vector clock: per stream, the number of completed operations that are known.
    type Clock = [usize; STREAMS];

    /// A simulated device that runs queued work in any order that the waits allow.
    #[derive(Default)]
    struct Device {
        state: RefCell<State>,
    }

    #[derive(Default)]
    struct State {
        clocks: [Clock; STREAMS],
        /// The clock that each queued operation waits for.
        queued: [Vec<Clock>; STREAMS],
        done: Clock,
        marks: usize,
        waits: usize,
        memory: HashMap<u64, Cell>,
    }

    /// The last writer of a block and its readers since, as stream and position.
    #[derive(Default)]
    struct Cell {
        write: Option<(usize, usize)>,
        reads: Vec<(usize, usize)>,
    }

    impl Queues for Device {
        type Mark = (u32, Clock);
        type Error = ();
        fn mark(&self, stream: u32) -> Result<Self::Mark, ()> {
            let mut state = self.state.borrow_mut();
            state.marks += 1;
            Ok((stream, state.clocks[stream as usize]))
        }
        fn wait(&self, stream: u32, mark: &Self::Mark) -> Result<(), ()> {
            let mut state = self.state.borrow_mut();
            state.waits += 1;
            for (mine, theirs) in state.clocks[stream as usize].iter_mut().zip(mark.1) {
                *mine = theirs.max(*mine);
            }
            Ok(())
        }
    }

    impl Device {
        /// Queues work that reads and writes blocks, and checks that it is ordered after all conflicting work.
        fn queue(&self, stream: u32, reads: &[u64], writes: &[u64]) {
            let state = &mut *self.state.borrow_mut();
            let s = stream as usize;
            state.clocks[s][s] += 1;
            let clock = state.clocks[s];
            state.queued[s].push(clock);
            let (now, done) = ((s, clock[s]), state.done);
            let is_before = |(stream, n): (usize, usize)| clock[stream] >= n || done[stream] >= n;
            for block in reads {
                let cell = state.memory.entry(*block).or_default();
                assert!(cell.write.is_some_and(is_before), "{now:?} reads {block}, which {:?} writes", cell.write);
                cell.reads.push(now);
            }
            for block in writes {
                let cell = state.memory.entry(*block).or_default();
                assert!(cell.write.is_none_or(is_before), "{now:?} writes {block}, which {:?} writes", cell.write);
                assert!(cell.reads.iter().all(|&r| is_before(r)), "{now:?} writes {block}, which {:?} read", cell.reads);
                *cell = Cell { write: Some(now), reads: Vec::new() };
            }
        }

        /// Runs the next operation of a stream, if its waits are satisfied.
        fn advance(&self, stream: usize) {
            let mut state = self.state.borrow_mut();
            let Some(clock) = state.queued[stream].get(state.done[stream]).copied() else { return };
            if (0..STREAMS).all(|s| s == stream || clock[s] <= state.done[s]) {
                state.done[stream] += 1;
            }
        }
    }

    struct Passed<'a>(&'a Device, (u32, Clock));

    impl Fence for Passed<'_> {
        fn stream(&self) -> u32 {
            self.1.0
        }
        fn is_passed(&self) -> bool {
            let state = self.0.state.borrow();
            (0..STREAMS).all(|s| self.1.1[s] <= state.done[s])
        }
    }

    struct Buffer {
        block: Block,
        home: u32,
        uses: Uses<(u32, Clock)>,
    }

    /// Runs a random program on random streams. `marks`: whether each call records a point after its write.
    fn random_program(seed: u64, streams: u64, marks: bool) -> (usize, usize, u64) {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut random = |n: u64| {
            z ^= z << 13;
            z ^= z >> 7;
            z ^= z << 17;
            z % n
        };
        let device = Device::default();
        let mut pool: Pool<Passed> = Pool::new(u64::MAX, u64::MAX);
        let mut buffers: Vec<Buffer> = Vec::new();
        let mut fresh = 0;
        for _ in 0..3000 {
            for _ in 0..3 {
                device.advance(random(STREAMS as u64) as usize);
            }
            let stream = random(streams) as u32;
            if !buffers.is_empty() && random(5) == 0 {
                let at = random(buffers.len() as u64) as usize;
                buffers[at].uses.write(stream, &device).unwrap();
                device.queue(stream, &[], &[buffers[at].block.pointer]);
                continue;
            }
            if buffers.len() > 6 || !buffers.is_empty() && random(3) == 0 {
                let Buffer { block, home, uses } = buffers.swap_remove(random(buffers.len() as u64) as usize);
                match uses.others(home) {
                    0 => assert!(pool.put(home, block, 100)),
                    others => {
                        pool.put_fenced(home, block, 100, numbers(others).map(|s| Passed(&device, device.mark(s).unwrap())).collect())
                    }
                }
                continue;
            }
            let reads: Vec<usize> = (0..random(3).min(buffers.len() as u64)).map(|_| random(buffers.len() as u64) as usize).collect();
            for &at in &reads {
                buffers[at].uses.read(stream, &device).unwrap();
            }
            let block = match pool.take(stream, 100) {
                Taken::Kept(block) => block,
                Taken::Missing(size) => {
                    fresh += 1;
                    Block { pointer: fresh, size }
                }
                Taken::Refused => panic!("refused"),
            };
            let uses = Uses::new(stream);
            device.queue(stream, &reads.iter().map(|&at| buffers[at].block.pointer).collect::<Vec<_>>(), &[block.pointer]);
            if marks {
                uses.written_at(device.mark(stream).unwrap());
            }
            buffers.push(Buffer { block, home: stream, uses });
        }
        let state = device.state.borrow();
        (state.marks, state.waits, fresh)
    }

    #[test]
    fn random_programs_on_many_streams_never_touch_what_others_use() {
        for seed in 0..200 {
            let (_, waits, fresh) = random_program(seed, STREAMS as u64, seed % 2 == 0);
            assert!(waits > 100 && fresh < 200, "{waits} waits, {fresh} blocks: memory comes back");
        }
    }

    #[test]
    fn one_stream_waits_for_nothing() {
        let (marks, waits, fresh) = random_program(7, 1, false);
        assert_eq!((marks, waits), (0, 0));
        assert!(fresh <= 8, "{fresh} blocks for at most seven buffers at once, and a result");
    }

    #[test]
    fn a_reader_waits_once_and_for_the_write_alone() {
        let device = Device::default();
        let uses = Uses::new(0);
        device.queue(0, &[], &[1]);
        uses.written_at(device.mark(0).unwrap());
        device.queue(0, &[], &[2]); // long work that the reader need not wait for
        for _ in 0..3 {
            uses.read(1, &device).unwrap();
        }
        let state = device.state.borrow();
        assert_eq!((state.waits, state.clocks[1]), (1, [1, 0, 0, 0]));
        assert_eq!(uses.others(0), only(1));
    }

    #[test]
    fn a_writer_waits_for_readers_and_is_waited_for() {
        let device = Device::default();
        let uses = Uses::new(0);
        device.queue(0, &[], &[1]);
        for stream in [1, 2] {
            uses.read(stream, &device).unwrap();
            device.queue(stream, &[1], &[]);
        }
        uses.write(3, &device).unwrap();
        device.queue(3, &[], &[1]);
        uses.write(3, &device).unwrap(); // no other use since
        let waits = device.state.borrow().waits;
        assert_eq!(waits, 2 + 3);
        uses.read(0, &device).unwrap();
        device.queue(0, &[1], &[]);
        assert_eq!(uses.others(3), only(0) | only(1) | only(2));
        assert_eq!(numbers(uses.others(3)).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
