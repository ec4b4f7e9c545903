//! Sort: rows of a few elements by comparing all pairs, several rows a block; rows that fit a block's shared memory by radix there, a
//! block each; longer ones by radix over the whole device. Elements travel as they are, and their order is that of keys made on the way.

pub(crate) mod segments;

use std::sync::Arc;

use cuprum_core::call::Sort;
use cuprum_core::plan::sort::SortPlan;
use cuprum_core::{Array, Call, DType, Outcome, Result, Work, decline};

use crate::codegen::ctype;
use crate::compile::module::{Args, Function};
use crate::device::{self, CudaBuffer, InCall};
use crate::driver::Context;
use crate::families::kernel::{Source, THREADS};

static TINY: Source =
    Source { name: "sort_tiny.cu", text: concat!(include_str!("../../kernels/sort_keys.cuh"), include_str!("../../kernels/sort_tiny.cu")) };
static BLOCK: Source = Source {
    name: "sort_block.cu",
    text: concat!(
        include_str!("../../kernels/sort_keys.cuh"),
        include_str!("../../kernels/sort_radix.cuh"),
        include_str!("../../kernels/sort_block.cu")
    ),
};
static SWEEP: Source = Source {
    name: "sort_onesweep.cu",
    text: concat!(
        include_str!("../../kernels/sort_keys.cuh"),
        include_str!("../../kernels/relaxed.cuh"),
        include_str!("../../kernels/count_look_back.cuh"),
        include_str!("../../kernels/block_range.cuh"),
        include_str!("../../kernels/sort_radix.cuh"),
        include_str!("../../kernels/sort_onesweep.cu")
    ),
};

/// Longest rows that are sorted by comparing all pairs.
const TINY_ROWS: usize = 128;
/// Values of a digit, as in `sort_radix.cuh`.
const RADIX: usize = 256;
/// Elements that a block counts at least before it adds to the counts of others.
const CHUNK: usize = 1 << 15;

/// The ways through a sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// A thread an element.
    Tiny,
    /// A block a row.
    Block(Tile),
    /// Blocks over tiles of rows. `wide`: places and counts need 64 bits.
    Sweep { tile: Tile, wide: bool },
}

/// What a block holds in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tile {
    threads: usize,
    items: usize,
}

impl Tile {
    fn size(self) -> usize {
        self.threads * self.items
    }

    /// As large as 48 KiB of shared memory and 80 registers a thread allow, by the bytes that elements or places are moved in.
    fn largest(moved: usize, indices: bool) -> Tile {
        let items = match moved {
            0..=4 if indices => 17,
            0..=4 => 21,
            8 => 11,
            _ => 5,
        };
        Tile { threads: 384, items }
    }

    /// The smallest that holds a row.
    fn for_row(length: usize, itemsize: usize, indices: bool) -> Option<Tile> {
        let largest = Tile::largest(itemsize, indices);
        let small = [1, 2, 4, 8, 16].map(|items| Tile { threads: 256, items }).into_iter().filter(|t| t.size() < largest.size());
        small.chain([largest]).find(|t| t.size() >= length)
    }
}

fn way(length: usize, itemsize: usize, indices: bool) -> Way {
    if length <= TINY_ROWS {
        return Way::Tiny;
    }
    match Tile::for_row(length, itemsize, indices) {
        Some(tile) => Way::Block(tile),
        None => {
            let wide = length >= 1 << 30;
            let moved = if indices && wide { itemsize.max(8) } else { itemsize };
            Way::Sweep { tile: Tile::largest(moved, indices), wide }
        }
    }
}

/// What elements are read as.
fn element(dtype: DType) -> &'static str {
    if dtype == DType::Bool { "u8" } else { ctype(dtype) }
}

