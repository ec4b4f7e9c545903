//! Construction: invalid components are refused with the reason, and index dtypes follow the components.

use cuprum_backend_cpu as _;
use cuprum_core::function::{Function, IntoValue};
use cuprum_core::ops::elementwise::{ATAN2, SQRT, SQUARE};
use cuprum_core::ops::python_value::{IndexPart, Object};
use cuprum_core::{Array, DType, Device, Error, NdArray, Result, Value, array, s, zeros};
use cuprum_sparse::{BsrArray, CooArray, CscArray, CsrArray, DiaArray, NormOrder, Sparse, SparseArray, SparseMath};

fn values(n: usize) -> NdArray {
    zeros(n, DType::F64).unwrap().add(1.0).unwrap()
}

#[track_caller]
fn assert_refused<T>(made: Result<T>, part: &str) {
    let Err(error) = made else { panic!("accepted; expected '{part}'") };
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn invalid_compressed_arrays() {
    let csr = |indices: NdArray, indptr: NdArray| CsrArray::new(&values(indices.size()), &indices, &indptr, [2, 3]);
    assert!(csr(array![0, 2], array![0, 1, 2]).is_ok());
    assert_refused(csr(array![0, 3], array![0, 1, 2]), "index 3 is out of bounds for axis 1 with size 3");
    assert_refused(csr(array![0, -1], array![0, 1, 2]), "index -1 is out of bounds");
    assert_refused(csr(array![0, 2], array![0, 2]), "indptr has 2 elements, not 2 + 1");
    assert_refused(csr(array![0, 2], array![1, 1, 2]), "indptr must begin with 0");
    assert_refused(csr(array![0, 2], array![0, 1, 1]), "indptr must end with the number of elements, 2, not 1");
    assert_refused(csr(array![0, 2], array![0, 3, 2]), "indptr must not decrease");
    assert_refused(csr(array![0, 2], array![0, -1, 2]), "indptr must not decrease");
    assert_refused(csr(array![0.0, 2.0], array![0, 1, 2]), "indices must be integers");
    assert_refused(csr(array![[0, 2]], array![0, 1, 2]), "1-D and of equal length");
    assert_refused(CsrArray::new(&values(3), &array![0, 2], &array![0, 1, 2], [2, 3]), "equal length");
    assert_refused(CscArray::new(&values(1), &array![2], &array![0, 0, 0, 1], [2, 3]), "index 2 is out of bounds for axis 1 with size 2");
    let half = zeros(1, DType::F16).unwrap();
    assert_refused(CsrArray::new(&half, &array![0], &array![0, 1], [1, 1]), "use astype('float32')");
    // Numbers that wrap to valid indices in a narrower dtype are refused.
    assert_refused(csr(array![0i64, 1 << 32], array![0i32, 1, 2]), "index 4294967296 is out of bounds");
    assert_refused(csr(array![0u64, u64::MAX], array![0i32, 1, 2]), "out of bounds");
}

#[test]
fn invalid_arrays_of_other_formats() {
    let coo = |row: NdArray, column: NdArray| CooArray::new(&values(row.size()), &row, &column, [2, 3]);
    assert_refused(coo(array![2], array![0]), "index 2 is out of bounds for axis 0 with size 2");
    assert_refused(coo(array![0], array![-1]), "index -1 is out of bounds for axis 1 with size 3");
    assert_refused(coo(array![0], array![0, 1]), "equal length");
    let blocks = zeros([1, 2, 2], DType::F32).unwrap();
    assert_refused(BsrArray::new(&blocks, &array![0], &array![0, 1], [3, 2]), "multiple of the shape of a block");
    assert_refused(BsrArray::new(&blocks, &array![2], &array![0, 1], [2, 4]), "index 2 is out of bounds");
    assert_refused(BsrArray::new(&blocks, &array![0, 1], &array![0, 2], [2, 4]), "one index per block");
    assert_refused(BsrArray::new(&zeros([0, 0, 2], DType::F32).unwrap(), &array![0i32; 0], &array![0], [0, 2]), "multiple");
    assert_refused(DiaArray::new(&array![[1.0], [2.0]], &array![1, 1], [2, 2]), "offset 1 is repeated");
    assert_refused(DiaArray::new(&array![1.0], &array![1], [2, 2]), "2-D");
    assert_refused(DiaArray::new(&array![[1.0]], &array![0.5], [2, 2]), "indices must be integers");
}

/// Calls a function by SciPy's path, as a script does.
fn call(path: &str, positional: Vec<Value>, keyword: &[(&str, Value)]) -> Result<Value> {
    let keyword = keyword.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Function::find(path).expect("a declared function").call(positional, keyword)
}

fn sparse_result(result: &Value) -> &SparseArray {
    let Value::Object(object) = result else { panic!("no sparse array: {result:?}") };
    (&**object as &dyn std::any::Any).downcast_ref().expect("a sparse array")
}

#[test]
fn indices_do_not_wrap() -> Result<()> {
    let (one, far) = (array![1.0], 1i64 << 32);
    let shape = [("shape", Value::tuple([2.into(), 2.into()]))];
    let diagonals = Value::tuple([array![[1.0, 2.0]].into(), Value::tuple([far.into()])]);
    let dia = call("sparse.dia_array", vec![diagonals], &shape)?;
    let a = sparse_result(&dia);
    assert_eq!((a.nnz(), a.to_dense()?), (0, zeros([2, 2], DType::F64)?));
    let position = Value::tuple([array![0].into(), array![i64::MIN].into()]);
    assert_refused(call("sparse.coo_array", vec![Value::tuple([one.into(), position])], &shape), "out of bounds");
    let near = call("sparse.eye_array", vec![2.into()], &[("k", 1.into())])?;
    let SparseArray::Dia(near) = sparse_result(&near) else { panic!("no DIA array") };
    assert_eq!(near.offsets(), &array![1]);
    Ok(())
}

#[test]
fn diagonals_outside_the_array() -> Result<()> {
    for (offset, is_valid) in [(3, true), (-2, true), (4, false), (-3, false), (1 << 32, false), (i64::MIN, false)] {
        let eye = cuprum_sparse::eye_array(2, 3, offset, DType::F64);
        let diagonal = cuprum_sparse::diags_array(&[array![1.0]], &[offset], Some([2, 3]), DType::F64);
        for made in [eye, diagonal] {
            if is_valid {
                assert_eq!(made?.to_dense()?, zeros([2, 3], DType::F64)?);
            } else {
                assert_refused(made, &format!("Offset {offset} (index 0) out of bounds"));
            }
        }
    }
    Ok(())
}

#[test]
fn reciprocal_norms_along_an_axis() -> Result<()> {
    let a = CsrArray::from_dense(&array![[1.0, 0.0, 1.0], [4.0, 0.0, -4.0]])?;
    assert_eq!(a.norm(NormOrder::MinusOne, Some(0))?, array![0.8, f64::INFINITY, 0.8]);
    assert_eq!(a.norm(NormOrder::MinusOne, Some(1))?, array![0.5, 2.0]);
    let integers = CsrArray::from_dense(&array![[1, 2]])?;
    assert_refused(integers.norm(NormOrder::MinusOne, Some(0)), "integers to negative integer powers");
    let frobenius = [("ord", Value::Str("fro".into())), ("axis", 0.into())];
    assert_refused(call("sparse.linalg.norm", vec![a.to_sparse().into_value()], &frobenius), "Invalid norm order for vectors");
    Ok(())
}

#[test]
fn norms_over_both_axes() -> Result<()> {
    let a = CsrArray::from_dense(&array![[1.0, -2.0], [3.0, 4.0]])?.to_sparse().into_value();
    let norm = |order: i64, axes: &[i64]| {
        let axes = Value::tuple(axes.iter().map(|&axis| axis.into()));
        call("sparse.linalg.norm", vec![a.clone()], &[("ord", order.into()), ("axis", axes)])?.array("norm")
    };
    for axes in [[0, 1], [-2, -1]] {
        assert_eq!(norm(1, &axes)?.item()?, 6.0);
    }
    for axes in [[1, 0], [-1, -2]] {
        assert_eq!(norm(1, &axes)?.item()?, 7.0);
    }
    assert_eq!(norm(1, &[0])?, array![4.0, 6.0]);
    assert_refused(norm(1, &[1, -1]), "given twice");
    assert_refused(norm(1, &[0, 2]), "axis 2 is out of bounds");
    Ok(())
}

#[test]
fn a_dense_graph_has_no_infinite_edges() -> Result<()> {
    let inf = f64::INFINITY;
    let graph = Value::from(array![[0.0, 1.0, inf], [0.0, 0.0, 2.0], [f64::NAN, -inf, 0.0]]);
    let paths = |source: i64| call("sparse.csgraph.shortest_path", vec![graph.clone()], &[("indices", source.into())])?.array("paths");
    assert_eq!(paths(0)?, array![0.0, 1.0, 3.0]);
    assert_eq!(paths(-1)?, array![inf, inf, 0.0]);
    assert_refused(paths(-4), "index -4 is out of bounds");
    let unconnected = Value::from(array![[0.0, inf], [f64::NAN, 0.0]]);
    let count = call("sparse.csgraph.connected_components", vec![unconnected], &[("return_labels", false.into())])?;
    assert_eq!(count.int("count")?, 2);
    Ok(())
}

#[test]
fn sums_and_differences_of_bool_arrays() -> Result<()> {
    let a = CsrArray::from_dense(&array![[true, true, false]])?;
    let b = CsrArray::from_dense(&array![[true, false, true]])?;
    assert_eq!(a.add(&b)?.to_dense()?, array![[true, true, true]]);
    let difference = a.subtract(&b)?;
    assert_eq!((difference.to_dense()?, difference.nnz()), (array![[false, true, true]], 2));
    Ok(())
}

#[test]
fn extents_that_are_too_large() -> Result<()> {
    let blocks = CsrArray::zeros([0, 1 << 40], DType::F64)?.to_bsr([1, 1])?;
    assert_eq!(blocks.shape(), [0, 1 << 40]);
    let empty = CsrArray::zeros([0, 0], DType::F64)?.to_sparse().into_value();
    let shape = Value::tuple([(1i64 << 62).into(), (1i64 << 62).into()]);
    assert_refused(call("sparse.bsr_array", vec![empty], &[("blocksize", shape)]), "too large");
    let components = |shape| CsrArray::new(&values(0), &array![0i32; 0], &array![0], shape);
    assert!(components([0, i64::MAX as usize]).is_ok());
    assert_refused(components([0, usize::MAX]), "too large");
    Ok(())
}

#[test]
fn dtypes_of_joins_and_of_0d_operands() -> Result<()> {
    let a: SparseArray = CsrArray::from_dense(&array![[1.5f32, 0.0]])?.into();
    for path in ["sparse.vstack", "sparse.hstack"] {
        let blocks = Value::tuple([a.clone().into_value(), a.clone().into_value()]);
        assert_eq!(sparse_result(&call(path, vec![blocks], &[("dtype", Value::DType(DType::I16))])?).to_csr()?.data(), &array![1i16, 1]);
    }
    for (function, want) in [("multiply", 3.75), ("divide", 0.6)] {
        let array = a.binary_operator(function, &NdArray::scalar(2.5)?.into(), false).expect("an operator")?;
        assert_eq!(sparse_result(&array).dtype(), DType::F64);
        assert_eq!(sparse_result(&array).to_csr()?.data(), &array![want]);
        let number = a.binary_operator(function, &2.5.into(), false).expect("an operator")?;
        assert_eq!(sparse_result(&number).dtype(), DType::F32);
    }
    // A quotient by zeros that are not stored is not sparse.
    for number in [Value::from(1.0), NdArray::scalar(1.0)?.into()] {
        assert_refused(a.binary_operator("divide", &number, true).expect("an operator"), "not sparse");
    }
    Ok(())
}

#[test]
fn powers_of_stored_elements() -> Result<()> {
    let a = CooArray::new(&array![2.0, 2.0, 0.0], &array![0, 0, 1], &array![0, 0, 1], [2, 2])?;
    assert_eq!(a.power(-1)?.to_dense()?, array![[0.25, 0.0], [0.0, f64::INFINITY]]);
    let integers = CsrArray::from_dense(&array![[2, 0]])?.to_sparse();
    assert_eq!(integers.power(-1.0)?.to_dense()?, array![[0.5, 0.0]]);
    assert_refused(integers.power(-1), "integers to negative integer powers");
    assert_refused(integers.binary_operator("power", &(-1).into(), false).expect("an operator"), "integers to negative integer powers");
    let wide = call("sparray.power", vec![integers.into_value(), (-1).into()], &[("dtype", Value::DType(DType::F64))])?;
    assert_eq!(sparse_result(&wide).to_dense()?, array![[0.5, 0.0]]);
    Ok(())
}

#[test]
fn repeated_bools_and_small_integers_are_combined() -> Result<()> {
    let bools = CooArray::new(&array![true, true, true], &array![0, 0, 1], &array![1, 1, 2], [3, 3])?;
    assert_eq!((bools.sum(())?, bools.sum(1)?), (array![2i64].reshape(())?, array![1i64, 1, 0]));
    let bytes = CooArray::new(&array![100i8, 100, 1], &array![0, 0, 1], &array![1, 1, 2], [3, 3])?;
    assert_eq!((bytes.sum(())?, bytes.to_csr()?.sum(())?), (array![-55i64].reshape(())?, array![-55i64].reshape(())?));
    Ok(())
}

#[test]
fn repeated_blocks_are_combined() -> Result<()> {
    let a = BsrArray::new(&array![[[1i64, 2]], [[3, 4]]], &array![0, 0], &array![0, 2], [1, 2])?;
    let squares = a.power(2)?;
    assert_eq!(squares.format(), cuprum_sparse::Format::Bsr);
    assert_eq!(squares.to_dense()?, array![[16i64, 36]]);
    assert_eq!(a.map(SQUARE)?.to_dense()?, array![[16i64, 36]]);
    let small = BsrArray::new(&array![[[100i8, 2]], [[100, 4]]], &array![0, 0], &array![0, 2], [1, 2])?;
    assert_eq!(small.sum(())?.item()?.as_f64(), -50.0);
    Ok(())
}

#[test]
fn results_are_float32_instead_of_float16() -> Result<()> {
    let a = CsrArray::from_dense(&array![[4i8, 0], [0, 9]])?;
    assert_eq!(a.map(SQRT)?.to_dense()?, array![[2.0f32, 0.0], [0.0, 3.0]]);
    let halves = array![[0.1, 0.1], [0.1, 0.1]].astype(DType::F16)?;
    let half = halves.astype(DType::F32)?.index(s![0, 0])?.item_as::<f32>()?;
    assert_eq!(a.multiply_dense(&halves)?.to_dense()?, array![[4.0 * half, 0.0], [0.0, 9.0 * half]]);
    assert_eq!(a.divide_dense(&halves)?.dtype(), DType::F32);
    assert_eq!(a.elementwise(ATAN2, &a)?.dtype(), DType::F32);
    Ok(())
}

#[test]
fn zeros_of_diagonals_are_not_stored() -> Result<()> {
    let a = CsrArray::from_dense(&array![[1.0, 0.0], [0.0, 0.0]])?.to_dia()?.to_csr()?;
    assert_eq!((a.nnz(), a.matmul(&array![1.0, f64::INFINITY])?), (1, array![1.0, 0.0]));
    Ok(())
}

#[test]
fn columns_beyond_int32() -> Result<()> {
    let blocks = BsrArray::new(&zeros((1, 1, 65536), DType::F64)?, &array![65535i32], &array![0i32, 1], [1, 1 << 33])?;
    assert_eq!(blocks.to_csr()?.indices().max(())?.item()?.as_int(), Some((1 << 32) - 1));
    let a = CsrArray::new(&values(1), &array![5i32], &array![0i32, 1], [1, 1 << 33])?;
    let part = a.index(s![.., 1isize << 32..(1 << 32) + 5])?;
    assert_eq!((part.shape(), part.nnz()), (&[1, 5][..], 0));
    assert_eq!(a.get(0, 1 << 32)?.as_f64(), 0.0);
    assert_eq!(a.index(s![.., 5..1isize << 32])?.nnz(), 1);
    Ok(())
}

#[test]
fn positions_beyond_int64() -> Result<()> {
    let rows = array![0i64, 16, 32];
    let a = CooArray::new(&array![1.0, 2.0, 3.0], &rows, &array![5i64, 5, 5], [1000, 1 << 60])?;
    let blocks = a.to_bsr([2, 4])?;
    assert_eq!(blocks.data().sum((1, 2))?, array![1.0, 2.0, 3.0]);
    let back = blocks.to_csr()?.eliminate_zeros()?.to_coo()?;
    assert_eq!((back.row(), back.column(), back.data()), (&rows, &array![5i64, 5, 5], a.data()));
    // No overflow in the number of elements. The permutation does not fit in memory.
    assert!(cuprum_sparse::random_array([1 << 31, 1 << 31], 1.0, DType::F32, &cuprum_core::random::default_rng(1)).is_err());
    Ok(())
}

#[test]
fn uint64_indices_do_not_wrap() -> Result<()> {
    let a = CsrArray::from_dense(&array![[1.0, 2.0], [3.0, 4.0]])?;
    let (far, near) = (array![u64::MAX], array![1u64]);
    assert_refused(a.index(cuprum_core::s![&far]), "out of bounds");
    assert_refused(a.index(cuprum_core::s![.., &far]), "out of bounds");
    assert_refused(a.values_at(&near, &far), "out of bounds");
    assert_eq!(a.index(cuprum_core::s![&near])?.to_dense()?, array![[3.0, 4.0]]);
    Ok(())
}

#[test]
fn index_arrays_broadcast() -> Result<()> {
    let dense = array![[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]];
    let (rows, columns) = (array![[0], [1]], array![0, -2]);
    for a in [SparseArray::from(CsrArray::from_dense(&dense)?), CscArray::from_dense(&dense)?.into()] {
        assert_eq!(a.values_at(&array![0, 1], &array![0])?, array![1.0, 0.0]);
        assert_eq!(a.values_at(&rows, &columns)?, array![[1.0, 0.0], [0.0, 3.0]]);
        assert_eq!(a.values_at(&array![true, true], &array![2])?, array![2.0, 0.0]);
        assert_eq!(a.values_at(&zeros((0, 1), DType::I64)?, &columns)?.shape(), [0, 2]);
        assert_refused(a.values_at(&array![0, 1], &array![0, 1, 2]), "broadcast");
        // In `eval`, two axes give a sparse array.
        let part = Object::index(&a, &[IndexPart::Array(rows.clone()), IndexPart::Array(columns.clone())]).unwrap()?;
        assert_eq!(sparse_result(&part).to_dense()?, array![[1.0, 0.0], [0.0, 3.0]]);
        assert_eq!(sparse_result(&part).format(), a.format());
    }
    Ok(())
}

#[test]
fn integer_diagonals_are_float64_by_default() -> Result<()> {
    let dtype = |diagonals: NdArray, keyword: &[(&str, Value)]| {
        Ok(sparse_result(&call("sparse.diags_array", vec![diagonals.into()], keyword)?).dtype())
    };
    assert_eq!(dtype(array![1, 2, 3], &[])?, DType::F64);
    assert_eq!(dtype(array![true, false], &[])?, DType::F64);
    assert_eq!(dtype(array![1f32, 2.0], &[])?, DType::F32);
    assert_eq!(dtype(array![1, 2, 3], &[("dtype", DType::I32.into_value())])?, DType::I32);
    Ok(())
}

#[test]
fn solvers_report_failure() -> Result<()> {
    let a = CsrArray::from_dense(&array![[2.0, 0.5], [0.5, 3.0]])?.into_value();
    for path in ["sparse.linalg.cg", "sparse.linalg.gmres", "sparse.linalg.bicgstab"] {
        for (b, converges) in [(array![1.0, 1.0], true), (array![f64::NAN, 1.0], false), (array![f64::INFINITY, 1.0], false)] {
            let Value::Tuple(results) = call(path, vec![a.clone(), b.into()], &[])? else { panic!("no tuple") };
            assert_eq!(results[1].to_isize(path)? == 0, converges, "{path}");
        }
    }
    Ok(())
}

#[test]
fn solvers_take_one_column() -> Result<()> {
    let a = CsrArray::from_dense(&array![[2.0, 0.5], [0.5, 3.0]])?.into_value();
    let column = array![[2.5], [3.5]];
    for path in ["sparse.linalg.cg", "sparse.linalg.gmres", "sparse.linalg.bicgstab", "sparse.linalg.lsqr"] {
        let Value::Tuple(results) = call(path, vec![a.clone(), column.clone().into()], &[])? else { panic!("no tuple") };
        assert_eq!(results[0].array(path)?.round(4)?, array![1.0, 1.0], "{path}");
        assert!(call(path, vec![a.clone(), column.t()?.into()], &[]).is_err(), "{path}");
        if !path.ends_with("lsqr") {
            let start = [("x0", array![[1.0], [1.0]].into())];
            let Value::Tuple(results) = call(path, vec![a.clone(), column.clone().into()], &start)? else { panic!("no tuple") };
            assert_eq!(results[0].array(path)?, array![1.0, 1.0], "{path}");
        }
    }
    for name in ["show", "calc_var"] {
        let made = call("sparse.linalg.lsqr", vec![a.clone(), array![1.0, 1.0].into()], &[(name, true.into())]);
        assert_refused(made, "=True is not supported");
    }
    Ok(())
}

#[test]
fn blocks_of_the_requested_shape() -> Result<()> {
    let blocksize = |r: usize, c: usize| ("blocksize", Value::tuple([r.into(), c.into()]));
    let dense = array![[1.0, 0.0, 2.0, 0.0], [0.0; 4], [0.0, 3.0, 0.0, 0.0], [0.0, 0.0, 0.0, 4.0]];
    let coo = CooArray::from_dense(&dense)?;
    let pair = Value::tuple([coo.row().clone().into(), coo.column().clone().into()]);
    let coordinates = Value::tuple([coo.data().clone().into(), pair]);
    for value in [dense.clone().into(), coo.clone().into_value(), coordinates] {
        let made = call("sparse.bsr_array", vec![value], &[blocksize(2, 2)])?;
        let SparseArray::Bsr(a) = sparse_result(&made) else { panic!("another format") };
        assert_eq!((a.data().shape(), a.to_dense()?), (&[4, 2, 2][..], dense.clone()));
    }
    let zeros = call("sparse.bsr_array", vec![Value::tuple([6.into(), 6.into()])], &[blocksize(3, 3)])?;
    let SparseArray::Bsr(zeros) = sparse_result(&zeros) else { panic!("another format") };
    assert_eq!((zeros.data().shape(), zeros.indptr().size()), (&[0, 3, 3][..], 3));
    assert_refused(call("sparse.bsr_array", vec![dense.into()], &[blocksize(3, 3)]), "multiple of the shape of a block");
    let components = Value::tuple([values(4).reshape((1, 2, 2))?.into(), array![0].into(), array![0, 1].into()]);
    assert!(call("sparse.bsr_array", vec![components.clone()], &[blocksize(2, 2)]).is_ok());
    assert_refused(call("sparse.bsr_array", vec![components], &[blocksize(1, 2)]), "blocksize differs");
    Ok(())
}

#[test]
fn axes_of_transposes() -> Result<()> {
    let (csr, coo) = (CsrArray::from_dense(&array![[1.0, 2.0]])?, CooArray::from_dense(&array![[1.0, 2.0]])?);
    let transposed = |a: Value, axes: &[isize]| {
        let axes = Value::tuple(axes.iter().map(|&axis| axis.into()));
        call("sparray.transpose", vec![a], &[("axes", axes)]).map(|made| sparse_result(&made).shape().to_vec())
    };
    assert_eq!(transposed(csr.clone().into_value(), &[1, 0])?, [2, 1]);
    assert_eq!(transposed(csr.clone().into_value(), &[-1, 0])?, [2, 1]);
    assert_eq!(transposed(coo.into_value(), &[0, 1])?, [1, 2]);
    for axes in [&[0, 1][..], &[1, 1], &[1], &[2, 0]] {
        assert_refused(transposed(csr.clone().into_value(), axes), "axes must be None or (1, 0)");
    }
    Ok(())
}

#[test]
fn index_dtypes() -> Result<()> {
    let narrow = CsrArray::new(&values(1), &array![0u8], &array![0u16, 1], [1, 1])?;
    assert_eq!((narrow.indices().dtype(), narrow.indptr().dtype()), (DType::I32, DType::I32));
    let kept = CsrArray::new(&values(1), &array![0i64], &array![0i64, 1], [1, 1])?;
    assert_eq!(kept.indices().dtype(), DType::I64);
    let huge = CooArray::new(&values(1), &array![0u8], &array![0u8], [1, 1 << 40])?;
    assert_eq!(huge.column().dtype(), DType::I64);
    Ok(())
}

#[test]
fn arrays_without_elements() -> Result<()> {
    for shape in [[0, 0], [0, 3], [3, 0], [2, 3]] {
        let a = CsrArray::zeros(shape, DType::F32)?;
        assert_eq!((a.nnz(), a.shape(), a.to_dense()?.shape()), (0, &shape[..], &shape[..]));
        assert_eq!(a.matmul(&zeros([shape[1], 4], DType::F32)?)?.shape(), [shape[0], 4]);
        assert_eq!(a.matmul_sparse(&a.transpose()?)?.shape(), [shape[0], shape[0]]);
        assert_eq!(a.to_csc()?.to_coo()?.to_dia()?.nnz(), 0);
    }
    Ok(())
}

#[test]
fn shapes_beyond_memory() -> Result<()> {
    // A kernel that overcommits memory grants 8 TiB and ends the process when the pages are written.
    Device::CPU.set_memory_limit(Some(8 << 30))?;
    let n = 1usize << 40;
    let a = CooArray::new(&array![1.0, 2.0, 4.0], &array![0i64, 5, 5], &array![0i64, 1 << 39, 1 << 39], [10, n])?;
    assert!(matches!(a.to_dense(), Err(Error::Shape { .. } | Error::OutOfMemory { .. })));
    assert_eq!(a.to_csr()?.data(), &array![1.0, 6.0]);
    assert_eq!(a.get(5, 1 << 39)?.as_f64(), 6.0);
    let square = CooArray::new(&array![1.0], &array![1i64 << 39], &array![1i64 << 39], [n, n])?;
    assert!(square.to_csr().is_err(), "indptr of 2^40 rows does not fit in memory");
    assert!(CsrArray::zeros([usize::MAX, 1], DType::F32).is_err());
    Ok(())
}
