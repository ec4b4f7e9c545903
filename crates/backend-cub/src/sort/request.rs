//! Stable radix sort of rows. A block sorts a short row. Long rows take one pass over memory for each 8-bit digit.
//!
//! Radix selection replaces the sort of long rows for the first few elements, and for partitions around one element.

use cuprum_backend_cuda::codegen::{KernelKey, ctype, device_sources};
use cuprum_core::call;
use cuprum_core::call::{Sort as SortOptions, Work};
use cuprum_core::plan::sort::SortPlan;
use cuprum_core::{Array, Call, DType, DeclineReason, Result};

use crate::kernel_source::{BLOCK_FOLD_AND_SCAN_SOURCE, GeneratedSource, SourceDefinitions, SourceTemplate};
use crate::launch::KernelRequest;

/// Number of values of an 8-bit digit, as in `sort_passes.cu`.
pub const DIGIT_VALUE_COUNT: usize = 256;
/// Minimum length of rows that need 64-bit indices. With 32-bit indices, the look-back state of a tile holds counts of 28 bits.
const MIN_COLUMNS_FOR_64_BIT_INDICES: usize = 1 << 28;
/// Minimum number of rows for which one block per row sorts rows longer than [`MAX_BLOCK_SORT_COLUMNS`]. Fewer blocks do not fill the
/// device.
const MIN_ROWS_FOR_BLOCK_SORT: usize = 16;
/// Maximum length of rows that a block sorts if there are fewer than `MIN_ROWS_FOR_BLOCK_SORT` rows.
const MAX_BLOCK_SORT_COLUMNS: usize = 4096;

/// Threads per block of the selection kernels, as in `sort_top.cu`.
const RADIX_SELECT_THREADS: usize = 512;
/// Digit counters per row of the selection kernels, as in `sort_top.cu`.
pub const RADIX_SELECT_BINS: usize = 2048;
/// Maximum number of selected elements per row, as in `sort_top.cu`.
const MAX_SELECTED_PER_ROW: usize = 1024;
/// Maximum length of the rows of a `partition`. `sort_partition.cu` counts the elements of a chunk, which may be a whole row, in 32 bits.
const MAX_PARTITION_COLUMNS: usize = u32::MAX as usize;
/// Maximum number of rows to select from, which limits the memory for digit counters.
const MAX_SELECT_ROWS: usize = 1024;

const SORT_KEYS_SOURCE: &str = include_str!("../kernels/sort_keys.cuh");
const RADIX_SELECT_SOURCE: &str = include_str!("../kernels/sort_top.cu");

static SORT_ROWS_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_sort_rows.cu",
    includes_cub: true,
    headers: &[device_sources::SORT_KEY_ENCODING_SOURCE],
    body: &[SORT_KEYS_SOURCE, include_str!("../kernels/sort_rows.cu")],
};
static SORT_PASSES_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_sort_passes.cu",
    includes_cub: true,
    headers: &[device_sources::RELAXED_ATOMICS_SOURCE, device_sources::BLOCK_RANGE_LOOP_SOURCE, device_sources::SORT_KEY_ENCODING_SOURCE],
    body: &[SORT_KEYS_SOURCE, include_str!("../kernels/sort_passes.cu")],
};
static SORT_TOP_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_sort_top.cu",
    includes_cub: false,
    headers: &[
        device_sources::WARP_SHUFFLE_SOURCE,
        BLOCK_FOLD_AND_SCAN_SOURCE,
        device_sources::BLOCK_RANGE_LOOP_SOURCE,
        device_sources::SORT_KEY_ENCODING_SOURCE,
    ],
    body: &[SORT_KEYS_SOURCE, RADIX_SELECT_SOURCE],
};
static SORT_PARTITION_TEMPLATE: SourceTemplate = SourceTemplate {
    name: "cub_sort_partition.cu",
    includes_cub: false,
    headers: &[
        device_sources::WARP_SHUFFLE_SOURCE,
        BLOCK_FOLD_AND_SCAN_SOURCE,
        device_sources::BLOCK_RANGE_LOOP_SOURCE,
        device_sources::SORT_KEY_ENCODING_SOURCE,
    ],
    body: &[SORT_KEYS_SOURCE, RADIX_SELECT_SOURCE, include_str!("../kernels/sort_partition.cu")],
};

