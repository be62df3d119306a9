"""What comes out of a model: linear models, and networks of layers, on numpy arrays.

Parameters lie in one vector, as Go keeps them: layer by layer, weights as
[input][output] (of convolutions [height][width][input][output]), then the constants.
Values between layers lie as [example][height][width][channel].
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np


class _Parameters:
    """Hands the parameter vector out, piece by piece."""

    def __init__(self, theta: np.ndarray):
        self.theta, self.used = theta, 0

    def take(self, *shape: int) -> np.ndarray:
        count = int(np.prod(shape))
        if self.used + count > len(self.theta):
            raise ValueError(f"the layers need more than the {len(self.theta)} parameters that the model has")
        piece = self.theta[self.used : self.used + count].reshape(shape)
        self.used += count
        return piece


def outputs(model: dict[str, Any], shape: dict[str, Any], theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The model's outputs, one row an example."""
    parameters = _Parameters(np.asarray(theta, dtype=float))
    if model["kind"] == "linear":
        width, classes = x.shape[1], shape.get("classes") or 0
        # More than two classes have an output each; an output's intercept comes after its weights.
        theta = parameters.take(classes if classes > 2 else 1, width + bool(model.get("intercept")))
        out = x @ theta[:, :width].T + theta[:, width:].sum(axis=1)
    elif model["kind"] == "network":
        if not model.get("layers"):
            raise ValueError(f"the model names a network ({model.get('name')!r}) and lists no layers")
        height, width = shape.get("height") or 0, shape.get("width") or 0
        values = x.reshape(len(x), height, width, -1) if height and width else x.reshape(len(x), 1, 1, -1)
        out = _layers(model["layers"], parameters, values).reshape(len(x), -1)
    else:
        raise ValueError(f"the model's kind {model['kind']!r} is not known; allowed: linear, network")
    if parameters.used != len(parameters.theta):
        raise ValueError(f"the model uses {parameters.used} of its {len(parameters.theta)} parameters")
    return out


def _layers(layers: Sequence[dict[str, Any]], parameters: _Parameters, x: np.ndarray) -> np.ndarray:
    for number, layer in enumerate(layers):
        kind = layer["kind"]
        if kind not in _KINDS:
            raise ValueError(f"layer {number}: the kind {kind!r} is not known here; known: {', '.join(sorted(_KINDS))}")
        x = _KINDS[kind](layer, parameters, x)
    return x


def _linear(layer: dict[str, Any], parameters: _Parameters, x: np.ndarray) -> np.ndarray:
    flat = x.reshape(len(x), -1)
    out = flat @ parameters.take(flat.shape[1], layer["units"])
    if not layer.get("no_bias"):
        out = out + parameters.take(layer["units"])
    return out.reshape(len(x), 1, 1, -1)


def _windows(layer: dict[str, Any], x: np.ndarray, stride: int, filling: float) -> np.ndarray:
    """Windows as [example][row][column][channel][height][width]."""
    pad, side = layer.get("padding") or 0, layer["kernel"]
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=filling)
    return np.lib.stride_tricks.sliding_window_view(x, (side, side), axis=(1, 2))[:, ::stride, ::stride]


def _conv(layer: dict[str, Any], parameters: _Parameters, x: np.ndarray) -> np.ndarray:
    side, channels = layer["kernel"], layer["channels"]
    weight = parameters.take(side, side, x.shape[3], channels)
    out = np.einsum("nrcihw,hwio->nrco", _windows(layer, x, layer.get("stride") or 1, 0), weight, optimize=True)
    return out if layer.get("no_bias") else out + parameters.take(channels)


def _max_pool(layer: dict[str, Any], _: _Parameters, x: np.ndarray) -> np.ndarray:
    return _windows(layer, x, layer.get("stride") or layer["kernel"], -np.inf).max(axis=(4, 5))


def _mean_pool(layer: dict[str, Any], _: _Parameters, x: np.ndarray) -> np.ndarray:
    if not layer.get("kernel"):
        return x.mean(axis=(1, 2), keepdims=True)
    return _windows(layer, x, layer.get("stride") or layer["kernel"], 0).mean(axis=(4, 5))


def _normalise(x: np.ndarray, axes: tuple[int, ...], parameters: _Parameters, shape: tuple[int, ...]) -> np.ndarray:
    """Values without their means over some axes, of spread 1; then a factor and a constant for every channel."""
    x = (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + 1e-5)
    x = x.reshape(shape)
    return x * parameters.take(shape[-1]) + parameters.take(shape[-1])


def _group_norm(layer: dict[str, Any], parameters: _Parameters, x: np.ndarray) -> np.ndarray:
    channels = x.shape[3]
    groups = layer.get("groups") or max(n for n in range(1, min(32, channels) + 1) if channels % n == 0)
    return _normalise(x.reshape(*x.shape[:3], groups, -1), (1, 2, 4), parameters, x.shape)


def _layer_norm(_: dict[str, Any], parameters: _Parameters, x: np.ndarray) -> np.ndarray:
    return _normalise(x, (3,), parameters, x.shape)


def _embedding(layer: dict[str, Any], parameters: _Parameters, x: np.ndarray) -> np.ndarray:
    words = x.reshape(len(x), -1)
    if not (np.all(words == np.floor(words)) and np.all((words >= 0) & (words < layer["vocabulary"]))):
        raise ValueError(f"a row holds what is no word; allowed: whole numbers from 0 to {layer['vocabulary'] - 1}")
    return parameters.take(layer["vocabulary"], layer["units"])[words.astype(int)][:, :, None, :]


def _residual(layer: dict[str, Any], parameters: _Parameters, x: np.ndarray) -> np.ndarray:
    inner = _layers(layer["inner"], parameters, x)
    return inner + _layers(layer.get("shortcut") or [], parameters, x)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1/(1+exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def softmax(x: np.ndarray) -> np.ndarray:
    """Rows that add up to 1."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


_KINDS = {
    "linear": _linear,
    "conv": _conv,
    "max-pool": _max_pool,
    "mean-pool": _mean_pool,
    "flatten": lambda layer, parameters, x: x.reshape(len(x), 1, 1, -1),
    "relu": lambda layer, parameters, x: np.maximum(x, 0),
    "leaky-relu": lambda layer, parameters, x: np.where(x > 0, x, (layer.get("slope") or 0.01) * x),
    "sigmoid": lambda layer, parameters, x: sigmoid(x),
    "tanh": lambda layer, parameters, x: np.tanh(x),
    "residual": _residual,
    "group-norm": _group_norm,
    "layer-norm": _layer_norm,
    "embedding": _embedding,
}
