//! Graphs as sparse arrays: an element in row i and column j is an edge from node i to node j.

use cuprum_core::function::FromArgs;
use cuprum_core::{Args, DType, Error, NdArray, Result, Value, isfinite, isnan, minimum, numpy, segment_min, where_};

use crate::compressed::CompressedMatrix;
use crate::eval_arguments::call_with_named_errors;
use crate::eval_value::sparse_from_value;
use crate::format_conversion::to_compressed_rows;
use crate::index_and_value_arrays::{arange_on_device, evaluate_contiguous, full_on_device};
use crate::{CooArray, Sparse, SparseArray};

/// Returns the graph's array in CSR format, or an error if it is not square.
fn compress_square_graph(op: &'static str, a: &SparseArray) -> Result<CompressedMatrix> {
    let [rows, columns] = a.extents();
    if rows != columns {
        return Err(Error::shape(op, "a graph is a square array", &[&[rows, columns]]));
    }
    to_compressed_rows(a)?.to_canonical()
}

/// Returns the number of connected components of an undirected graph, and the int64 component of each node
/// (`scipy.sparse.csgraph.connected_components(graph, directed=False)`).
///
/// Every stored element is an edge in both directions. Components are numbered in the order of their smallest nodes. The label of each node
/// begins as its number. A round gives each node the smallest label of itself and its neighbours, then replaces each label by the current
/// label of the node with that number. About log(n) rounds are needed.
///
/// # Errors
/// An array that is not square.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CooArray, connected_components};
/// let graph = CooArray::new(&array![1, 1], &array![0, 4], &array![2, 3], [5, 5])?;
/// let (count, labels) = connected_components(&graph)?;
/// assert_eq!((count, labels), (3, array![0i64, 1, 0, 2, 2]));
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.csgraph.connected_components(csgraph, directed=True, connection='weak', return_labels=True)", call = |args: &Args| call_with_named_errors(args, connected_components_from_args))]
pub fn connected_components(graph: &impl Sparse) -> Result<(usize, NdArray)> {
    let forward = compress_square_graph("connected_components", &graph.to_sparse())?;
    let backward = forward.compressed_along_other_axis()?;
    let n = forward.major;
    let nodes = arange_on_device(forward.device(), n)?;
    if n == 0 {
        return Ok((0, nodes));
    }
    let mut labels = evaluate_contiguous(&nodes)?;
    loop {
        // Returns the smallest label of each node and its neighbours. `segment_min` returns the largest integer for a node without
        // neighbours.
        let smallest = |m: &CompressedMatrix, labels: &NdArray| minimum(labels, segment_min(&labels.take(&m.indices, 0)?, &m.indptr)?);
        let mut next = evaluate_contiguous(&smallest(&backward, &smallest(&forward, &labels)?)?)?;
        // Nodes with equal labels are in the same component. They are merged: node `labels[i]` gets the smallest label that any of them has
        // received.
        next = cuprum_core::scatter(&next, &labels, &next, 0, cuprum_core::ScatterMode::Min)?;
        for _ in 0..2 {
            next = evaluate_contiguous(&next.take(&next, 0)?)?;
        }
        let is_done = next.equal(&labels)?.all(())?.item()?.as_bool();
        labels = next;
        if is_done {
            break;
        }
    }
    let (values, numbers) = cuprum_core::unique_inverse(&labels)?;
    Ok((values.size(), numbers))
}