/// The algorithm of a sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SortMethod {
    /// A block sorts a whole row.
    BlockPerRow,
    /// One pass over all rows for each digit.
    RadixPasses,
    /// Radix selection of the first elements, which are then sorted.
    TopK,
    /// Partition of each row around one element, as in `numpy.partition`. Radix selection finds the element.
    Partition,
}

/// The range of bits whose values one pass of a radix selection counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DigitBitRange {
    /// Whether the bits belong to the index of an element instead of its key.
    pub of_indices: bool,
    /// The lowest bit of the range.
    pub begin_bit: u32,
    /// One past the highest bit of the range.
    pub end_bit: u32,
}

/// The parameters of a sort call that determine its kernels.
#[derive(Debug)]
pub struct SortRequest {
    /// The options of the call.
    pub options: SortOptions,
    dtype: DType,
    /// Number and length of the rows to sort.
    pub plan: SortPlan,
    /// The algorithm, which selects the kernels.
    pub method: SortMethod,
    /// Threads per block.
    pub threads: usize,
    /// Elements per thread.
    items: usize,
    /// Minimum number of resident blocks per multiprocessor.
    min_blocks: usize,
}

/// Converts `call` to a [`SortRequest`], or returns the reason why CUB declines the call.
pub fn sort_request_for_call(call: &Call) -> Result<SortRequest, DeclineReason> {
    if let Work::SegmentSort(call::SegmentSort { .. }) = call.work {
        return Err(DeclineReason::new("segments: only the base accelerator sorts them"));
    }
    if let Work::Merge(_) = call.work {
        return Err(DeclineReason::new("a merge: only the base accelerator merges arrays"));
    }
    let (Work::Sort(options), [input], [output, ..]) = (&call.work, call.inputs, call.outputs) else {
        return Err(DeclineReason::new("not a sort"));
    };
    let Some(plan) = SortPlan::new(input.layout(), &output.layout) else {
        return Err(DeclineReason::new("no axis to sort along"));
    };
    let request = SortRequest::from_plan(*options, input.dtype(), plan);
    if plan.rows.saturating_mul(request.tiles_per_row()) > i32::MAX as usize {
        let SortPlan { rows, columns, .. } = plan;
        return Err(DeclineReason::with_text(|| format!("{rows} rows of {columns} elements are more than 2^31 tiles")));
    }
    Ok(request)
}

/// Returns threads per block and elements per thread to sort a whole row in a block, or `None` if the rows are too long.
fn block_sort_tuning(rows: usize, columns: usize, key_size: usize) -> Option<(usize, usize)> {
    let suits = |(threads, items): &(usize, usize)| {
        let elements = threads * items;
        let fits = elements * key_size <= 32 << 10; // of 48 KiB of shared memory
        columns <= elements && fits && (elements <= MAX_BLOCK_SORT_COLUMNS || rows >= MIN_ROWS_FOR_BLOCK_SORT)
    };
    [(32, 4), (64, 8), (128, 8), (256, 8), (256, 16), (512, 16)].into_iter().find(suits)
}

/// Returns the threads per block, elements per thread and minimum resident blocks per multiprocessor of a radix pass.
///
/// Without indices, the values are CUB's tuning for sm_90. For pairs of key and index, CUB's tuning has up to 23 elements per thread, which
/// leaves registers for only one resident block.
fn radix_pass_tuning(key_size: usize, index_size: Option<usize>) -> (usize, usize, usize) {
    match (key_size, index_size) {
        (1 | 2, None) => (384, 19, 2),
        (4, None) => (384, 19, 3),
        (1 | 2 | 4, Some(4)) => (384, 18, 2),
        (8, Some(4)) => (384, 15, 2),
        _ => (384, 12, 2),
    }
}

