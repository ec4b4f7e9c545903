//! Stable radix sort of rows: short ones by a block each, long ones by a pass over memory for each digit of 8 bits. The first few of
//! long rows are selected, not sorted; so is the one that a partition is around.

use cuprum_backend_cuda::codegen::{KernelKey, ctype, parts};
use cuprum_core::call;
use cuprum_core::call::{Sort as Asked, Work};
use cuprum_core::plan::sort::SortPlan;
use cuprum_core::{Array, Call, DType, Outcome, Reason, Result};

use crate::launch::{self, Described, On};
use crate::source::{BLOCK, Definitions, Family, Source};

/// Digits of a pass, as in `sort.cu`.
pub const DIGITS: usize = 256;
/// Rows of this length have 64-bit places: a tile's state holds counts of 28 bits otherwise.
const WIDE: usize = 1 << 28;
/// Fewer rows than this are too few to give each to one block, if they are long.
const FEW_ROWS: usize = 16;
/// The longest of few rows that a block each sorts.
const FEW_COLUMNS: usize = 4096;

const KEYS: &str = include_str!("kernels/keys.cuh");

static ROWS: Family =
    Family { name: "cub_sort_rows.cu", blocks: true, head: &[parts::ORDER], text: &[KEYS, include_str!("kernels/sort_rows.cu")] };
static PASSES: Family = Family {
    name: "cub_sort.cu",
    blocks: true,
    head: &[parts::RELAXED, parts::SHARE, parts::ORDER],
    text: &[KEYS, include_str!("kernels/sort.cu")],
};
static TOP: Family = Family {
    name: "cub_top.cu",
    blocks: false,
    head: &[parts::WARP, BLOCK, parts::SHARE, parts::ORDER],
    text: &[KEYS, include_str!("kernels/top.cu")],
};

static AROUND: Family = Family {
    name: "cub_around.cu",
    blocks: false,
    head: &[parts::WARP, BLOCK, parts::SHARE, parts::ORDER],
    text: &[KEYS, include_str!("kernels/top.cu"), include_str!("kernels/around.cu")],
};

/// Threads of a block that selects, as in `top.cu`.
const TOP_THREADS: usize = 512;
/// Digits that it counts, as there.
pub const TOP_BINS: usize = 2048;
/// The most that are selected of a row, as there.
const TOP_MOST: usize = 1024;
/// The longest rows that are parted around an element: counts of a piece of one have 32 bits.
const AROUND_MOST: usize = u32::MAX as usize;
/// More rows than this would take much memory for counts.
const TOP_ROWS: usize = 1024;

/// How rows are given to blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// A block a row.
    Rows,
    /// All rows in tiles, a pass for each digit.
    Passes,
    /// The first few, selected.
    Top,
    /// All in three parts, around one that is selected.
    Around,
}

/// Bits of a key, or of a place, that a pass of a selection counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digit {
    /// Of a place.
    pub of_places: bool,
    /// The lowest of the bits.
    pub shift: u32,
    /// The bit above them.
    pub upper: u32,
}

/// A sort that the kernels take.
#[derive(Debug)]
pub struct Sort {
    /// What is asked for.
    pub asked: Asked,
    dtype: DType,
    /// Its rows.
    pub plan: SortPlan,
    /// Which kernels.
    pub way: Way,
    /// Threads of a block.
    pub threads: usize,
    items: usize,
    blocks: usize,
}

/// What the kernels are asked for, or why they decline.
pub fn describe(call: &Call) -> Result<Sort, Reason> {
    if let Work::SegmentSort(call::SegmentSort { .. }) = call.work {
        return Err(Reason::new("segments: the base's kernels sort them by classes of length"));
    }
    let (Work::Sort(asked), [input], [output, ..]) = (&call.work, call.inputs, call.outputs) else {
        return Err(Reason::new("not a sort"));
    };
    let Some(plan) = SortPlan::new(input.layout(), &output.layout) else {
        return Err(Reason::new("no axis to sort along"));
    };
    let sort = Sort::new(*asked, input.dtype(), plan);
    if plan.rows.saturating_mul(sort.tiles()) > i32::MAX as usize {
        let SortPlan { rows, columns, .. } = plan;
        return Err(Reason::with(|| format!("{rows} rows of {columns} elements are more than 2^31 tiles")));
    }
    Ok(sort)
}

