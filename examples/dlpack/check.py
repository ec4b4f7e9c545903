#!/usr/bin/env python3
"""Exchanges arrays between cuprum and NumPy, PyTorch and CuPy by DLPack, both ways, and checks values, addresses and lifetimes.

    cargo build --release -p cuprum-example-dlpack
    python3 examples/dlpack/check.py [LIBRARY]

LIBRARY is the shared library of the example. Libraries and devices that are missing are skipped with a line. The exit status is 1 if a
check fails, and 2 if a library named in CUPRUM_DLPACK_REQUIRE (such as `numpy,torch,cuda`) is missing.
"""
import ctypes
import gc
import os
import pathlib
import sys
import traceback
import weakref

VERSIONED, LEGACY = b"dltensor_versioned", b"dltensor"
CPU, CUDA = 1, 2


def find_library():
    if len(sys.argv) > 1:
        return sys.argv[1]
    root = pathlib.Path(__file__).resolve().parents[2] / "target"
    for folder in ("release", "debug", "debug/deps"):
        path = root / folder / "libcuprum_example_dlpack.so"
        if path.exists():
            return str(path)
    sys.exit("build the library first: cargo build --release -p cuprum-example-dlpack")


lib = ctypes.CDLL(find_library())
for name, result, *arguments in [
    ("error", ctypes.c_char_p),
    ("eval", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p),
    ("free", None, ctypes.c_void_p),
    ("import", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool, ctypes.c_int64),
    ("export", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool, ctypes.c_int64),
    ("delete", None, ctypes.c_void_p, ctypes.c_bool),
    ("device", ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32)),
    ("stream", ctypes.c_int64, ctypes.c_char_p),
    ("synchronize", ctypes.c_int32, ctypes.c_char_p),
]:
    function = getattr(lib, f"cuprum_{name}")
    function.restype, function.argtypes = result, arguments


def checked(value, failed=None):
    if value == failed:
        raise RuntimeError(lib.cuprum_error().decode())
    return value


def python_function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


