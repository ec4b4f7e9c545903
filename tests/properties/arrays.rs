//! Random arrays in random memory layouts, and the comparison of results.

use cuprum::{DType, Item, NdArray, Scalar, multiply};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use crate::reference::{Reference, position};

/// The outcome of one case.
pub type Checked = Result<(), TestCaseError>;

/// All dtypes.
pub const ALL: &[DType] = &[
    DType::Bool,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

/// Real dtypes that represent the small sums and products of the properties exactly.
pub const WIDE: &[DType] = &[DType::I32, DType::I64, DType::F32, DType::F64];

/// Dtypes of real numbers that compare, which are all but 16-bit floats and complex numbers.
pub const REAL: &[DType] =
    &[DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64, DType::F32, DType::F64];

const CASES: u32 = 96;
const SEED: u64 = 20_261_123;

/// Checks a property for random values of a strategy. Failures are shrunk, and leave no file.
pub fn check<S: Strategy>(strategy: S, property: impl Fn(S::Value) -> Checked) {
    check_cases(CASES, strategy, property);
}

/// [`check`] for a property whose cases take longer.
pub fn check_cases<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value) -> Checked) {
    let mut config = Config { failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    if let Err(failure) = TestRunner::new(config).run(&strategy, property) {
        panic!("{failure}");
    }
}

/// Fails unless the array has this dtype and the reference's shape and elements.
pub fn expect(array: &NdArray, dtype: DType, expected: &Reference) -> Checked {
    prop_assert_eq!(array.dtype(), dtype);
    prop_assert_eq!(array.shape(), &expected.shape[..]);
    prop_assert_eq!(&array.astype(DType::I64)?.to_vec::<i64>()?, &expected.data);
    Ok(())
}

/// Positions of an array's elements in a larger buffer, and whether the array is deferred.
#[derive(Clone, Debug)]
pub struct MemoryLayout {
    /// The axes, outermost in memory first.
    order: Vec<usize>,
    /// For each axis, the step between neighbours in elements of the buffer's axis. It is not 0.
    steps: Vec<isize>,
    /// Elements of the buffer before and after the array, for each axis.
    margins: Vec<(usize, usize)>,
    deferred: bool,
}

/// A random array: its elements, dtype and memory layout.
#[derive(Clone, Debug)]
pub struct Sample {
    pub values: Reference,
    pub dtype: DType,
    /// Axes of stride 0. The elements are the same along them.
    repeated: Vec<bool>,
    layout: MemoryLayout,
}

impl Sample {
    /// Returns the array: a view of a larger buffer, or an operation on such a view.
    pub fn array(&self) -> cuprum::Result<NdArray> {
        let MemoryLayout { order, steps, margins, deferred } = &self.layout;
        let extents: Vec<usize> = (0..order.len()).map(|axis| if self.repeated[axis] { 1 } else { self.values.shape[axis] }).collect();
        // The first position of an axis in the buffer, and the number of positions from the first element to the last.
        let span = |axis: usize| extents[axis].saturating_sub(1) * steps[axis].unsigned_abs();
        let buffer_shape: Vec<usize> =
            order.iter().map(|&axis| margins[axis].0 + margins[axis].1 + if extents[axis] == 0 { 0 } else { span(axis) + 1 }).collect();
        let filler = fit(self.dtype, 7);
        let mut buffer = Reference::from_fn(&buffer_shape, |_| filler);
        for index in crate::reference::indices(&extents) {
            let along = |&axis: &usize| {
                let distance = index[axis] * steps[axis].unsigned_abs();
                margins[axis].0 + if steps[axis] > 0 { distance } else { span(axis) - distance }
            };
            let place = position(&buffer_shape, &order.iter().map(along).collect::<Vec<_>>());
            buffer.data[place] = self.values.at(&index);
        }
        let stored = NdArray::from_vec(buffer.data, buffer_shape)?.astype(self.dtype)?.eval()?.clone();
        let item = |&axis: &usize| {
            let (first, last) = (margins[axis].0 as isize, (margins[axis].0 + span(axis)) as isize);
            match steps[axis] {
                _ if extents[axis] == 0 => Item::slice(first, first, 1),
                step if step > 0 => Item::slice(first, last + 1, step),
                step => Item::slice(last, (first > 0).then_some(first - 1), step),
            }
        };
        let view = stored.index(&order.iter().map(item).collect::<Vec<Item>>())?;
        let inverse: Vec<isize> = (0..order.len()).map(|axis| order.iter().position(|&n| n == axis).unwrap_or(0) as isize).collect();
        let view = view.transpose(inverse)?.broadcast_to(&self.values.shape)?;
        let one = if self.dtype == DType::Bool { Scalar::Bool(true) } else { Scalar::Int(1) };
        if *deferred { multiply(&view, one) } else { Ok(view) }
    }
}

/// Returns a value that the dtype represents: bools are 0 or 1, and unsigned numbers are not negative.
pub fn fit(dtype: DType, value: i64) -> i64 {
    match dtype {
        DType::Bool => value.rem_euclid(2),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => value.abs(),
        _ => value,
    }
}

/// Extents of an axis: mostly small, at times none, or longer than a SIMD register.
fn extents() -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0), 4 => Just(1), 16 => 2..=5usize, 1 => 15..=70usize]
}