/// Threads and elements of each thread of a block that sorts a whole row.
fn block(rows: usize, columns: usize, size: usize) -> Option<(usize, usize)> {
    let of = |(threads, items): &(usize, usize)| {
        let elements = threads * items;
        let fits = elements * size <= 32 << 10; // of 48 KiB of shared memory
        columns <= elements && fits && (elements <= FEW_COLUMNS || rows >= FEW_ROWS)
    };
    [(32, 4), (64, 8), (128, 8), (256, 8), (256, 16), (512, 16)].into_iter().find(of)
}

/// Threads, elements of each thread, and blocks that a multiprocessor of 64 K registers holds, for a pass. Keys alone are as in
/// CUB's tuning for sm_90; its pairs have up to 23 elements, and registers for one block.
fn tile(size: usize, place: Option<usize>) -> (usize, usize, usize) {
    match (size, place) {
        (1 | 2, None) => (384, 19, 2),
        (4, None) => (384, 19, 3),
        (1 | 2 | 4, Some(4)) => (384, 18, 2),
        (8, Some(4)) => (384, 15, 2),
        _ => (384, 12, 2),
    }
}

impl Sort {
    fn new(asked: Asked, dtype: DType, plan: SortPlan) -> Sort {
        let mut sort = Sort { asked, dtype, plan, way: Way::Rows, threads: 0, items: 0, blocks: 1 };
        let selects = sort.words() == 1 && plan.rows <= TOP_ROWS;
        let is_around = asked.nth.is_some_and(|nth| nth < plan.columns && plan.kept == plan.columns && plan.columns <= AROUND_MOST);
        let is_few = selects && plan.kept <= TOP_MOST && plan.kept <= plan.columns / 8;
        (sort.threads, sort.items, sort.blocks) = match block(plan.rows, plan.columns, sort.key_size()) {
            Some((threads, items)) => (threads, items, 1),
            None if selects && is_around => {
                sort.way = Way::Around;
                (TOP_THREADS, 16, 1)
            }
            None if is_few => {
                sort.way = Way::Top;
                (TOP_THREADS, 16, 1)
            }
            None => {
                sort.way = Way::Passes;
                tile(sort.key_size(), sort.has_pairs().then(|| sort.place_size()))
            }
        };
        sort
    }

    /// Whether places travel with the keys: they are asked for, or needed to find the values, which the keys do not tell.
    pub fn has_pairs(&self) -> bool {
        self.asked.indices || self.dtype.is_complex() || [Way::Top, Way::Around].contains(&self.way)
    }

    /// Keys of an element: complex128 is sorted by one word, then by the other.
    pub fn words(&self) -> usize {
        if self.dtype == DType::C128 { 2 } else { 1 }
    }

    /// Bytes of a key, which has as many digits.
    pub fn key_size(&self) -> usize {
        self.dtype.itemsize() / self.words()
    }

    /// Bytes of a place on its way.
    pub fn place_size(&self) -> usize {
        if self.plan.columns < WIDE { 4 } else { 8 }
    }

    /// Tiles of a row.
    pub fn tiles(&self) -> usize {
        match self.way {
            Way::Rows => 1,
            Way::Passes | Way::Top | Way::Around => self.plan.columns.div_ceil(self.threads * self.items),
        }
    }

    /// How many first elements a selection looks for the last of.
    pub fn selected(&self) -> usize {
        match (self.way, self.asked.nth) {
            (Way::Around, Some(nth)) => nth + 1,
            _ => self.plan.kept,
        }
    }