/// Calls `use_defines` with the definitions of a way.
fn with_defines<R>(way: Way, dtype: DType, indices: bool, use_defines: impl FnOnce(&Source, &[(&'static str, &str)]) -> R) -> R {
    let indices = ("INDICES", if indices { "1" } else { "0" });
    let texts = |tile: Tile| (tile.threads.to_string(), tile.items.to_string());
    let element = ("ELEMENT", element(dtype));
    match way {
        Way::Tiny => use_defines(&TINY, &[element]),
        Way::Block(tile) => {
            let (threads, items) = texts(tile);
            use_defines(&BLOCK, &[element, indices, ("THREADS", &threads), ("ITEMS", &items)])
        }
        Way::Sweep { tile, wide } => {
            let (threads, items) = texts(tile);
            let word = ("Word", if wide { "u64" } else { "u32" });
            use_defines(&SWEEP, &[element, indices, word, ("THREADS", &threads), ("ITEMS", &items)])
        }
    }
}

/// Every dtype each way, values and places in turn, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    let lengths = [2, 200, 1000, 3000, 1 << 20, 1 << 30];
    let uses = DType::ALL.into_iter().enumerate().flat_map(|(n, dtype)| {
        let pick = move |(m, length): (usize, usize)| (n + m).is_multiple_of(2).then_some((dtype, length, (n + m).is_multiple_of(4)));
        lengths.into_iter().enumerate().filter_map(pick)
    });
    let listed = uses.map(|(dtype, length, indices)| {
        with_defines(way(length, dtype.itemsize(), indices), dtype, indices, |source, defines| source.listed(defines))
    });
    listed.chain(segments::sources()).collect()
}

/// The kernel of family Sort.
pub fn run(call: &Call) -> Result<Outcome> {
    let (&Work::Sort(sort), [input]) = (&call.work, call.inputs) else { decline!("not a sort of one array") };
    let asked = usize::from(sort.values) + usize::from(sort.indices);
    let Some(plan) = call.outputs.first().and_then(|o| SortPlan::new(input.layout(), &o.layout)) else { decline!("no axis to sort along") };
    if call.outputs.len() != asked || !input.layout().is_c_contiguous() || !call.outputs.iter().all(|o| o.layout.is_c_contiguous()) {
        decline!("arrays that are not contiguous, or outputs that are not values, places or both");
    }
    let outputs = (0..asked).map(|n| device::allocate_output(call, n)).collect::<Result<Vec<_>>>()?;
    if !plan.is_empty() {
        let SortPlan { rows, columns: length, kept: limit } = plan;
        let context = device::context(call.device)?;
        let values = outputs.first().filter(|_| sort.values);
        let places = outputs.last().filter(|_| sort.indices);
        let rows = Rows { call, context, dtype: input.dtype(), sort, from: device::pointer(input)?, rows, length, limit, values, places };
        rows.queue(way(length, input.dtype().itemsize(), sort.indices))?;
    }
    device::done(call, outputs)
}

/// One sort on its way to the stream.
struct Rows<'a> {
    call: &'a Call<'a>,
    context: &'static Context,
    dtype: DType,
    sort: Sort,
    from: u64,
    rows: usize,
    length: usize,
    limit: usize,
    values: Option<&'a Arc<CudaBuffer>>,
    places: Option<&'a Arc<CudaBuffer>>,
}

/// Blocks of a grid; kernels that meet fewer than they asked for come round.
fn blocks(count: usize) -> [u32; 3] {
    [u32::try_from(count).unwrap_or(u32::MAX).min(i32::MAX.unsigned_abs()), 1, 1]
}

fn pointer(buffer: Option<&Arc<CudaBuffer>>) -> u64 {
    buffer.map_or(0, |b| b.pointer())
}

impl Rows<'_> {
    fn function(&self, way: Way, name: &str) -> Result<Arc<Function>> {
        with_defines(way, self.dtype, self.sort.indices, |source, defines| source.kernel(self.context, name, defines)).in_call(self.call)
    }

    /// What digits are combined with.
    fn flip(&self) -> u32 {
        if self.sort.descending { 0xff } else { 0 }
    }

    fn queue(&self, way: Way) -> Result<()> {
        let (values, places) = (pointer(self.values), pointer(self.places));
        // Both fit: such rows are short.
        let (length, limit, flip) = (self.length as i32, self.limit as i32, self.flip());
        let mut args = Args::new();
        args.push(&self.from).push(&values).push(&places).push(&self.rows).push(&length).push(&limit);
        match way {
            Way::Tiny => {
                let (together, descending) = ((THREADS as usize / self.length) as i32, i32::from(self.sort.descending));
                args.push(&together).push(&descending);
                let function = self.function(way, "sort_tiny")?;
                let grid = blocks(self.rows.div_ceil(together as usize));
                // SAFETY: the arguments are those of sort_tiny in sort_tiny.cu: `rows` rows of `length` elements, and outputs of
                // `limit` a row, or null.
                unsafe { function.launch(grid, [THREADS, 1, 1], 0, args.pointers()) }.in_call(self.call)
            }
            Way::Block(tile) => {
                args.push(&flip);
                let function = self.function(way, "sort_block")?;
                // SAFETY: as above, of sort_block in sort_block.cu; a tile holds a row, and places are there if it was compiled for
                // them.
                unsafe { function.launch(blocks(self.rows), [tile.threads as u32, 1, 1], 0, args.pointers()) }.in_call(self.call)
            }
            Way::Sweep { tile, wide } => self.sweep(way, tile, if wide { 8 } else { 4 }),
        }
    }

    fn sweep(&self, way: Way, tile: Tile, word: usize) -> Result<()> {
        let Rows { call, rows, length, limit, .. } = *self;
        let itemsize = self.dtype.itemsize();
        let (elements, flip, passes) = (rows * length, self.flip(), itemsize);
        let tiles = length.div_ceil(tile.size());
        let chunk = CHUNK.max(elements.div_ceil(16 * self.context.info().sm_count.max(1) as usize)).next_multiple_of(tile.threads);
        let chunks = length.div_ceil(chunk);

        // Counts of digits, states of tiles, masks of rows and tickets, all 0; then states that each pass leaves for the next.
        let (counts, states) = (rows * passes * RADIX * word, rows * tiles * RADIX * word);
        let zeros = counts + states + (rows + passes) * 4;
        let other_states = zeros.next_multiple_of(16);
        let scratch = device::allocate(call, other_states + if passes > 1 { states } else { 0 })?;
        self.context.fill(scratch.memory(), 0, [0u8; 4], zeros / 4).in_call(call)?;
        let at = |offset: usize| scratch.pointer() + offset as u64;
        let (starts, masks) = (at(0), at(counts + states));
        // One pass leaves nothing to the next, and may clear what is past its use.
        let states = [at(counts), if passes > 1 { at(other_states) } else { at(counts) }];

        // Between passes, elements and places lie in two more buffers, or one and the output.
        let whole = limit == length;
        let moved = |size: usize, output: Option<&Arc<CudaBuffer>>| -> Result<[Arc<CudaBuffer>; 2]> {
            let other = device::allocate(call, if passes > 1 { elements * size } else { 0 })?;
            match output.filter(|_| whole) {
                Some(output) => Ok([output.clone(), other]),
                None => Ok([device::allocate(call, if passes > 1 { elements * size } else { 0 })?, other]),
            }
        };
        let values = moved(itemsize, self.values)?;
        let places = if self.sort.indices { Some(moved(word, self.places)?) } else { None };
        // In the output, a row's places lie at its start, where nobody else's results go.
        let pitches = [if whole { length * (8 / word) } else { length }, length];

        let threads = [tile.threads as u32, 1, 1];
        let function = self.function(way, "sort_count")?;
        let mut args = Args::new();
        args.push(&self.from).push(&starts).push(&length).push(&chunk).push(&chunks).push(&flip);
        // SAFETY: the arguments are those of sort_count in sort_onesweep.cu; `starts` has RADIX counts for each row and pass.
        unsafe { function.launch(blocks(rows * chunks), threads, 0, args.pointers()) }.in_call(call)?;
        let function = self.function(way, "sort_starts")?;
        let mut args = Args::new();
        args.push(&starts).push(&masks).push(&length);
        // SAFETY: as above, of sort_starts; there is a mask for each row.
        unsafe { function.launch(blocks(rows * passes), [RADIX as u32, 1, 1], 0, args.pointers()) }.in_call(call)?;

        let function = self.function(way, "sort_pass")?;
        let address = |pair: Option<&[Arc<CudaBuffer>; 2]>, n: usize| pair.map_or(0, |p| p[n].pointer());
        let buffers = [
            self.from,
            address(Some(&values), 0),
            address(Some(&values), 1),
            address(places.as_ref(), 0),
            address(places.as_ref(), 1),
            pitches[0] as u64,
            pitches[1] as u64,
            pointer(self.values),
            pointer(self.places),
        ];
        for pass in 0..passes as u32 {
            let ticket = masks + 4 * (rows as u64 + u64::from(pass));
            let [mine, next] = if pass % 2 == 0 { states } else { [states[1], states[0]] };
            let mut args = Args::new();
            args.push(&buffers).push(&starts).push(&masks).push(&ticket).push(&mine).push(&next);
            args.push(&length).push(&limit).push(&tiles).push(&pass).push(&flip);
            // SAFETY: as above, of sort_pass: `buffers` is laid out as its struct, each buffer has `length` elements a row, and the
            // outputs `limit`; RADIX states for each of the tiles, as many as blocks.
            unsafe { function.launch(blocks(rows * tiles), threads, 0, args.pointers()) }.in_call(call)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_follow_the_row() {
        assert_eq!(way(128, 4, true), Way::Tiny);
        assert_eq!(way(129, 4, false), Way::Block(Tile { threads: 256, items: 1 }));
        assert_eq!(way(4097, 4, false), Way::Block(Tile { threads: 384, items: 21 }));
        assert_eq!(way(1500, 16, false), Way::Block(Tile { threads: 384, items: 5 }));
        assert_eq!(way(8065, 4, false), Way::Sweep { tile: Tile { threads: 384, items: 21 }, wide: false });
        assert_eq!(way(8065, 1, true), Way::Sweep { tile: Tile { threads: 384, items: 17 }, wide: false });
        assert_eq!(way(1 << 30, 4, true), Way::Sweep { tile: Tile { threads: 384, items: 11 }, wide: true });
        for (itemsize, indices) in [(1, true), (2, false), (4, true), (8, true), (16, false)] {
            let Way::Sweep { tile, .. } = way(1 << 20, itemsize, indices) else { panic!() };
            assert!(tile.size() * itemsize.max(4) <= 46 << 10, "shared memory for {itemsize} bytes");
        }
    }

    #[test]
    fn every_listed_source_is_whole() {
        let list = sources();
        assert_eq!(list.len(), 45 + 30);
        for name in ["sort_tiny(", "sort_block(", "sort_pass(", "sort_segments(", "sort_segments_short("] {
            assert!(list.iter().any(|(_, text)| text.contains(name)), "{name}");
        }
    }
}