new_capsule = python_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
capsule_pointer = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
capsule_has_name = python_function("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
rename_capsule = python_function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# The destructor receives a capsule without references, which must not become a Python object again.
dying_pointer = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
dying_has_name = python_function("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def delete_unused(capsule):
    """Calls the deleter of a tensor whose capsule no consumer has renamed."""
    for name in (VERSIONED, LEGACY):
        if dying_has_name(capsule, name):
            lib.cuprum_delete(dying_pointer(capsule, name), name == VERSIONED)


class Array:
    """An array of cuprum with Python's DLPack protocol."""

    def __init__(self, handle):
        self.handle = checked(handle)
        self.shares = True  # False after an export for a consumer of DLPack 0.x, which gets a copy
        self.finalizer = weakref.finalize(self, lib.cuprum_free, handle)

    @staticmethod
    def eval(expression, x=None, device="cpu"):
        return Array(lib.cuprum_eval(expression.encode(), x.handle if x else None, device.encode()))

    @staticmethod
    def from_dlpack(other, versioned=True):
        kind, number = other.__dlpack_device__()
        arguments = {"max_version": (1, 0)} if versioned else {}
        stream = checked(lib.cuprum_stream(f"cuda:{number}".encode()), -1) if int(kind) == CUDA else None
        if stream is not None:
            arguments["stream"] = stream  # the producer makes this stream wait for the data
        try:
            capsule = other.__dlpack__(**arguments)
        except TypeError:  # a producer of DLPack 0.x
            arguments.pop("max_version", None)
            capsule = other.__dlpack__(**arguments)
        name = VERSIONED if capsule_has_name(capsule, VERSIONED) else LEGACY
        pointer = capsule_pointer(capsule, name)
        rename_capsule(capsule, b"used_dltensor_versioned" if name == VERSIONED else b"used_dltensor")
        return Array(lib.cuprum_import(pointer, name == VERSIONED, -1))

    def __dlpack_device__(self):
        device = (ctypes.c_int32 * 2)()
        checked(lib.cuprum_device(self.handle, device), -1)
        return tuple(device)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = self.shares = max_version is not None and max_version[0] >= 1
        if dl_device is not None and tuple(map(int, dl_device)) != self.__dlpack_device__():
            raise BufferError("a copy to another device is not part of this example")
        if copy is False and not versioned:
            raise BufferError("the older structure cannot be read-only")
        # None is the legacy default stream.
        tensor = checked(lib.cuprum_export(self.handle, versioned, copy is True, 1 if stream is None else stream))
        return new_capsule(tensor, VERSIONED if versioned else LEGACY, delete_unused)


class Tensor(ctypes.Structure):
    """The start of `DLTensor`."""

    _fields_ = [("data", ctypes.c_void_p)]


def address(array):
    """Returns the address of element 0 of an array of cuprum."""
    tensor = checked(lib.cuprum_export(array.handle, True, False, -1))
    try:
        # DLManagedTensorVersioned: version, manager_ctx, deleter, flags, dl_tensor
        return Tensor.from_address(tensor + 32).data
    finally:
        lib.cuprum_delete(tensor, True)


checks, failures = 0, 0


def check(title, test):
    """Runs a test and prints a line."""
    global checks, failures
    checks += 1
    try:
        test()
        print(f"ok       {title}", flush=True)
    except Exception:
        failures += 1
        print(f"FAILED   {title}\n{traceback.format_exc()}", flush=True)


def missing(name, reason):
    print(f"skipped  {name}: {reason}", flush=True)
    if name in os.environ.get("CUPRUM_DLPACK_REQUIRE", "").split(","):
        sys.exit(2)


def raises(error, function, *arguments):
    try:
        function(*arguments)
    except error as raised:
        return str(raised)
    raise AssertionError("no error was raised")


NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def check_numpy():
    import numpy as np

    def place(a):
        return a.__array_interface__["data"][0]

    def to_numpy():
        for name in NAMES:
            for view in ("", ".T", "[::-1, 1:]", "[:, ::-2]", "[0, 0]", "[:0]"):
                text = f"arange(24).reshape(4, 6).astype('{name}'){view}"
                ours, want = Array.eval(text), np.asarray(eval("np." + text))
                theirs = np.from_dlpack(ours)
                assert theirs.dtype == want.dtype and theirs.shape == want.shape, text
                assert np.array_equal(theirs, want), text
                assert theirs.size == 0 or place(theirs) == address(ours), f"{text}: a copy"
                assert theirs.size == 0 or not theirs.flags.writeable, f"{text}: writable"

    def writable():
        ours = Array.eval("arange(6.0)")
        copy = np.from_dlpack(ours, copy=True)
        assert copy.flags.writeable and place(copy) != address(ours)
        copy[0] = 99
        assert np.from_dlpack(ours)[0] == 0

    class Old:
        """An array whose producer knows the older structure only."""

        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    def legacy():
        ours = Array.eval("arange(6.0).reshape(2, 3)")
        theirs = np.from_dlpack(Old(ours))
        assert np.array_equal(theirs, np.arange(6.0).reshape(2, 3)) and place(theirs) != address(ours)
        back = Array.from_dlpack(np.arange(5, dtype=np.int16), versioned=False)
        assert np.array_equal(np.from_dlpack(back), np.arange(5))

    def from_numpy():
        for name in NAMES:
            whole = np.arange(24).reshape(4, 6).astype(name)
            fixed = whole.copy()
            fixed.setflags(write=False)
            for theirs in (whole, whole.T, whole[::-1, 1:], whole[:, ::-2], whole[2, 3, ...], whole[:0], fixed, np.broadcast_to(whole[0], (3, 6))):
                ours = Array.from_dlpack(theirs)
                assert theirs.size == 0 or address(ours) == place(theirs), f"{name}: a copy"
                assert np.array_equal(np.from_dlpack(ours), theirs), name
                assert np.array_equal(np.from_dlpack(Array.eval("x[..., None] == x[..., None]", ours))[..., 0], theirs == theirs), name

    def lifetimes():
        theirs = np.arange(1000.0)
        gone = weakref.ref(theirs)
        ours = Array.from_dlpack(theirs)
        view = Array.eval("x[::2]", ours)
        del theirs, ours
        gc.collect()
        assert gone() is not None, "the array was freed while a view used it"
        total = Array.eval("sum(x)", view)
        assert np.from_dlpack(total) == 249500.0
        del view
        gc.collect()
        assert gone() is None, "the deleter was not called"
        back = np.from_dlpack(Array.eval("arange(1000.0) * 2"))  # the only reference is NumPy's
        gc.collect()
        assert back.sum() == 999000.0
        for _ in range(100):
            Array.eval("arange(1000)").__dlpack__(max_version=(1, 0))  # deleted without a consumer

    def unchanged():
        theirs = np.arange(100000.0)
        ours = Array.from_dlpack(theirs)
        assert np.from_dlpack(Array.eval("x * 2 + 1", ours))[-1] == 199999.0
        assert theirs[-1] == 99999.0

    def errors():
        assert "aligned" in raises(RuntimeError, Array.from_dlpack, Shifted())
        assert "from_dlpack" in raises(RuntimeError, Array, lib.cuprum_import(None, True, -1))

    class Shifted:
        """A producer of misaligned elements."""

        def __dlpack_device__(self):
            return (CPU, 0)

        def __dlpack__(self, **arguments):
            self.array = np.arange(3.0)
            capsule = self.array.__dlpack__(**arguments)
            Tensor.from_address(capsule_pointer(capsule, VERSIONED) + 32).data += 1
            return capsule

    check(f"NumPy {np.__version__}: np.from_dlpack of every dtype and view: equal, same address, read-only", to_numpy)
    check("NumPy: copy=True is writable and separate", writable)
    check("NumPy: structures of DLPack 0.x, both ways", legacy)
    check("NumPy: imports of every dtype and view: equal, same address", from_numpy)
    check("NumPy: memory lives as long as its last user", lifetimes)
    check("NumPy: imported memory is not written", unchanged)
    check("errors name their reason", errors)


def check_torch():
    import torch

    cuda = torch.cuda.is_available()
    if not cuda:
        missing("cuda", "PyTorch finds no GPU")

    def both_ways(device):
        for name in [*(n for n in NAMES if not n.startswith("uint") or n == "uint8"), "bfloat16"]:
            ours = Array.eval(f"arange(24).reshape(4, 6).astype('{name}').T", device=device)
            theirs = torch.from_dlpack(ours)
            assert theirs.dtype == getattr(torch, name) and theirs.device.type == device.split(":")[0], name
            assert not ours.shares or theirs.data_ptr() == address(ours), f"{name}: a copy"
            assert torch.equal(theirs.cpu().to(torch.complex64), torch.arange(24).reshape(4, 6).T.to(getattr(torch, name)).to(torch.complex64)), name
            back = Array.from_dlpack(theirs)
            assert address(back) == theirs.data_ptr(), name
            again = torch.from_dlpack(Array.eval("x[1:]", back, device))
            assert torch.equal(again, theirs[1:]), name

    def hand_over():
        """A computation that cuprum begins, PyTorch continues, and cuprum ends, on one GPU and without copies."""
        logits = Array.eval("linspace(-4, 4, 512 * 256).reshape(512, 256).astype('float32')", device="cuda:0")
        soft = Array.eval("exp(x - max(x, -1, keepdims=True)) / sum(exp(x - max(x, -1, keepdims=True)), -1, keepdims=True)", logits, "cuda:0")
        torch.manual_seed(1)
        weights = torch.rand(256, 64, device="cuda")
        product = torch.from_dlpack(soft) @ weights
        norms = Array.eval("sqrt(sum(x * x, -1))", Array.from_dlpack(product), "cuda:0")
        want = (torch.softmax(torch.linspace(-4, 4, 512 * 256, dtype=torch.float64).reshape(512, 256), -1) @ weights.cpu().double()).norm(dim=-1)
        torch.testing.assert_close(torch.from_dlpack(norms).cpu().double(), want, rtol=1e-3, atol=1e-5)

    def streams():
        side = torch.cuda.Stream()
        for turn in range(20):
            with torch.cuda.stream(side):
                torch.cuda._sleep(2_000_000)
                late = torch.full((1 << 20,), 3.0, device="cuda")
                ours = Array.from_dlpack(late)  # the work on `side` has not run yet
            total = Array.eval("sum(x)", ours, "cuda:0")
            assert torch.from_dlpack(total).item() == 3.0 * (1 << 20)
            with torch.cuda.stream(side if turn % 2 else torch.cuda.default_stream()):
                made = torch.from_dlpack(Array.eval("full(1048576, 2.0)", device="cuda:0"))
                torch.cuda._sleep(2_000_000)
                sums = made.sum()
                del made  # before the sum has run
            noise = [Array.eval("full(1048576, 7.0)", device="cuda:0") for _ in range(4)]
            assert sums.item() == 2.0 * (1 << 20), "memory was reused too early"
            del noise

    def lifetimes():
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        theirs = torch.ones(1 << 22, device="cuda")
        ours = Array.from_dlpack(theirs)
        del theirs
        gc.collect()
        assert torch.cuda.memory_allocated() >= before + (4 << 22), "freed while in use"
        double = Array.eval("x * 2", ours, "cuda:0")
        del ours
        gc.collect()
        checked(lib.cuprum_synchronize(b"cuda:0"), -1)
        assert torch.cuda.memory_allocated() < before + (4 << 22), "the deleter was not called"
        assert torch.from_dlpack(double).sum().item() == 2.0 * (1 << 22)

    def write():
        class Copied:
            """An array whose exports are writable copies."""

            def __dlpack_device__(self):
                return ours.__dlpack_device__()

            def __dlpack__(self, **arguments):
                return ours.__dlpack__(**{**arguments, "copy": True})

        ours = Array.eval("zeros(1000)", device="cuda:0")
        theirs = torch.from_dlpack(Copied())
        theirs += 5
        assert torch.from_dlpack(ours).sum().item() == 0 and theirs.sum().item() == 5000

    check(f"PyTorch {torch.__version__} on the host: both ways, same address", lambda: both_ways("cpu"))
    if cuda:
        check("PyTorch on a GPU: both ways, same address", lambda: both_ways("cuda:0"))
        check("PyTorch on a GPU: softmax by cuprum, product by PyTorch, norms by cuprum", hand_over)
        check("PyTorch on a GPU: streams wait for each other, memory is not reused too early", streams)
        check("PyTorch on a GPU: memory lives as long as its last user", lifetimes)
        check("PyTorch on a GPU: a writable copy is separate", write)


def check_cupy():
    import cupy as cp

    if not cp.cuda.is_available():
        return missing("cuda", "CuPy finds no GPU")

    def both_ways():
        for name in NAMES:
            for view in ("", ".T", "[::-1, 1:]", "[:0]"):
                text = f"arange(24).reshape(4, 6).astype('{name}'){view}"
                ours, want = Array.eval(text, device="cuda:0"), eval("cp." + text)
                theirs = cp.from_dlpack(ours)
                assert theirs.dtype == want.dtype and cp.array_equal(theirs, want), text
                assert theirs.size == 0 or not ours.shares or theirs.data.ptr == address(ours), f"{text}: a copy"
                if want.itemsize > 1 and min(want.strides, default=0) < 0:
                    continue  # CuPy 14.2 divides a negative stride as an unsigned number, so that its tensor is invalid
                back = Array.from_dlpack(want)
                assert want.size == 0 or address(back) == want.data.ptr, f"{text}: a copy"
                assert cp.array_equal(cp.from_dlpack(Array.eval("x[..., ::-1]", back, "cuda:0")), want[..., ::-1]), text

    def streams():
        side = cp.cuda.Stream(non_blocking=True)
        big = cp.ones((3000, 3000), dtype=cp.float32)
        for _ in range(10):
            with side:
                late = ((big @ big) @ big)[:100] * 0 + 3
                ours = Array.from_dlpack(late)
            total = Array.eval("sum(x)", ours, "cuda:0")
            assert float(cp.from_dlpack(total)) == 3.0 * 100 * 3000

    check(f"CuPy {cp.__version__}: both ways, same address", both_ways)
    check("CuPy: cuprum waits for the producer's stream", streams)


for name, run in (("numpy", check_numpy), ("torch", check_torch), ("cupy", check_cupy)):
    try:
        __import__(name)
    except ImportError as absent:
        missing(name, absent)
        continue
    run()
print(f"{checks} checks, {failures} failed")
sys.exit(failures > 0)