    /// What the passes of a selection count, in their order.
    pub fn digits(&self) -> impl Iterator<Item = Digit> {
        let of_places = usize::BITS - self.plan.columns.saturating_sub(1).leading_zeros();
        let cut = |of_places: bool, bits: u32| {
            std::iter::successors(Some(bits), |upper| Some(upper.saturating_sub(TOP_BINS.ilog2())))
                .take_while(|upper| *upper > 0)
                .map(move |upper| Digit { of_places, shift: upper.saturating_sub(TOP_BINS.ilog2()), upper })
        };
        let by_places = cut(true, of_places).filter(|_| self.way != Way::Around);
        cut(false, 8 * self.key_size() as u32).chain(by_places)
    }

    /// Passes that the tags in a tile's state tell apart, as in `sort.cu`.
    pub fn tagged_passes(&self) -> usize {
        if self.place_size() == 4 { 7 } else { 127 }
    }
}

impl Described for Sort {
    /// Neither a partition nor the first few of long rows: they include no header of CUB's. The base's partition has its elements in
    /// another order besides.
    fn takes_long_to_compile(&self) -> bool {
        ![Way::Top, Way::Around].contains(&self.way)
    }

    fn key(&self) -> KernelKey<'_> {
        KernelKey::of_class("cub sort")
            .with_dtype(self.dtype)
            .with(u64::from(self.has_pairs()) << 1 | u64::from(self.asked.descending))
            .with(self.place_size() as u64)
            .with(self.way as u64)
            .with((self.threads * self.items) as u64)
    }

    fn source(&self) -> Result<Source, &'static str> {
        let mut d = Definitions::default();
        d.alias("Element", ctype(self.dtype));
        d.alias("Key", ["u8", "u16", "u32", "u64"][self.key_size().ilog2() as usize % 4]);
        d.alias("Place", if self.place_size() == 4 { "u32" } else { "u64" });
        d.constant("WORDS", self.words());
        d.constant("PAIRS", self.has_pairs().into());
        d.constant("DESCENDING", self.asked.descending.into());
        if [Way::Top, Way::Around].contains(&self.way) {
            d.constant("EXACT", (self.way == Way::Around).into());
            return Ok(match self.way {
                Way::Around => AROUND.plain_source(&d, &["top_digit", "around_count", "around_write"]),
                _ => TOP.plain_source(&d, &["top_digit", "top_gather", "top_rank"]),
            });
        }
        d.constant("THREADS", self.threads);
        d.constant("ITEMS", self.items);
        match self.way {
            Way::Rows => Ok(ROWS.plain_source(&d, &["sort_rows"])),
            Way::Passes | Way::Top | Way::Around => {
                d.constant("BLOCKS", self.blocks);
                Ok(PASSES.plain_source(&d, &["sort_count", "sort_begin", "sort_pass"]))
            }
        }
    }

    fn launch(&self, on: &On) -> Result<Outcome> {
        launch::sort(on, self)
    }
}