impl SortRequest {
    fn from_plan(options: SortOptions, dtype: DType, plan: SortPlan) -> SortRequest {
        let method = SortMethod::BlockPerRow;
        let mut request = SortRequest { options, dtype, plan, method, threads: 0, items: 0, min_blocks: 1 };
        let can_select = request.keys_per_element() == 1 && plan.rows <= MAX_SELECT_ROWS;
        let has_nth = options.nth.is_some_and(|nth| nth < plan.columns && plan.kept == plan.columns);
        let is_partition = can_select && has_nth && plan.columns <= MAX_PARTITION_COLUMNS;
        let is_top_k = can_select && plan.kept <= MAX_SELECTED_PER_ROW && plan.kept <= plan.columns / 8;
        (request.threads, request.items, request.min_blocks) = match block_sort_tuning(plan.rows, plan.columns, request.key_size()) {
            Some((threads, items)) => (threads, items, 1),
            None if is_partition => {
                request.method = SortMethod::Partition;
                (RADIX_SELECT_THREADS, 16, 1)
            }
            None if is_top_k => {
                request.method = SortMethod::TopK;
                (RADIX_SELECT_THREADS, 16, 1)
            }
            None => {
                request.method = SortMethod::RadixPasses;
                radix_pass_tuning(request.key_size(), request.sorts_key_index_pairs().then(|| request.index_size()))
            }
        };
        request
    }

    /// Returns whether the algorithm uses radix selection.
    fn uses_radix_selection(&self) -> bool {
        matches!(self.method, SortMethod::TopK | SortMethod::Partition)
    }

    /// Returns whether the sort moves an index with each key.
    ///
    /// Indices move if the call returns them, if a radix selection needs them, or if values cannot be decoded from keys (complex dtypes).
    pub fn sorts_key_index_pairs(&self) -> bool {
        self.options.indices || self.dtype.is_complex() || self.uses_radix_selection()
    }

    /// Returns the number of keys per element: two for complex128, whose keys are sorted one after the other, else one.
    pub fn keys_per_element(&self) -> usize {
        if self.dtype == DType::C128 { 2 } else { 1 }
    }

    /// Returns the size of a key in bytes, which is also its number of 8-bit digits.
    pub fn key_size(&self) -> usize {
        self.dtype.itemsize() / self.keys_per_element()
    }

    /// Returns the size in bytes of an element index, which the sort moves together with the element's key.
    pub fn index_size(&self) -> usize {
        if self.plan.columns < MIN_COLUMNS_FOR_64_BIT_INDICES { 4 } else { 8 }
    }

    /// Returns the number of tiles per row.
    pub fn tiles_per_row(&self) -> usize {
        match self.method {
            SortMethod::BlockPerRow => 1,
            SortMethod::RadixPasses | SortMethod::TopK | SortMethod::Partition => self.plan.columns.div_ceil(self.threads * self.items),
        }
    }

    /// Returns how many elements of each row a radix selection selects: the first ones in sort order.
    pub fn selected_per_row(&self) -> usize {
        match (self.method, self.options.nth) {
            (SortMethod::Partition, Some(nth)) => nth + 1,
            _ => self.plan.kept,
        }
    }

    /// Returns the bits that each pass of a radix selection counts, most significant first: those of keys, then those of indices.
    ///
    /// Passes over the bits of indices order elements of equal keys. `numpy.partition` does not need these passes.
    pub fn selection_digit_ranges(&self) -> impl Iterator<Item = DigitBitRange> {
        let index_bits = usize::BITS - self.plan.columns.saturating_sub(1).leading_zeros();
        let split = |of_indices: bool, bits: u32| {
            std::iter::successors(Some(bits), |end| Some(end.saturating_sub(RADIX_SELECT_BINS.ilog2())))
                .take_while(|end| *end > 0)
                .map(move |end_bit| DigitBitRange { of_indices, begin_bit: end_bit.saturating_sub(RADIX_SELECT_BINS.ilog2()), end_bit })
        };
        let of_indices = split(true, index_bits).filter(|_| self.method != SortMethod::Partition);
        split(false, 8 * self.key_size() as u32).chain(of_indices)
    }

    /// Returns the number of passes after which the tags of the look-back states repeat (see `sort_passes.cu`), so that the states must be
    /// zeroed.
    pub fn passes_until_tags_repeat(&self) -> usize {
        if self.index_size() == 4 { 7 } else { 127 }
    }
}

