"""Runs every model NAME.onnx of a folder on the inputs of NAME.json, and writes what comes
out to NAME.out.json: a protobuf reader and the operators that Coterie writes, in NumPy.
Usage: python3 onnx_check.py FOLDER"""

import json
import pathlib
import struct
import sys

import numpy as np


def fields(b):
    """All fields of a message, as (number, value): integers, or bytes."""
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            c = b[at]
            at += 1
            v |= (c & 127) << shift
            shift += 7
            if c < 128:
                return v

    while at < len(b):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            n = varint()
            yield key >> 3, b[at:at + n]
            at += n
        elif key & 7 == 5:
            yield key >> 3, b[at:at + 4]
            at += 4
        else:
            raise ValueError(f"wire type {key & 7}")


def every(b, number):
    return [v for n, v in fields(b) if n == number]


def text(b):
    return b.decode()


def tensor(b):
    dims, kind = every(b, 1), every(b, 2)[0]
    if kind == 8:
        values = np.array([text(s) for s in every(b, 6)], dtype=object)
    else:
        values = np.frombuffer(every(b, 9)[0], dtype={1: "<f4", 7: "<i8"}[kind])
    return text(every(b, 8)[0]), values.reshape(dims)


def attribute(b):
    name, kind = text(every(b, 1)[0]), every(b, 20)[0]
    if kind == 1:
        return name, struct.unpack("<f", every(b, 2)[0])[0]
    if kind == 2:
        return name, every(b, 3)[0]
    if kind == 7:
        return name, every(b, 8)
    raise ValueError(f"attribute {name} of type {kind}")


def windows(x, a, fill):
    """[N, C, rows, columns, kernel, kernel]: what every window sees."""
    top, left, bottom, right = a["pads"]
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    w = np.lib.stride_tricks.sliding_window_view(x, a["kernel_shape"], axis=(2, 3))
    return w[:, :, ::a["strides"][0], ::a["strides"][1]]


def conv(i, a):
    out = np.einsum("nchwij,fcij->nfhw", windows(i[0], a, 0), i[1])
    return out + i[2].reshape(1, -1, 1, 1) if len(i) > 2 else out


def conv_transpose(i, a):
    x, w = i[0], i[1]
    (sh, sw), (kh, kw), (top, left, bottom, right) = a["strides"], a["kernel_shape"], a["pads"]
    out = np.zeros((x.shape[0], w.shape[1], (x.shape[2] - 1) * sh + kh, (x.shape[3] - 1) * sw + kw), x.dtype)
    for r in range(x.shape[2]):
        for c in range(x.shape[3]):
            out[:, :, r * sh:r * sh + kh, c * sw:c * sw + kw] += np.einsum("nf,fcij->ncij", x[:, :, r, c], w)
    out = out[:, :, top:out.shape[2] - bottom, left:out.shape[3] - right]
    return out + i[2].reshape(1, -1, 1, 1) if len(i) > 2 else out


def mean_pool(i, a):
    if a.get("count_include_pad"):
        return windows(i[0], a, 0).mean(axis=(4, 5))
    return windows(i[0], a, 0).sum(axis=(4, 5)) / windows(np.ones_like(i[0]), a, 0).sum(axis=(4, 5))


def gemm(i, a):
    out = i[0] @ (i[1].T if a.get("transB") else i[1])
    return out + i[2] if len(i) > 2 else out


def normalise(x, axes, epsilon):
    spread = np.sqrt(x.var(axis=axes, keepdims=True) + np.float32(epsilon))
    return (x - x.mean(axis=axes, keepdims=True)) / spread


def instance_norm(i, a):
    each = (1, -1) + (1,) * (i[0].ndim - 2)
    return normalise(i[0], tuple(range(2, i[0].ndim)), a["epsilon"]) * i[1].reshape(each) + i[2].reshape(each)


def reshape(i, a):
    return i[0].reshape([i[0].shape[k] if d == 0 else d for k, d in enumerate(i[1])])