/// Programs of this family over a representative list, for compiling without a device.
pub fn sources() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        let indices = n % 2 == 0;
        let asked = Asked { descending: n % 3 == 0, values: !indices, indices, nth: None };
        for (rows, columns) in [(1, 1 << 20), (100, [100, 500, 1000, 2000, 4000, 8000][n % 6])] {
            let sort = Sort::new(asked, dtype, SortPlan { rows, columns, kept: columns });
            list.push((format!("cub_sort.cu {dtype}, {rows} x {columns}, {asked:?}"), sort));
        }
    }
    let both = Asked { descending: true, values: true, indices: true, nth: None };
    // Each tile: every size of keys and places, and keys alone.
    let sizes = [DType::U8, DType::I16, DType::F32, DType::F64];
    for (dtype, columns) in sizes.into_iter().flat_map(|d| [(d, 1 << 20), (d, WIDE)]) {
        for asked in [Asked { descending: false, values: true, indices: false, nth: None }, both] {
            let sort = Sort::new(asked, dtype, SortPlan { rows: 1, columns, kept: columns });
            list.push((format!("cub_sort.cu {dtype}, {}-byte places, {asked:?}", sort.place_size()), sort));
        }
    }
    for (dtype, columns) in [(DType::I8, 1 << 20), (DType::F16, WIDE), (DType::F32, 1 << 20), (DType::C64, WIDE)] {
        let sort = Sort::new(both, dtype, SortPlan { rows: 1, columns, kept: 10 });
        list.push((format!("cub_top.cu {dtype}, {columns}"), sort));
    }
    for (n, dtype) in [DType::Bool, DType::BF16, DType::F32, DType::I64].into_iter().enumerate() {
        let around = Asked { descending: n % 2 == 1, nth: Some(7), ..both };
        let sort = Sort::new(around, dtype, SortPlan { rows: 1, columns: 1 << 20, kept: 1 << 20 });
        list.push((format!("cub_around.cu {dtype}"), sort));
    }
    list.into_iter().filter_map(|(name, sort)| Some((name, sort.source().ok()?.text))).collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::sort::{SORT, TOPK};

    use super::*;
    use crate::testing::{array, contiguous, output, reason, with_call};

    const VALUES: Asked = Asked { descending: false, values: true, indices: false, nth: None };
    const BOTH: Asked = Asked { descending: true, values: true, indices: true, nth: None };

    fn of<R>(dtype: DType, shape: &[usize], asked: Asked, limit: usize, check: impl FnOnce(Sort) -> R) -> Result<R, String> {
        let mut kept = shape.to_vec();
        *kept.last_mut().unwrap() = limit;
        let outputs = [(asked.values, dtype), (asked.indices, DType::I64)];
        let outputs: Vec<_> = outputs.into_iter().filter(|(asked, _)| *asked).map(|(_, d)| output(d, &kept)).collect();
        let inputs = [array(dtype, contiguous(shape))];
        let op = if asked.indices { TOPK } else { SORT };
        with_call(op, &inputs, &outputs, Work::Sort(asked), |call| reason(|| describe(call)).map(check))
    }

    #[test]
    fn short_rows_get_a_block_and_long_ones_passes() {
        let way =
            |dtype, shape: &[usize]| of(dtype, shape, VALUES, *shape.last().unwrap(), |s| (s.way, s.threads * s.items, s.tiles())).unwrap();
        assert_eq!(way(DType::F32, &[1000, 3]), (Way::Rows, 128, 1));
        assert_eq!(way(DType::F32, &[1000, 513]), (Way::Rows, 1024, 1));
        assert_eq!(way(DType::F32, &[4096]), (Way::Rows, 4096, 1));
        assert_eq!(way(DType::F32, &[4097]), (Way::Passes, 384 * 19, 1));
        assert_eq!(way(DType::F32, &[16, 8192]), (Way::Rows, 8192, 1));
        assert_eq!(way(DType::F64, &[16, 8192]), (Way::Passes, 384 * 12, 2), "64 KiB of keys");
        assert_eq!(way(DType::U8, &[1 << 20]), (Way::Passes, 384 * 19, 144));
        assert_eq!(way(DType::C128, &[16, 4096]), (Way::Rows, 4096, 1), "a word at a time");
        assert_eq!(way(DType::C128, &[1 << 20]), (Way::Passes, 384 * 15, 183));
    }

    #[test]
    fn few_of_long_rows_are_selected() {
        let way = |shape: &[usize], limit| of(DType::F32, shape, BOTH, limit, |s| s.way).unwrap();
        assert_eq!(way(&[1 << 20], 1024), Way::Top);
        assert_eq!(way(&[1 << 20], 1025), Way::Passes);
        assert_eq!(way(&[5000], 626), Way::Passes);
        assert_eq!(way(&[4096], 1), Way::Rows);
        assert_eq!(way(&[1025, 1 << 14], 1), Way::Passes);
        assert_eq!(of(DType::C128, &[1 << 20], BOTH, 1, |s| s.way).unwrap(), Way::Passes, "places come after one word");
        let digits =
            |dtype, n| of(dtype, &[n], BOTH, 1, |s| s.digits().map(|d| (d.of_places, d.shift, d.upper)).collect::<Vec<_>>()).unwrap();
        assert_eq!(digits(DType::U8, 1 << 20), [(false, 0, 8), (true, 9, 20), (true, 0, 9)]);
        assert_eq!(digits(DType::F32, 5000), [(false, 21, 32), (false, 10, 21), (false, 0, 10), (true, 2, 13), (true, 0, 2)]);
    }

    #[test]
    fn partitions_of_long_rows_are_around_one_element() {
        let around = |nth| Asked { nth: Some(nth), ..VALUES };
        let way = |dtype, shape: &[usize], nth| {
            let whole = *shape.last().unwrap();
            of(dtype, shape, around(nth), whole, |s| (s.way, s.selected(), s.digits().filter(|d| d.of_places).count())).unwrap()
        };
        assert_eq!(way(DType::F32, &[1 << 20], 5), (Way::Around, 6, 0));
        assert_eq!(way(DType::F32, &[1000], 5).0, Way::Rows);
        assert_eq!(way(DType::F32, &[1 << 20], 1 << 20).0, Way::Passes, "no such element");
        assert_eq!(way(DType::C128, &[1 << 20], 5).0, Way::Passes);
        assert!(!of(DType::F32, &[1 << 20], around(5), 1 << 20, |s| s.takes_long_to_compile()).unwrap());
        let key = |asked| of(DType::F32, &[1 << 20], asked, 1 << 20, |s| s.key().written()).unwrap();
        assert_eq!(key(around(5)), key(around(6)));
        assert_ne!(key(around(5)), key(VALUES));
    }

    #[test]
    fn places_are_narrow_until_they_cannot_be() {
        let place = |n| of(DType::F32, &[n], BOTH, n, |s| (s.place_size(), s.tagged_passes())).unwrap();
        assert_eq!((place((1 << 28) - 1), place(1 << 28)), ((4, 7), (8, 127)));
        assert!(of(DType::C64, &[10], VALUES, 10, |s| s.has_pairs()).unwrap(), "keys of complex numbers do not give them back");
        assert!(!of(DType::F16, &[10], VALUES, 10, |s| s.has_pairs()).unwrap());
    }

    #[test]
    fn tiles_fit_shared_memory() {
        for size in [1, 2, 4, 8] {
            for (pairs, place) in [(false, 4), (false, 8), (true, 4), (true, 8)] {
                let (threads, items, _) = tile(size, pairs.then_some(place));
                let bytes = threads * items * if pairs { size.max(place) } else { size };
                let ranks = threads / 32 * DIGITS * 4 + 4096;
                assert!(bytes.max(ranks) + DIGITS * place + 16 <= 48 << 10, "{size} {pairs} {place}");
                assert!(threads >= DIGITS);
            }
        }
    }

    #[test]
    fn keys_see_structure_not_size() {
        let key = |dtype, shape: &[usize], asked, limit| of(dtype, shape, asked, limit, |s| s.key().written()).unwrap();
        let base = key(DType::F32, &[1 << 20], VALUES, 2000);
        assert_eq!(base, key(DType::F32, &[3, 1 << 23], VALUES, 1 << 23));
        assert_ne!(base, key(DType::I32, &[1 << 20], VALUES, 2000));
        assert_ne!(base, key(DType::F32, &[1 << 20], BOTH, 2000));
        assert_ne!(base, key(DType::F32, &[1 << 20], VALUES, 10));
        assert_ne!(base, key(DType::F32, &[100], VALUES, 1));
        assert_ne!(base, key(DType::F32, &[1 << 28], VALUES, 2000));
    }

    #[test]
    fn declines() {
        let why = |dtype, shape: &[usize]| of(dtype, shape, VALUES, 2000, |_| ()).unwrap_err();
        assert_eq!(why(DType::F32, &[1 << 18, 1 << 27]), "262144 rows of 134217728 elements are more than 2^31 tiles");
    }
}
