#!/usr/bin/env python3
"""Writes the expected results of crates/sparse/tests/arrays/scipy.rs with SciPy.

    python3 -m venv .venv && .venv/bin/pip install numpy==2.4.6 scipy==1.17.1
    .venv/bin/python scripts/sparse_goldens.py

The inputs and results of all cases are arrays of one archive, goldens.npz. Files that SciPy wrote are beside it.
"""

import pathlib

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.csgraph
import scipy.sparse.linalg as spla

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "crates/sparse/tests/goldens"
rng = np.random.default_rng(25)
arrays = {}


def put(name, value):
    arrays[name] = np.asarray(value, order="C")


def matrix(rows, columns, density, dtype):
    values = rng.standard_normal((rows, columns))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal((rows, columns))
    if np.dtype(dtype).kind in "iu":
        values = rng.integers(0, 9, (rows, columns))
    return np.where(rng.random((rows, columns)) < density, values, 0).astype(dtype)


for dtype in ["float32", "float64", "complex64", "complex128", "int32"]:
    a, b, c = matrix(23, 17, 0.2, dtype), matrix(23, 17, 0.15, dtype), matrix(17, 19, 0.2, dtype)
    x, y = matrix(17, 1, 1, dtype)[:, 0], matrix(17, 6, 1, dtype)
    A, B, C = sp.csr_array(a), sp.csr_array(b), sp.csr_array(c)
    for name, value in {"a": a, "b": b, "c": c, "x": x, "y": y}.items():
        put(f"{dtype}/{name}", value)
    results = {
        "matvec": A @ x,
        "matmat": A @ y,
        "left": y.T @ A.T,
        "product": (A @ C).toarray(),
        "add": (A + B).toarray(),
        "subtract": (A - B).toarray(),
        "multiply": (A * B).toarray(),
        "not_equal": (A != B).toarray(),
        "sum": A.sum(),
        "sum0": A.sum(axis=0),
        "sum1": A.sum(axis=1),
        "mean0": A.mean(axis=0),
        "diagonal": A.diagonal(2),
        "norm": spla.norm(A),
        "norm1": spla.norm(A, 1),
        "norm_inf": spla.norm(A, np.inf),
        "slice": A[3:20:2, ::-1].toarray(),
        "power": A.power(2).toarray(),
        "tril": sp.tril(A, -1).toarray(),
        "kron": sp.kron(A[:3, :4], B[:2, :3]).toarray(),
    }
    if np.dtype(dtype).kind != "c":
        results |= {"max0": A.max(axis=0).toarray(), "min1": A.min(axis=1).toarray(), "maximum": A.maximum(B).toarray()}
    for name, value in results.items():
        put(f"{dtype}/{name}", value)
    # The structure of conversions, element by element.
    R = sp.csr_array(A)
    put(f"{dtype}/csr.indptr", R.indptr)
    put(f"{dtype}/csr.indices", R.indices)
    put(f"{dtype}/csc.indptr", R.tocsc().indptr)
    put(f"{dtype}/csc.indices", R.tocsc().indices)
    put(f"{dtype}/dia.offsets", R.todia().offsets)
    put(f"{dtype}/dia.data", R.todia().data)

# Linear systems, with solutions by a direct method.
n = 60
poisson = sp.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
general = (poisson + sp.csr_array(matrix(n, n, 0.02, "float64")) * 0.1).tocsr()
right = rng.standard_normal(n)
put("system/poisson", poisson.toarray())
put("system/general", general.toarray())
put("system/right", right)
put("system/poisson_solution", np.linalg.solve(poisson.toarray(), right))
put("system/general_solution", np.linalg.solve(general.toarray(), right))
lower = sp.tril(general).tocsr()
put("system/lower_solution", np.linalg.solve(lower.toarray(), right))
tall = matrix(80, 12, 0.4, "float64")
put("system/tall", tall)
put("system/tall_right", rng.standard_normal(80))
put("system/tall_solution", np.linalg.lstsq(tall, arrays["system/tall_right"])[0])

# Eigenvalues and singular values.
symmetric = matrix(90, 90, 0.08, "float64")
symmetric = symmetric + symmetric.T
put("eigen/matrix", symmetric)
put("eigen/values", np.linalg.eigvalsh(symmetric))
hermitian = matrix(40, 40, 0.2, "complex128")
hermitian = hermitian + hermitian.conj().T
put("eigen/hermitian", hermitian)
put("eigen/hermitian_values", np.linalg.eigvalsh(hermitian))
put("eigen/rectangular", matrix(50, 30, 0.3, "float64"))
put("eigen/singular", np.linalg.svd(arrays["eigen/rectangular"], compute_uv=False))

# Graphs.
graph = sp.csr_array(np.where(rng.random((50, 50)) < 0.03, rng.random((50, 50)), 0))
put("graph/matrix", graph.toarray())
put("graph/labels", scipy.sparse.csgraph.connected_components(graph, directed=False)[1])
put("graph/paths", scipy.sparse.csgraph.shortest_path(graph, indices=0))

FOLDER.mkdir(exist_ok=True)
np.savez_compressed(FOLDER / "goldens.npz", **arrays)
small = sp.csr_array(matrix(9, 6, 0.3, "float64"))
for name in ["csr", "csc", "coo", "dia", "bsr"]:
    made = small.asformat(name) if name != "bsr" else small.tobsr(blocksize=(3, 2))
    sp.save_npz(FOLDER / f"{name}.npz", made)
sp.save_npz(FOLDER / "matrix.npz", sp.csr_matrix(small), compressed=False)
np.save(FOLDER / "small.npy", small.toarray())
scipy.io.mmwrite(FOLDER / "small.mtx", small)
scipy.io.mmwrite(FOLDER / "symmetric.mtx", sp.coo_array(poisson[:5, :5]))
scipy.io.mmwrite(FOLDER / "hermitian.mtx", sp.coo_array(hermitian[:6, :6]))
np.save(FOLDER / "hermitian.npy", hermitian[:6, :6])