/// Returns the length of the shortest path from node `source` to each node, float64, and infinity for nodes without a path
/// (`scipy.sparse.csgraph.shortest_path(graph, indices=source, method='BF')`).
///
/// Elements are the lengths of directed edges, which may be negative. Stored zeros are edges of length zero. Edges of length NaN are
/// ignored. The method is that of Bellman and Ford: each round relaxes all edges, until nothing changes.
///
/// Source: Bellman, "On a routing problem", Quarterly of Applied Mathematics 16, 1958.
///
/// # Errors
/// A cycle of negative length, an array that is not square, a complex array, or a node out of bounds.
///
/// # Examples
/// ```
/// # mod cuprum { pub use cuprum_core::*; pub mod sparse { pub use cuprum_sparse::*; } use cuprum_backend_cpu as _; }
/// use cuprum::array;
/// use cuprum::sparse::{CsrArray, shortest_path};
/// let graph = CsrArray::from_dense(&array![[0.0, 7.0, 1.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])?;
/// assert_eq!(shortest_path(&graph, 0)?, array![0.0, 3.0, 1.0]);
/// # Ok::<(), cuprum::Error>(())
/// ```
#[numpy("sparse.csgraph.shortest_path(csgraph, *, indices)", call = |args: &Args| call_with_named_errors(args, shortest_path_from_args))]
pub fn shortest_path(graph: &impl Sparse, source: usize) -> Result<NdArray> {
    const OP: &str = "shortest_path";
    if graph.dtype().is_complex() {
        return Err(Error::dtype(OP, "lengths must be real", &[graph.dtype()]));
    }
    let incoming = compress_square_graph(OP, &graph.to_sparse())?.compressed_along_other_axis()?;
    let n = incoming.major;
    if source >= n {
        return Err(Error::Index { op: OP, index: source as i64, axis: 0, size: n });
    }
    let lengths = evaluate_contiguous(&incoming.data.astype(DType::F64)?)?;
    let is_source = arange_on_device(incoming.device(), n)?.equal(source as i64)?;
    let mut distance = evaluate_contiguous(&where_(is_source, 0.0, full_on_device(incoming.device(), &[n], f64::INFINITY, DType::F64)?)?)?;
    for _ in 0..=n {
        let sums = distance.take(&incoming.indices, 0)?.add(&lengths)?;
        // An edge of length -inf from a node at distance infinity gives a sum of NaN. The node is not reached, so the edge does not count.
        let sums = where_(isnan(&sums)?, f64::INFINITY, sums)?;
        let next = evaluate_contiguous(&minimum(&distance, segment_min(&sums, &incoming.indptr)?)?)?;
        if !next.less(&distance)?.any(())?.item()?.as_bool() {
            return Ok(next);
        }
        distance = next;
    }
    Err(Error::value(OP, "the graph has a cycle of negative length"))
}

/// Returns the argument `csgraph`. As in SciPy, infinite and NaN elements of a dense array are no edges.
fn read_graph_argument(args: &Args) -> Result<SparseArray> {
    match args.get("csgraph") {
        Some(value) if sparse_from_value(value).is_none() => {
            let a = value.array(args.op())?;
            let edges = if a.dtype().is_inexact() { where_(isfinite(&a)?, &a, 0)? } else { a };
            Ok(CooArray::from_dense(&edges)?.into())
        }
        _ => SparseArray::from_args(args, "csgraph"),
    }
}

fn connected_components_from_args(args: &Args) -> Result<Value> {
    if args.bool_or("directed", true)? && args.value("connection").is_some_and(|c| !matches!(c, Value::Str(c) if c == "weak")) {
        return Err(Error::value(args.op(), "strongly connected components are not supported"));
    }
    let (count, labels) = connected_components(&read_graph_argument(args)?)?;
    let labels = labels.astype(DType::I32)?;
    Ok(if args.bool_or("return_labels", true)? { Value::tuple([count.into(), labels.into()]) } else { count.into() })
}

fn shortest_path_from_args(args: &Args) -> Result<Value> {
    let graph = read_graph_argument(args)?;
    let index = isize::from_args(args, "indices")?;
    let size = graph.extents()[0];
    let source = usize::try_from(index).ok().or_else(|| size.checked_sub(index.unsigned_abs()));
    let source = source.ok_or(Error::Index { op: args.op(), index: index as i64, axis: 0, size })?;
    Ok(shortest_path(&graph, source)?.into())
}
