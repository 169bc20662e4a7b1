"""numpy arrays as the data of simulated PEs. numpy is imported by the first call that has data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._library import Array, shown, text_option

if TYPE_CHECKING:
    import numpy

# Names of numpy's types (and of ml_dtypes, which adds the short floats to numpy), and the library's.
_NAMES = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float64": "f64",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
}
# Types that numpy has not: without ml_dtypes their bits travel in unsigned integers.
_BITS = {"bf16": "uint16", "fp8_e4m3": "uint8", "fp8_e5m2": "uint8"}


def numpy_module() -> Any:
    """numpy, or MissingPackage."""
    try:
        import numpy
    except ImportError as error:
        raise errors.MissingPackage("numpy is not installed, and arrays need it: pip install numpy") from error
    return numpy


def as_array(name: str, value: object) -> numpy.ndarray:
    """`value` as a contiguous array in the byte order of this computer."""
    np = numpy_module()
    try:
        array = np.asarray(value)
    except Exception as error:  # __array__ of the caller's own may raise anything
        raise errors.InvalidType(f"{name}: {shown(value)} given, allowed is an array of numbers ({error})") from error
    if array.dtype.kind in "OSUMmVb" and array.dtype.name not in _NAMES:
        raise errors.InvalidType(
            f"{name}: {array.dtype.name} elements given, allowed are {', '.join(_NAMES)}, and uint16 with dtype='bf16'"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array).reshape(array.shape)  # type: ignore[no-any-return]


def type_name(name: str, array: numpy.ndarray, dtype: object) -> str:
    """The library's name of an array's element type. `dtype` is the caller's argument, or None."""
    own = _NAMES.get(array.dtype.name)
    if dtype is not None:
        wanted = text_option("dtype", dtype)
        if wanted == own or _BITS.get(wanted) == array.dtype.name:
            return wanted
        raise errors.InvalidArgument(
            f"dtype: '{wanted}' given, allowed for {name} of {array.dtype.name} is {allowed_types(array)}"
        )
    if own is None:
        raise errors.InvalidType(
            f"{name}: {array.dtype.name} elements given, allowed are {', '.join(_NAMES)}, and uint16 with dtype='bf16'"
        )
    return own


def allowed_types(array: numpy.ndarray) -> str:
    own = _NAMES.get(array.dtype.name)
    names = ([own] if own else []) + [name for name, bits in _BITS.items() if bits == array.dtype.name]
    return " or ".join(names) or "none"


def result_dtype(wanted: str, like: numpy.dtype) -> numpy.dtype:
    """The numpy type of results of the library's type `wanted`, whose operands have the numpy type `like`."""
    np = numpy_module()
    if wanted == _NAMES.get(like.name) or _BITS.get(wanted) == like.name:
        return like
    numpy_name = next((name for name, own in _NAMES.items() if own == wanted), "")
    if wanted in _BITS:
        try:
            import ml_dtypes
        except ImportError:
            return np.dtype(_BITS[wanted])  # type: ignore[no-any-return]
        return np.dtype(getattr(ml_dtypes, numpy_name))  # type: ignore[no-any-return]
    if not numpy_name:
        raise errors.InvalidArgument(f"out_dtype: '{wanted}' given, allowed is one of {', '.join(_NAMES.values())}")
    return np.dtype(numpy_name)  # type: ignore[no-any-return]


def empty(shape: tuple[int, ...], dtype: numpy.dtype) -> numpy.ndarray:
    """An array for a result. Raises OutOfMemory."""
    try:
        return numpy_module().empty(shape, dtype)  # type: ignore[no-any-return]
    except MemoryError as error:
        raise errors.OutOfMemory(f"no memory for a result of {shape} elements") from error


def memory_of(array: numpy.ndarray | None) -> Array:
    """The memory of an array for a call; the array has to live until the call is over."""
    return Array(None, 0) if array is None else Array(array.ctypes.data, array.nbytes)
