"""Training in Python for a participant of a federation: docs/trainer.md.

    class Mine(trainer.Trainer): ...
    trainer.serve(Mine(...))

Table is a trainer that is ready: linear, logistic and softmax regression on a CSV file.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import Any, BinaryIO, Optional, Sequence, Union

import numpy as np

from .table_trainer import Settings, Table, TableRows
from .trainer_base import Trainer

__all__ = ["Settings", "Table", "TableRows", "Trainer", "serve"]

_MAGIC = b"CTR1"
_PREFIX = struct.Struct("<4sIQ")  # magic, bytes of the header, bytes of the values
_PROTOCOL = 1


def _read(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data


def serve(trainer: Any, requests: Optional[BinaryIO] = None, answers: Optional[BinaryIO] = None) -> None:
    """Answers requests until there are no more.

    trainer has parameters and examples (two numbers) and those of these methods that
    its mode needs; Trainer has the first two made of the others:

      train(theta, epochs, step, batch, loss)  the update: new parameters - theta
      loss(theta)                              one number, to compare models by, or that
                                               and how many answers are wrong
      losses(theta, examples)                  one number a listed example
      gradients(theta, examples)               one gradient a listed example, each
                                               computed from that example alone

    theta is an array of float64, examples one of places from 0. Standard output belongs
    to the protocol from here on: print() goes to standard error.
    """
    if requests is None or answers is None:
        requests, answers = sys.stdin.buffer, sys.stdout.buffer
        sys.stdout = sys.stderr
    while True:
        try:
            magic, header_size, values_size = _PREFIX.unpack(_read(requests, _PREFIX.size))
            if magic != _MAGIC:
                raise ValueError(f"the request does not begin with {_MAGIC!r}")
            request = json.loads(_read(requests, header_size))
            theta = np.frombuffer(_read(requests, values_size), dtype="<f4").astype(float)
        except EOFError:
            return  # the participant has closed our input: we are done
        header: dict[str, Any] = {"id": request["id"]}
        values: Union[np.ndarray, Sequence[float]] = ()
        try:
            values = _answer(trainer, request, theta, header)
            raw = np.asarray(values, dtype="<f4").tobytes()
        except Exception as err:  # the other side is told, and may ask again
            header, raw = {"id": request["id"], "error": f"{type(err).__name__}: {err}"[:2000]}, b""
        text = json.dumps(header).encode()
        answers.write(_PREFIX.pack(_MAGIC, len(text), len(raw)) + text + raw)
        answers.flush()


def _answer(trainer: Any, request: dict[str, Any], theta: np.ndarray, header: dict[str, Any]) -> Any:
    """The values that a request asks for; what belongs into the header is put there."""
    op = request["op"]
    if op == "hello":
        header.update(protocol=_PROTOCOL, parameters=int(trainer.parameters), examples=int(trainer.examples))
        return ()
    if len(theta) != trainer.parameters:
        raise ValueError(f"a model of {len(theta)} parameters; this trainer has {trainer.parameters}")
    if op == "train":
        return trainer.train(theta, request.get("epochs", 1), request.get("step", 0.0), request.get("batch", 0), request.get("loss", ""))
    if op == "loss":
        told = trainer.loss(theta)
        loss, wrong = told if isinstance(told, tuple) else (told, None)
        header["loss"] = float(loss)
        if wrong is not None:
            header["wrong"] = int(wrong)
        return ()
    if op not in ("losses", "gradients"):
        raise NotImplementedError(f"this trainer does not know {op}")
    examples = np.asarray(request["examples"], dtype=int)
    if op == "losses":
        return _sized(trainer.losses(theta, examples), (len(examples),), op)
    return _sized(trainer.gradients(theta, examples), (len(examples), trainer.parameters), op)


def _sized(values: Any, shape: tuple[int, ...], op: str) -> np.ndarray:
    out = np.asarray(values, dtype=float)
    if out.shape != shape:
        raise ValueError(f"{op} has returned an array of shape {out.shape}, not {shape}")
    return out