/// Shapes of `ndim` axes with at most a few thousand elements.
pub fn shapes(ndim: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(extents(), ndim).prop_map(|mut shape| {
        while shape.iter().product::<usize>() > 2000 {
            shape.iter_mut().for_each(|extent| *extent = (*extent).min(4));
        }
        shape
    })
}

/// Shapes of `ndim` axes without an axis of extent 0.
pub fn nonempty_shapes(ndim: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<usize>> {
    shapes(ndim).prop_map(|shape| shape.into_iter().map(|extent| extent.max(1)).collect())
}

fn memory_layouts(ndim: usize) -> impl Strategy<Value = MemoryLayout> {
    let order = Just((0..ndim).collect::<Vec<usize>>()).prop_shuffle();
    let steps = prop::collection::vec(select(&[1, 1, 1, 1, -1, 2, -2, 3][..]), ndim);
    let margins = prop::collection::vec((0..=2usize, 0..=2usize), ndim);
    let strided = (order, steps, margins, prop::bool::weighted(0.25));
    let strided = strided.prop_map(|(order, steps, margins, deferred)| MemoryLayout { order, steps, margins, deferred });
    let contiguous = MemoryLayout { order: (0..ndim).collect(), steps: vec![1; ndim], margins: vec![(0, 0); ndim], deferred: false };
    prop_oneof![1 => Just(contiguous), 4 => strided]
}

/// Arrays of one of `dtypes` with a given shape.
pub fn samples_of_shape(shape: Vec<usize>, dtypes: &'static [DType]) -> impl Strategy<Value = Sample> {
    let ndim = shape.len();
    let values = prop::collection::vec(-9..=9i64, shape.iter().product::<usize>());
    let repeated = prop::collection::vec(prop::bool::weighted(0.08), ndim);
    (values, select(dtypes), repeated, memory_layouts(ndim)).prop_map(move |(data, dtype, repeated, layout)| {
        let values = Reference { shape: shape.clone(), data };
        let repeated: Vec<bool> = repeated.iter().zip(&shape).map(|(&repeated, &extent)| repeated && extent > 0).collect();
        let first = |index: &[usize]| -> Vec<usize> { index.iter().zip(&repeated).map(|(&n, &r)| if r { 0 } else { n }).collect() };
        let values = Reference::from_fn(&shape, |index| fit(dtype, values.at(&first(index))));
        Sample { values, dtype, repeated, layout }
    })
}

/// Arrays of one of `dtypes` with `ndim` axes.
pub fn samples(ndim: std::ops::RangeInclusive<usize>, dtypes: &'static [DType]) -> impl Strategy<Value = Sample> {
    shapes(ndim).prop_flat_map(move |shape| samples_of_shape(shape, dtypes))
}

/// Arrays that have elements.
pub fn nonempty_samples(ndim: std::ops::RangeInclusive<usize>, dtypes: &'static [DType]) -> impl Strategy<Value = Sample> {
    nonempty_shapes(ndim).prop_flat_map(move |shape| samples_of_shape(shape, dtypes))
}

/// An axis of `ndim` axes, counted from the front or from the end.
pub fn axes(ndim: usize) -> impl Strategy<Value = isize> {
    -(ndim as isize)..ndim as isize
}

/// An array with at least one axis, and one of its axes.
pub fn samples_and_axis(ndim: std::ops::RangeInclusive<usize>, dtypes: &'static [DType]) -> impl Strategy<Value = (Sample, isize)> {
    samples(ndim, dtypes).prop_flat_map(|sample| {
        let ndim = sample.values.ndim();
        (Just(sample), axes(ndim))
    })
}