impl KernelRequest for SortRequest {
    /// Returns false for radix selection, whose source includes no CUB header and compiles fast. Partitions have a second reason: the
    /// accelerator `cuda` orders the elements differently, so results would depend on background compilation.
    fn takes_long_to_compile(&self) -> bool {
        !self.uses_radix_selection()
    }

    fn kernel_key(&self) -> KernelKey<'_> {
        KernelKey::without_program("cub sort")
            .with_dtype(self.dtype)
            .with_number(u64::from(self.sorts_key_index_pairs()) << 1 | u64::from(self.options.descending))
            .with_number(self.index_size() as u64)
            .with_number(self.method as u64)
            .with_number((self.threads * self.items) as u64)
    }

    fn cuda_source(&self) -> Result<GeneratedSource, &'static str> {
        let mut d = SourceDefinitions::default();
        d.define_type("Element", ctype(self.dtype));
        d.define_type("Key", ["u8", "u16", "u32", "u64"][self.key_size().ilog2() as usize % 4]);
        d.define_type("RowIndex", if self.index_size() == 4 { "u32" } else { "u64" });
        d.define_int("WORDS", self.keys_per_element());
        d.define_int("PAIRS", self.sorts_key_index_pairs().into());
        d.define_int("DESCENDING", self.options.descending.into());
        Ok(match self.method {
            SortMethod::BlockPerRow => {
                d.define_int("THREADS", self.threads);
                d.define_int("ITEMS", self.items);
                SORT_ROWS_TEMPLATE.source_without_program(&d, &["sort_rows"])
            }
            SortMethod::RadixPasses => {
                d.define_int("THREADS", self.threads);
                d.define_int("ITEMS", self.items);
                d.define_int("MIN_BLOCKS", self.min_blocks);
                SORT_PASSES_TEMPLATE.source_without_program(&d, &["sort_count_digits", "sort_digit_offsets", "sort_pass"])
            }
            SortMethod::TopK => {
                d.define_int("EXACT", 0);
                SORT_TOP_TEMPLATE.source_without_program(&d, &["select_digit", "gather_top_elements", "rank_top_elements"])
            }
            SortMethod::Partition => {
                d.define_int("EXACT", 1);
                SORT_PARTITION_TEMPLATE.source_without_program(&d, &["select_digit", "count_partition_elements", "write_partitions"])
            }
        })
    }
}

/// Returns the names and code of representative kernel sources, for compile checks without a device.
pub fn sources_for_compile_check() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        let indices = n % 2 == 0;
        let options = SortOptions { descending: n % 3 == 0, values: !indices, indices, nth: None };
        for (rows, columns) in [(1, 1 << 20), (100, [100, 500, 1000, 2000, 4000, 8000][n % 6])] {
            let request = SortRequest::from_plan(options, dtype, SortPlan { rows, columns, kept: columns });
            list.push((format!("cub_sort {dtype}, {rows} x {columns}, {options:?}"), request));
        }
    }
    let both = SortOptions { descending: true, values: true, indices: true, nth: None };
    // The sources cover every combination of key size and index size, and keys without indices.
    let sizes = [DType::U8, DType::I16, DType::F32, DType::F64];
    for (dtype, columns) in sizes.into_iter().flat_map(|d| [(d, 1 << 20), (d, MIN_COLUMNS_FOR_64_BIT_INDICES)]) {
        for options in [SortOptions { descending: false, values: true, indices: false, nth: None }, both] {
            let request = SortRequest::from_plan(options, dtype, SortPlan { rows: 1, columns, kept: columns });
            list.push((format!("cub_sort {dtype}, {}-byte indices, {options:?}", request.index_size()), request));
        }
    }
    for (dtype, columns) in [
        (DType::I8, 1 << 20),
        (DType::F16, MIN_COLUMNS_FOR_64_BIT_INDICES),
        (DType::F32, 1 << 20),
        (DType::C64, MIN_COLUMNS_FOR_64_BIT_INDICES),
    ] {
        let request = SortRequest::from_plan(both, dtype, SortPlan { rows: 1, columns, kept: 10 });
        list.push((format!("cub_sort_top.cu {dtype}, {columns}"), request));
    }
    for (n, dtype) in [DType::Bool, DType::BF16, DType::F32, DType::I64].into_iter().enumerate() {
        let options = SortOptions { descending: n % 2 == 1, nth: Some(7), ..both };
        let request = SortRequest::from_plan(options, dtype, SortPlan { rows: 1, columns: 1 << 20, kept: 1 << 20 });
        list.push((format!("cub_sort_partition.cu {dtype}"), request));
    }
    list.into_iter().filter_map(|(name, request)| Some((name, request.cuda_source().ok()?.code))).collect()
}

