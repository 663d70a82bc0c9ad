"""Python values as JSON and arrays, and back; nothing but listed kinds of values in either direction.

None, booleans, integers, finite floats, text and lists are JSON as they are. Everything else is an object
with one key that tells its kind: ``{"tensor": "model.coef_"}``, ``{"map": {...}}``, ``{"kernel": ...}``.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.models._records import Columns
from separatrix.persistence._container import ModelFileError, Tensors

_TENSOR_TYPES = frozenset(
    {"float64", "float32", "float16", "int64", "int32", "int16", "int8"}
    | {"uint64", "uint32", "uint16", "uint8", "bool"}
)
# NumPy pads every string of an array to the longest, so a short file could ask for a huge array, or for many:
# texts that take this much more than in the file lie in it padded, as numbers.
_STRING_ROOM = 1 << 20
_STRING_GROWTH = 64


class Store(dict[str, NDArray[Any]]):
    """The arrays of a file, each to be used once: what a file asks for stays in proportion to its size."""

    string_room = _STRING_ROOM  # bytes that all arrays of texts may still take for padding

    def take(self, key: str) -> NDArray[Any]:
        """Return an array, and forget it."""
        if key not in self:
            raise ModelFileError(f"it names the array {key!r} twice, or holds none of that name")
        return self.pop(key)

    def take_string_room(self, width: int, values: list[str]) -> None:
        """Refuse texts that are made of padding."""
        self.string_room -= max(0, _padding(width, values))
        if self.string_room < 0:
            raise ModelFileError(
                f"it asks for {len(values):,} texts of {width:,} characters each, too large for what they say"
            )


def _padding(width: int, values: list[str]) -> int:
    """Return the bytes of an array of texts beyond what is in proportion to these."""
    return 4 * max(width, 1) * max(len(values), 1) - _STRING_GROWTH * sum(map(len, values))


def encode(value: Any, key: str, tensors: Tensors) -> Any:
    """Describe `value` in JSON, and put its arrays into `tensors` under names that begin with `key`."""
    from scipy import sparse

    from separatrix.certificate import Certificate, Separation
    from separatrix.kernels import Kernel

    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, Columns):
        return {"table": _encode_dict(value.arrays, key, tensors)}
    if type(value) is list:
        if (columns := Columns.of(value)) is not None:
            return encode(columns, key, tensors)
        return [encode(item, f"{key}.{position}", tensors) for position, item in enumerate(value)]
    if type(value) is tuple:
        return {"tuple": encode(list(value), key, tensors)}
    if type(value) is dict:
        return _encode_dict(value, key, tensors)
    if isinstance(value, np.str_):
        return str(value)
    if isinstance(value, np.generic) and value.dtype.name in _TENSOR_TYPES:
        return {"scalar": [value.dtype.name, encode(value.item(), key, tensors)]}
    if isinstance(value, np.dtype) and value.name in _TENSOR_TYPES | {"object"}:
        return {"dtype": value.name}
    if isinstance(value, type) and issubclass(value, np.generic) and np.dtype(value).name in _TENSOR_TYPES:
        return {"type": np.dtype(value).name}
    if isinstance(value, np.ndarray):
        return _encode_array(np.asarray(value), key, tensors)
    if sparse.issparse(value) and value.format == "csr":
        parts = {part: encode(getattr(value, part), f"{key}.{part}", tensors) for part in _CSR_PARTS}
        return {"csr": {**parts, "shape": list(value.shape), "array": isinstance(value, sparse.sparray)}}
    if isinstance(value, Certificate):
        return {"certificate": encode(value.as_dict(), key, tensors)}
    if isinstance(value, Separation):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"separation": encode(parts, key, tensors)}
    if isinstance(value, Kernel) and type(value) is _kernel_classes().get(type(value).__name__):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"kernel": [type(value).__name__, _encode_dict(fields, key, tensors)]}
    raise ModelFileError(_why_not(value))


_CSR_PARTS = ("data", "indices", "indptr")


def _encode_dict(value: dict[Any, Any], key: str, tensors: Tensors) -> dict[str, Any]:
    if all(type(name) is str for name in value):
        return {"map": {name: encode(item, f"{key}.{name}", tensors) for name, item in value.items()}}
    pairs = enumerate(value.items())  # keys such as class labels keep their type
    return {"pairs": [encode(list(pair), f"{key}.{position}", tensors) for position, pair in pairs]}


def _encode_array(array: NDArray[Any], key: str, tensors: Tensors) -> dict[str, Any]:
    if array.dtype.name in _TENSOR_TYPES:
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        # A Fortran-ordered array comes back as one: sums in another order would differ in the last bits.
        transposed = native.flags.f_contiguous and not native.flags.c_contiguous
        tensors[key] = np.asarray(native.T if transposed else native, order="C")
        return {"transposed" if transposed else "tensor": key}
    if array.dtype.kind == "U":
        width, values = array.dtype.itemsize // 4, array.ravel().tolist()
        if _padding(width, values) > _STRING_ROOM // 4:
            codes = np.ascontiguousarray(array, dtype=f"=U{width}").reshape(-1).view(np.uint32)
            tensors[key] = codes.reshape(*array.shape, width)
            return {"characters": key}
        return {"strings": {"values": values, "width": width, "shape": list(array.shape)}}
    if array.dtype.kind == "O":
        values = encode(array.ravel().tolist(), key, tensors)
        return {"objects": {"values": values, "shape": list(array.shape)}}
    raise ModelFileError(f"is an array of {array.dtype}, which model files cannot keep; convert it first")


def _why_not(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return (
            "is a random generator, which model files cannot keep; call set_params(random_state=0) (or "
            "another integer) before saving: predictions do not depend on it"
        )
    if callable(value):
        return (
            f"is a {type(value).__name__}, and model files hold no code; use a name or an object of "
            "separatrix.kernels"
        )
    return f"is a {type(value).__qualname__}, which model files cannot keep; use numbers, text or arrays"


def decode(node: Any, tensors: Store) -> Any:
    """Return the value that `encode` described."""
    if isinstance(node, list):
        return [decode(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    (kind, content), *others = node.items() or [("nothing", None)]
    if others or kind not in _DECODERS:
        raise ModelFileError(f"it holds a value of unknown kind {kind!r}")
    return _DECODERS[kind](content, tensors)


def _decode_table(content: dict[str, Any], tensors: Store) -> Columns:
    """Return columns, which are no larger than their bytes in the file; rows are made when someone looks."""
    columns = decode(content, tensors)
    arrays = [column for column in columns.values() if column is not None]
    if not arrays or any(column.ndim != 1 or len(column) != len(arrays[0]) for column in arrays):
        raise ModelFileError("it holds a table whose columns are no rows of numbers")
    return Columns(columns)


def _decode_strings(content: dict[str, Any], tensors: Store) -> NDArray[Any]:
    values, width = [str(value) for value in content["values"]], int(content["width"])
    tensors.take_string_room(width, values)
    if any(len(value) > width for value in values):
        raise ModelFileError("it holds a text longer than declared")
    return np.array(values, dtype=f"<U{width}").reshape(content["shape"])


def _decode_characters(key: str, tensors: Store) -> NDArray[Any]:
    codes = tensors.take(key)
    if codes.dtype != np.uint32 or codes.ndim < 1 or not codes.size or codes.max() > sys.maxunicode:
        raise ModelFileError("it holds texts of something else than characters")
    return codes.reshape(-1).view(f"=U{codes.shape[-1]}").reshape(codes.shape[:-1])


def _decode_objects(content: dict[str, Any], tensors: Store) -> NDArray[Any]:
    values = decode(content["values"], tensors)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(content["shape"])


def _decode_csr(content: dict[str, Any], tensors: Store) -> Any:
    from scipy import sparse

    parts = tuple(decode(content[part], tensors) for part in _CSR_PARTS)
    rows, columns = (int(length) for length in content["shape"])
    flat = all(isinstance(part, np.ndarray) and part.ndim == 1 for part in parts)
    if not flat or len(parts[2]) != rows + 1:
        raise ModelFileError("it holds a sparse matrix whose parts do not fit together")
    build = sparse.csr_array if content["array"] else sparse.csr_matrix
    matrix = build(parts, shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix


def _decode_certificate(content: Any, tensors: Store) -> Any:
    from separatrix.certificate import Certificate

    return Certificate.from_dict(decode(content, tensors))


def _decode_separation(content: Any, tensors: Store) -> Any:
    from separatrix.certificate import Separation

    return Separation(**decode(content, tensors))


def _decode_kernel(content: list[Any], tensors: Store) -> Any:
    name, parameters = content
    if name not in _kernel_classes():
        raise ModelFileError(f"it uses the unknown kernel {name!r}")
    return _kernel_classes()[name](**decode(parameters, tensors))


def _kernel_classes() -> dict[str, Any]:
    """Return the public kernels that are plain values; a file can name no other class."""
    from separatrix import kernels

    public = {name: getattr(kernels, name) for name in kernels.__all__}
    return {
        name: item
        for name, item in public.items()
        if isinstance(item, type) and issubclass(item, kernels.Kernel) and dataclasses.is_dataclass(item)
    }


def _decode_scalar(content: list[Any], tensors: Store) -> Any:
    name, value = content
    if name not in _TENSOR_TYPES:
        raise ModelFileError(f"it holds a number of unknown type {name!r}")
    return np.dtype(name).type(decode(value, tensors))


def _decode_dtype(name: str, tensors: Store) -> np.dtype[Any]:
    if name not in _TENSOR_TYPES | {"object"}:
        raise ModelFileError(f"it names the unknown type {name!r}")
    return np.dtype(name)


_DECODERS: dict[str, Any] = {
    "float": lambda text, tensors: float(text),
    "tuple": lambda items, tensors: tuple(decode(items, tensors)),
    "map": lambda items, tensors: {name: decode(item, tensors) for name, item in items.items()},
    "pairs": lambda items, tensors: {decode(k, tensors): decode(item, tensors) for k, item in items},
    "table": _decode_table,
    "scalar": _decode_scalar,
    "dtype": _decode_dtype,
    "type": lambda name, tensors: _decode_dtype(name, tensors).type,
    "tensor": lambda key, tensors: tensors.take(key),
    "transposed": lambda key, tensors: tensors.take(key).T,
    "strings": _decode_strings,
    "characters": _decode_characters,
    "objects": _decode_objects,
    "csr": _decode_csr,
    "certificate": _decode_certificate,
    "separation": _decode_separation,
    "kernel": _decode_kernel,
}
