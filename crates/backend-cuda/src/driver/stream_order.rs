//! Ordering of streams that share a block of device memory. For each block, the module records the stream of the last write and the streams
//! that have used the block.
//!
//! A read on the writer's stream, or on a stream that has waited for the write, costs one load. Any other stream waits on the
//! device for an event after the write. This module does not use the driver.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A set of streams: bit n is set for stream number n.
pub(super) type StreamSet = u64;

pub(super) fn stream_bit(stream: u32) -> StreamSet {
    1 << (stream & 63)
}

/// Returns the stream numbers in `set`.
pub(super) fn stream_numbers(set: StreamSet) -> impl Iterator<Item = u32> {
    (0..64).filter(move |&n| set & stream_bit(n) != 0)
}

/// An interface to streams and events, so that ordering can be tested without a GPU.
pub(super) trait StreamQueues {
    /// An event that is recorded in a stream.
    type Mark: Clone;
    type Error;
    /// Records and returns an event after all work queued so far on `stream`.
    fn record_mark(&self, stream: u32) -> Result<Self::Mark, Self::Error>;
    /// Makes later work of `stream` wait for the event `mark`.
    fn wait_for_mark(&self, stream: u32, mark: &Self::Mark) -> Result<(), Self::Error>;
}

/// The streams that have used a block of device memory, to order their accesses.
#[derive(Debug)]
pub(super) struct StreamUses<M> {
    /// Number of the stream that wrote the block last.
    writer: AtomicU32,
    /// Bit set of streams (bit i = stream i): the stream of the last write, and the streams that wait for this write.
    ordered_streams: AtomicU64,
    /// Bit set of streams (bit i = stream i) that have used the block since it was allocated.
    used_streams: AtomicU64,
    /// An event that was recorded in the writer's stream after the last write. `None` until such an event is recorded. The lock serialises
    /// the threads that make streams wait for the event.
    written: Mutex<Option<M>>,
}

impl<M: Clone> StreamUses<M> {
    /// Returns the state of a block that was allocated on `stream`, and whose first use is a write on `stream`.
    pub fn new(stream: u32) -> StreamUses<M> {
        let set = stream_bit(stream);
        StreamUses {
            writer: AtomicU32::new(stream),
            ordered_streams: AtomicU64::new(set),
            used_streams: AtomicU64::new(set),
            written: Mutex::new(None),
        }
    }

    /// Orders a read: work queued next on `stream` runs after the block's last write.
    #[inline]
    pub fn order_read<Q: StreamQueues<Mark = M>>(&self, stream: u32, queues: &Q) -> Result<(), Q::Error> {
        if self.ordered_streams.load(Ordering::Acquire) & stream_bit(stream) != 0 {
            Ok(())
        } else {
            self.order_read_on_other_stream(stream, queues)
        }
    }