#[cfg(test)]
mod tests {
    use cuprum_core::ops::sort::{SORT, TOPK};

    use super::*;
    use crate::testing::{array, contiguous, output, reason, with_call};

    const VALUES: SortOptions = SortOptions { descending: false, values: true, indices: false, nth: None };
    const BOTH: SortOptions = SortOptions { descending: true, values: true, indices: true, nth: None };

    fn with_request<R>(
        dtype: DType,
        shape: &[usize],
        options: SortOptions,
        limit: usize,
        check: impl FnOnce(SortRequest) -> R,
    ) -> Result<R, String> {
        let mut kept = shape.to_vec();
        *kept.last_mut().unwrap() = limit;
        let outputs = [(options.values, dtype), (options.indices, DType::I64)];
        let outputs: Vec<_> = outputs.into_iter().filter(|(returned, _)| *returned).map(|(_, d)| output(d, &kept)).collect();
        let inputs = [array(dtype, contiguous(shape))];
        let op = if options.indices { TOPK } else { SORT };
        with_call(op, &inputs, &outputs, Work::Sort(options), |call| reason(|| sort_request_for_call(call)).map(check))
    }

    #[test]
    fn row_length_selects_the_method() {
        let method = |dtype, shape: &[usize]| {
            with_request(dtype, shape, VALUES, *shape.last().unwrap(), |s| (s.method, s.threads * s.items, s.tiles_per_row())).unwrap()
        };
        assert_eq!(method(DType::F32, &[1000, 3]), (SortMethod::BlockPerRow, 128, 1));
        assert_eq!(method(DType::F32, &[1000, 513]), (SortMethod::BlockPerRow, 1024, 1));
        assert_eq!(method(DType::F32, &[4096]), (SortMethod::BlockPerRow, 4096, 1));
        assert_eq!(method(DType::F32, &[4097]), (SortMethod::RadixPasses, 384 * 19, 1));
        assert_eq!(method(DType::F32, &[16, 8192]), (SortMethod::BlockPerRow, 8192, 1));
        assert_eq!(method(DType::F64, &[16, 8192]), (SortMethod::RadixPasses, 384 * 12, 2), "64 KiB of keys");
        assert_eq!(method(DType::U8, &[1 << 20]), (SortMethod::RadixPasses, 384 * 19, 144));
        assert_eq!(method(DType::C128, &[16, 4096]), (SortMethod::BlockPerRow, 4096, 1), "sorted word by word");
        assert_eq!(method(DType::C128, &[1 << 20]), (SortMethod::RadixPasses, 384 * 15, 183));
    }

    #[test]
    fn few_elements_of_long_rows_are_selected() {
        let method = |shape: &[usize], limit| with_request(DType::F32, shape, BOTH, limit, |s| s.method).unwrap();
        assert_eq!(method(&[1 << 20], 1024), SortMethod::TopK);
        assert_eq!(method(&[1 << 20], 1025), SortMethod::RadixPasses);
        assert_eq!(method(&[5000], 626), SortMethod::RadixPasses);
        assert_eq!(method(&[4096], 1), SortMethod::BlockPerRow);
        assert_eq!(method(&[1025, 1 << 14], 1), SortMethod::RadixPasses);
        assert_eq!(with_request(DType::C128, &[1 << 20], BOTH, 1, |s| s.method).unwrap(), SortMethod::RadixPasses, "elements of two words");
        let digits = |dtype, n| {
            with_request(dtype, &[n], BOTH, 1, |s| {
                s.selection_digit_ranges().map(|d| (d.of_indices, d.begin_bit, d.end_bit)).collect::<Vec<_>>()
            })
            .unwrap()
        };
        assert_eq!(digits(DType::U8, 1 << 20), [(false, 0, 8), (true, 9, 20), (true, 0, 9)]);
        assert_eq!(digits(DType::F32, 5000), [(false, 21, 32), (false, 10, 21), (false, 0, 10), (true, 2, 13), (true, 0, 2)]);
    }