def softmax(i, a):
    e = np.exp(i[0] - i[0].max(axis=a["axis"], keepdims=True))
    return e / e.sum(axis=a["axis"], keepdims=True)


OPERATORS = {
    "Add": lambda i, a: i[0] + i[1],
    "ArgMax": lambda i, a: i[0].argmax(axis=a["axis"]),
    "AveragePool": mean_pool,
    "Cast": lambda i, a: i[0].astype({1: "f4", 7: "i8", 9: "?"}[a["to"]]),
    "Clip": lambda i, a: np.minimum(np.maximum(i[0], i[1]), i[2]),
    "Concat": lambda i, a: np.concatenate(i, axis=a["axis"]),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "Div": lambda i, a: i[0] / i[1],
    "Equal": lambda i, a: i[0] == i[1],
    "Gather": lambda i, a: i[0][i[1]],
    "Gemm": gemm,
    "GlobalAveragePool": lambda i, a: i[0].mean(axis=(2, 3), keepdims=True),
    "Greater": lambda i, a: i[0] > i[1],
    "Identity": lambda i, a: i[0],
    "InstanceNormalization": instance_norm,
    "IsNaN": lambda i, a: np.isnan(i[0]),
    "LayerNormalization": lambda i, a: normalise(i[0], -1, a["epsilon"]) * i[1] + i[2],
    "LeakyRelu": lambda i, a: np.where(i[0] > 0, i[0], np.float32(a["alpha"]) * i[0]),
    "MatMul": lambda i, a: i[0] @ i[1],
    "MaxPool": lambda i, a: windows(i[0], a, -np.inf).max(axis=(4, 5)),
    "Mul": lambda i, a: i[0] * i[1],
    "Not": lambda i, a: ~i[0],
    "Or": lambda i, a: i[0] | i[1],
    "ReduceMax": lambda i, a: i[0].max(axis=tuple(i[1]), keepdims=True),
    "Relu": lambda i, a: np.maximum(i[0], 0),
    "Reshape": reshape,
    "Sigmoid": lambda i, a: 1 / (1 + np.exp(-i[0])),
    "Softmax": softmax,
    "Squeeze": lambda i, a: i[0].squeeze(tuple(i[1])),
    "Sub": lambda i, a: i[0] - i[1],
    "Tanh": lambda i, a: np.tanh(i[0]),
    "Transpose": lambda i, a: i[0].transpose(a["perm"]),
    "Where": lambda i, a: np.where(i[0], i[1], i[2]),
}


def run(model, values):
    graph = every(model, 7)[0]
    values.update(tensor(t) for t in every(graph, 5))
    for node in every(graph, 1):
        inputs = [values[text(n)] for n in every(node, 1)]
        operation = OPERATORS[text(every(node, 4)[0])]
        values[text(every(node, 2)[0])] = operation(inputs, dict(attribute(a) for a in every(node, 5)))
    names = [text(every(o, 1)[0]) for o in every(graph, 12)]
    return {name: values[name] for name in names}


def read(t):
    if t["type"] == "string":
        return np.array(t["values"], dtype=object).reshape(t["dims"])
    if t["type"] == "int64":
        return np.array(t["values"], dtype="i8").reshape(t["dims"])
    return np.array([np.nan if v is None else v for v in t["values"]], dtype="f4").reshape(t["dims"])


def written(v):
    kind = {"f": "float32", "i": "int64", "O": "string"}[v.dtype.kind]
    values = [None if x != x else x for x in v.ravel().tolist()]
    return {"type": kind, "dims": list(v.shape), "values": values}


def main(folder):
    models = sorted(pathlib.Path(folder).glob("*.onnx"))
    for path in models:
        inputs = {k: read(t) for k, t in json.loads(path.with_suffix(".json").read_text()).items()}
        with np.errstate(invalid="ignore", over="ignore"):
            out = run(path.read_bytes(), inputs)
        path.with_suffix(".out.json").write_text(json.dumps({k: written(v) for k, v in out.items()}))
    print(f"{len(models)} models by NumPy {np.__version__}")


main(sys.argv[1])