    #[cold]
    fn order_read_on_other_stream<Q: StreamQueues<Mark = M>>(&self, stream: u32, queues: &Q) -> Result<(), Q::Error> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ordered_streams.load(Ordering::Acquire) & stream_bit(stream) != 0 {
            return Ok(()); // another thread has made `stream` wait meanwhile
        }
        let mark = match &*written {
            Some(mark) => mark,
            None => written.insert(queues.record_mark(self.writer.load(Ordering::Relaxed))?),
        };
        queues.wait_for_mark(stream, mark)?;
        self.used_streams.fetch_or(stream_bit(stream), Ordering::Relaxed);
        self.ordered_streams.fetch_or(stream_bit(stream), Ordering::Release);
        Ok(())
    }

    /// Orders a write: work queued next on `stream` runs after all earlier uses of the block. The caller prevents other threads from
    /// queuing work on the block meanwhile.
    #[inline]
    pub fn order_write<Q: StreamQueues<Mark = M>>(&self, stream: u32, queues: &Q) -> Result<(), Q::Error> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        *written = None;
        let others = self.ordered_streams.load(Ordering::Acquire) & !stream_bit(stream);
        for other in stream_numbers(others) {
            queues.wait_for_mark(stream, &queues.record_mark(other)?)?;
        }
        self.writer.store(stream, Ordering::Relaxed);
        self.used_streams.fetch_or(stream_bit(stream), Ordering::Relaxed);
        self.ordered_streams.store(stream_bit(stream), Ordering::Release);
        Ok(())
    }

    /// Stores `mark`, an event that was recorded after the last write. If no event is stored, the first reader on another stream waits for
    /// all work that was queued on the writer's stream before the read.
    pub fn record_write_mark(&self, mark: M) {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(mark);
    }

    /// Returns all streams that have used the block, except `stream`.
    pub fn other_streams(&self, stream: u32) -> StreamSet {
        self.used_streams.load(Ordering::Acquire) & !stream_bit(stream)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashMap;

    use super::super::free_blocks::{FreeBlockPool, MemoryBlock, PoolResponse, StreamFence};
    use super::*;

    const STREAMS: usize = 4;

    /// A vector clock: for each stream, the number of operations known to be completed.
    type Clock = [usize; STREAMS];

    /// A simulated device that runs queued work in any order that the queued waits allow.
    #[derive(Default)]
    struct Device {
        state: RefCell<State>,
    }

    #[derive(Default)]
    struct State {
        clocks: [Clock; STREAMS],
        /// For each stream, the clock that each queued operation waits for.
        queued: [Vec<Clock>; STREAMS],
        done: Clock,
        marks: usize,
        waits: usize,
        memory: HashMap<u64, Cell>,
    }

    /// The last writer of a block and its readers since then, each as stream and position.
    #[derive(Default)]
    struct Cell {
        write: Option<(usize, usize)>,
        reads: Vec<(usize, usize)>,
    }

    impl StreamQueues for Device {
        type Mark = (u32, Clock);
        type Error = ();
        fn record_mark(&self, stream: u32) -> Result<Self::Mark, ()> {
            let mut state = self.state.borrow_mut();
            state.marks += 1;
            Ok((stream, state.clocks[stream as usize]))
        }
        fn wait_for_mark(&self, stream: u32, mark: &Self::Mark) -> Result<(), ()> {
            let mut state = self.state.borrow_mut();
            state.waits += 1;
            for (mine, theirs) in state.clocks[stream as usize].iter_mut().zip(mark.1) {
                *mine = theirs.max(*mine);
            }
            Ok(())
        }
    }

    impl Device {
        /// Queues work on `stream` that accesses the blocks `reads` and `writes`. Checks that the work is ordered after all conflicting
        /// work.
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

        /// Runs the next operation of `stream`, if the operations that it waits for have run.
        fn advance(&self, stream: usize) {
            let mut state = self.state.borrow_mut();
            let Some(clock) = state.queued[stream].get(state.done[stream]).copied() else { return };
            if (0..STREAMS).all(|s| s == stream || clock[s] <= state.done[s]) {
                state.done[stream] += 1;
            }
        }
    }

    struct Passed<'a>(&'a Device, (u32, Clock));

    impl StreamFence for Passed<'_> {
        fn stream_number(&self) -> u32 {
            self.1.0
        }
        fn is_passed(&self) -> bool {
            let state = self.0.state.borrow();
            (0..STREAMS).all(|s| self.1.1[s] <= state.done[s])
        }
    }

    struct Buffer {
        block: MemoryBlock,
        home: u32,
        uses: StreamUses<(u32, Clock)>,
    }

    /// Runs a random program on random streams. `marks` tells whether each operation records an event after its write. Returns the numbers
    /// of recorded events, of waits, and of blocks from the driver.
    fn random_program(seed: u64, streams: u64, marks: bool) -> (usize, usize, u64) {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut random = |n: u64| {
            z ^= z << 13;
            z ^= z >> 7;
            z ^= z << 17;
            z % n
        };
        let device = Device::default();
        let mut pool: FreeBlockPool<Passed> = FreeBlockPool::new(u64::MAX, u64::MAX);
        let mut buffers: Vec<Buffer> = Vec::new();
        let mut fresh = 0;
        for _ in 0..3000 {
            for _ in 0..3 {
                device.advance(random(STREAMS as u64) as usize);
            }
            let stream = random(streams) as u32;
            if !buffers.is_empty() && random(5) == 0 {
                let at = random(buffers.len() as u64) as usize;
                buffers[at].uses.order_write(stream, &device).unwrap();
                device.queue(stream, &[], &[buffers[at].block.pointer]);
                continue;
            }
            if buffers.len() > 6 || !buffers.is_empty() && random(3) == 0 {
                let Buffer { block, home, uses } = buffers.swap_remove(random(buffers.len() as u64) as usize);
                match uses.other_streams(home) {
                    0 => assert!(pool.return_block(home, block, 100)),
                    others => pool.return_fenced_block(
                        home,
                        block,
                        100,
                        stream_numbers(others).map(|s| Passed(&device, device.record_mark(s).unwrap())).collect(),
                    ),
                }
                continue;
            }
            let reads: Vec<usize> = (0..random(3).min(buffers.len() as u64)).map(|_| random(buffers.len() as u64) as usize).collect();
            for &at in &reads {
                buffers[at].uses.order_read(stream, &device).unwrap();
            }
            let block = match pool.take_block(stream, 100) {
                PoolResponse::Reused(block) => block,
                PoolResponse::MustAllocate(size) => {
                    fresh += 1;
                    MemoryBlock { pointer: fresh, size }
                }
                PoolResponse::Refused => panic!("refused"),
            };
            let uses = StreamUses::new(stream);
            device.queue(stream, &reads.iter().map(|&at| buffers[at].block.pointer).collect::<Vec<_>>(), &[block.pointer]);
            if marks {
                uses.record_write_mark(device.record_mark(stream).unwrap());
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
        let uses = StreamUses::new(0);
        device.queue(0, &[], &[1]);
        uses.record_write_mark(device.record_mark(0).unwrap());
        device.queue(0, &[], &[2]); // long work, for which the reader must not wait
        for _ in 0..3 {
            uses.order_read(1, &device).unwrap();
        }
        let state = device.state.borrow();
        assert_eq!((state.waits, state.clocks[1]), (1, [1, 0, 0, 0]));
        assert_eq!(uses.other_streams(0), stream_bit(1));
    }

    #[test]
    fn a_writer_waits_for_readers_and_is_waited_for() {
        let device = Device::default();
        let uses = StreamUses::new(0);
        device.queue(0, &[], &[1]);
        for stream in [1, 2] {
            uses.order_read(stream, &device).unwrap();
            device.queue(stream, &[1], &[]);
        }
        uses.order_write(3, &device).unwrap();
        device.queue(3, &[], &[1]);
        uses.order_write(3, &device).unwrap(); // no other use since
        let waits = device.state.borrow().waits;
        assert_eq!(waits, 2 + 3);
        uses.order_read(0, &device).unwrap();
        device.queue(0, &[1], &[]);
        assert_eq!(uses.other_streams(3), stream_bit(0) | stream_bit(1) | stream_bit(2));
        assert_eq!(stream_numbers(uses.other_streams(3)).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