    #[test]
    fn partitions_of_long_rows_use_radix_selection() {
        let nth_options = |nth| SortOptions { nth: Some(nth), ..VALUES };
        let method = |dtype, shape: &[usize], nth| {
            let whole = *shape.last().unwrap();
            with_request(dtype, shape, nth_options(nth), whole, |s| {
                (s.method, s.selected_per_row(), s.selection_digit_ranges().filter(|d| d.of_indices).count())
            })
            .unwrap()
        };
        assert_eq!(method(DType::F32, &[1 << 20], 5), (SortMethod::Partition, 6, 0));
        assert_eq!(method(DType::F32, &[1000], 5).0, SortMethod::BlockPerRow);
        assert_eq!(method(DType::F32, &[1 << 20], 1 << 20).0, SortMethod::RadixPasses, "no such element");
        assert_eq!(method(DType::C128, &[1 << 20], 5).0, SortMethod::RadixPasses);
        assert!(!with_request(DType::F32, &[1 << 20], nth_options(5), 1 << 20, |s| s.takes_long_to_compile()).unwrap());
        let key = |options| with_request(DType::F32, &[1 << 20], options, 1 << 20, |s| s.kernel_key().serialize()).unwrap();
        assert_eq!(key(nth_options(5)), key(nth_options(6)));
        assert_ne!(key(nth_options(5)), key(VALUES));
    }

    #[test]
    fn long_rows_have_64_bit_indices() {
        let sizes = |n| with_request(DType::F32, &[n], BOTH, n, |s| (s.index_size(), s.passes_until_tags_repeat())).unwrap();
        assert_eq!((sizes((1 << 28) - 1), sizes(1 << 28)), ((4, 7), (8, 127)));
        assert!(
            with_request(DType::C64, &[10], VALUES, 10, |s| s.sorts_key_index_pairs()).unwrap(),
            "complex values cannot be decoded from keys"
        );
        assert!(!with_request(DType::F16, &[10], VALUES, 10, |s| s.sorts_key_index_pairs()).unwrap());
    }

    #[test]
    fn tiles_fit_shared_memory() {
        for key_size in [1, 2, 4, 8] {
            for (pairs, index_size) in [(false, 4), (false, 8), (true, 4), (true, 8)] {
                let (threads, items, _) = radix_pass_tuning(key_size, pairs.then_some(index_size));
                let bytes = threads * items * if pairs { key_size.max(index_size) } else { key_size };
                let ranks = threads / 32 * DIGIT_VALUE_COUNT * 4 + 4096;
                assert!(bytes.max(ranks) + DIGIT_VALUE_COUNT * index_size + 16 <= 48 << 10, "{key_size} {pairs} {index_size}");
                assert!(threads >= DIGIT_VALUE_COUNT);
            }
        }
    }

    #[test]
    fn keys_depend_on_structure_not_size() {
        let key =
            |dtype, shape: &[usize], options, limit| with_request(dtype, shape, options, limit, |s| s.kernel_key().serialize()).unwrap();
        let base = key(DType::F32, &[1 << 20], VALUES, 2000);
        assert_eq!(base, key(DType::F32, &[3, 1 << 23], VALUES, 1 << 23));
        assert_ne!(base, key(DType::I32, &[1 << 20], VALUES, 2000));
        assert_ne!(base, key(DType::F32, &[1 << 20], BOTH, 2000));
        assert_ne!(base, key(DType::F32, &[1 << 20], VALUES, 10));
        assert_ne!(base, key(DType::F32, &[100], VALUES, 1));
        assert_ne!(base, key(DType::F32, &[1 << 28], VALUES, 2000));
    }

    #[test]
    fn decline_reasons() {
        let why = |dtype, shape: &[usize]| with_request(dtype, shape, VALUES, 2000, |_| ()).unwrap_err();
        assert_eq!(why(DType::F32, &[1 << 18, 1 << 27]), "262144 rows of 134217728 elements are more than 2^31 tiles");
    }
}
