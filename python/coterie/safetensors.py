"""A strict reader of safetensors files: float32 and float64, every length checked first."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from typing import Any, Union

import numpy as np

_MOST_HEADER = 16 << 20
_TYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}


def read(path: Union[str, os.PathLike[str]]) -> tuple[dict[str, np.ndarray], dict[str, str], str]:
    """The tensors by name, the file's metadata, and the SHA-256 of the tensors' bytes."""
    with open(path, "rb") as f:
        raw = f.read()

    def wrong(what: str) -> ValueError:
        return ValueError(f"{path}: {what}")

    if len(raw) < 8:
        raise wrong(f"{len(raw)} bytes are no safetensors file")
    (length,) = struct.unpack("<Q", raw[:8])
    if not 2 <= length <= min(_MOST_HEADER, len(raw) - 8):
        raise wrong(f"a header of {length} bytes in a file of {len(raw)}")
    try:
        header = json.loads(raw[8 : 8 + length].decode(), object_pairs_hook=_once)
    except ValueError as err:
        raise wrong(f"the header: {err}") from err
    if not isinstance(header, dict):
        raise wrong("the header is no JSON object")
    metadata = header.pop("__metadata__", {})
    data, end, out = raw[8 + length :], 0, {}
    try:
        entries = sorted(header.items(), key=lambda e: e[1]["data_offsets"])
        for name, entry in entries:
            first, last = entry["data_offsets"]
            kind, shape = _TYPES.get(entry["dtype"]), entry["shape"]
            if not isinstance(shape, list) or not all(type(n) is int for n in [*shape, first, last]):
                raise wrong(f"{name} has the shape {shape!r} at bytes {first!r} to {last!r}, which are no whole numbers")
            if kind is None:
                raise wrong(f"{name} has the type {entry['dtype']!r}; allowed: F32, F64")
            count = 1
            for d in shape:
                count *= d
            if first != end or last - first != count * kind.itemsize or last > len(data) or min(shape, default=1) < 0:
                raise wrong(f"{name} lies at bytes {first} to {last}; its shape {shape} and the tensor before say {end} to {end + count * kind.itemsize}")
            values = np.frombuffer(data[first:last], dtype=kind).reshape(shape).astype(kind.newbyteorder("="))
            if not np.all(np.isfinite(values)):
                raise wrong(f"{name} has values that are not finite")
            out[name], end = values, last
    except (KeyError, TypeError) as err:
        raise wrong(f"the header is not one of tensors: {err!r}") from err
    if end != len(data):
        raise wrong(f"{len(data) - end} bytes after the last tensor")
    return out, metadata, hashlib.sha256(data).hexdigest()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name stands twice")
    return out
