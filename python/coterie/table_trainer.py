"""A ready trainer on a table: the same rows, inputs and gradients as a participant in Go."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from typing import Any, Optional, Union

import numpy as np

from .encoding import Encoding, Faults, as_text
from .model import losses as row_losses
from .network import outputs, sigmoid, softmax
from .table import Rows, columns_of, read_csv
from .trainer_base import Trainer

FORMAT = "coterie encoding 1"


class Settings:
    """What `coterie data encoding RUNFILE` prints: all of a run file that a trainer must know. It is public."""

    def __init__(self, about: dict[str, Any]):
        if about.get("format") != FORMAT:
            raise ValueError(f"the format is {about.get('format')!r}; this package reads {FORMAT!r}, which `coterie data encoding RUNFILE` prints")
        self.encoding = Encoding(about["encoding"])
        self.seed: int = about["seed"]
        self.test_share: float = about["test_share"]
        self.test: Optional[dict[str, str]] = about["test"]
        self.train_limit: int = about["train_limit"]
        self.target_missing: str = about["target_missing"]
        self.standardise: str = about["standardise"]
        self.model: dict[str, Any] = about["model"]
        self.shape: dict[str, int] = about["shape"]
        self.loss: str = about["loss"]

    @staticmethod
    def read(path: Union[str, os.PathLike[str]]) -> "Settings":
        """From a file."""
        with open(path, encoding="utf-8") as f:
            return Settings(json.load(f))


def row_numbers(x: np.ndarray, y: np.ndarray, seed: int, purpose: str, client: str) -> list[int]:
    """A number of 64 bits for every row, drawn from the row alone, keyed by seed, purpose and client: Go's Client.numbers."""
    key = hashlib.sha256(b"coterie rows 1\x00" + struct.pack("<Q", seed) + purpose.encode() + b"\x00" + client.encode()).digest()
    rows = np.column_stack([x, y]).astype("<f8")
    return [int.from_bytes(hashlib.sha256(key + row.tobytes()).digest()[:8], "little") for row in rows]


class TableRows:
    """The rows of one participant, encoded and split as Go would: x and y to train on, held_x and held_y not.

    client is the participant's name in the federation: it enters the keyed hash that
    says which rows are held out. Where the rows are those of several, client_column
    names the column to take this client's by. kept and held are places among them.
    """

    def __init__(self, settings: Union[Settings, str, os.PathLike[str]], rows: Union[Rows, str, os.PathLike[str]], client: str, client_column: Optional[str] = None):
        self.settings = s = settings if isinstance(settings, Settings) else Settings.read(settings)
        if s.standardise != "none":
            raise ValueError(f"data.standardise is {s.standardise}; trainers know none, as the public ranges scale the inputs")
        columns, count = columns_of(read_csv(rows) if isinstance(rows, (str, os.PathLike)) else rows)
        wanted = [name for name in (client_column, s.test and s.test["column"]) if name]
        gone = [name for name in wanted if name not in columns]
        if gone:
            raise Faults([(None, name, f"is missing; the rows have {', '.join(columns)}") for name in gone])
        if client_column:
            mine = [i for i in range(count) if as_text(columns[client_column][i]) == client]
            if not mine:
                raise ValueError(f"no rows of {client!r} in the column {client_column}")
            columns = {name: [cells[i] for i in mine] for name, cells in columns.items()}
        y = s.encoding.encode_target(columns)
        absent = np.isnan(y)
        if absent.any():
            if s.target_missing != "leave-out":
                raise Faults([(int(i), s.encoding.target, "the target is missing: fill it in, or set data.target_missing to leave-out") for i in np.flatnonzero(absent)])
            keep = np.flatnonzero(~absent)
            columns, y = {name: [cells[i] for i in keep] for name, cells in columns.items()}, y[keep]
        x = s.encoding.encode(columns)
        self.kept, self.held = self._split(columns, x, y, client)
        if not len(self.kept):
            raise ValueError(f"{client}: none of {len(y)} rows is left to train on")
        self.x, self.y = x[self.kept], y[self.kept]
        self.held_x, self.held_y = x[self.held], y[self.held]

    def _split(self, columns: Any, x: np.ndarray, y: np.ndarray, client: str) -> tuple[np.ndarray, np.ndarray]:
        """Which rows train, and which are held out: as Go decides."""
        s = self.settings
        if s.test:
            held = np.array([as_text(cell) == s.test["value"] for cell in columns[s.test["column"]]], dtype=bool).reshape(-1)
        elif s.test_share:
            limit = int(s.test_share * 2.0**64)
            held = np.array([n < limit for n in row_numbers(x, y, s.seed, "hold out", client)], dtype=bool).reshape(-1)
        else:
            held = np.zeros(len(y), dtype=bool)
        train = np.flatnonzero(~held)
        if s.train_limit and len(train) > s.train_limit:
            numbers = row_numbers(x[train], y[train], s.seed, "limit", client)
            order = sorted(range(len(train)), key=lambda i: numbers[i])[: s.train_limit]
            train = train[sorted(order)]
        return train, np.flatnonzero(held)


class Table(Trainer):
    """Linear, logistic or softmax regression on the rows of one participant.

        serve(Table("encoding.json", "ward.csv", client="north"))

    The arguments are those of TableRows.
    """

    def __init__(self, settings: Union[Settings, str, os.PathLike[str]], rows: Union[Rows, str, os.PathLike[str]], client: str, client_column: Optional[str] = None):
        self.rows = TableRows(settings, rows, client, client_column)
        self.settings = s = self.rows.settings
        self._check_known()
        self.follows, self.examples = s.loss, len(self.rows.y)
        self.x, self.y = self.rows.x, self.rows.y
        self.constant = not s.model["layers"][0].get("no_bias") if s.model.get("layers") else bool(s.model.get("intercept"))
        self.parameters = (self.x.shape[1] + self.constant) * self._units()

    def _units(self) -> int:
        """How many outputs there are."""
        s = self.settings
        if s.model.get("layers"):
            return s.model["layers"][0]["units"]
        classes = s.shape.get("classes") or 0
        return classes if classes > 2 else 1

    def _check_known(self) -> None:
        s = self.settings
        layers = s.model.get("layers") or []
        if s.model["kind"] != "linear" and not (len(layers) == 1 and layers[0]["kind"] == "linear"):
            raise ValueError("this trainer knows linear models and networks of one linear layer; write a Trainer of your own for others, or use coterie.torch_trainer")
        if s.loss not in ("cross-entropy", "hinge", "squared-error", "half-squared-error"):
            raise ValueError(f"this trainer does not know the loss {s.loss}; known: cross-entropy, hinge, squared-error, half-squared-error")
        if self._units() > 1 and s.loss != "cross-entropy":
            raise ValueError(f"this trainer knows several outputs under cross-entropy alone, not under {s.loss}")

    def _outputs(self, theta: np.ndarray, x: np.ndarray) -> np.ndarray:
        return outputs(self.settings.model, self.settings.shape, theta, x)

    def losses(self, theta: np.ndarray, examples: np.ndarray) -> np.ndarray:
        return row_losses(self.settings.loss, self._outputs(theta, self.x[examples]), self.y[examples])

    def gradients(self, theta: np.ndarray, examples: np.ndarray) -> np.ndarray:
        x, y = self.x[examples], self.y[examples]
        slopes = self._slopes(self._outputs(theta, x), y)
        if not self.settings.model.get("layers"):  # output after output, the intercept last in each
            if self.constant:
                x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
            return (slopes[:, :, None] * x[:, None, :]).reshape(len(x), -1)
        inner = (x[:, :, None] * slopes[:, None, :]).reshape(len(x), -1)
        return np.concatenate([inner, slopes], axis=1) if self.constant else inner

    def _slopes(self, out: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The derivative of every row's loss by the outputs."""
        loss = self.settings.loss
        if out.shape[1] > 1:
            slopes = softmax(out)
            slopes[np.arange(len(y)), y.astype(int)] -= 1
            return slopes
        y = y[:, None]
        if loss == "cross-entropy":
            return sigmoid(out) - y
        if loss == "hinge":
            sign = 2 * y - 1
            return np.where(sign * out < 1, -sign, 0.0)
        return (out - y) * (2 if loss == "squared-error" else 1)

    def loss(self, theta: np.ndarray) -> Any:
        """As Go compares models: the root of the mean squared error of values; of classes the mean loss, and how many answers are wrong."""
        out, mean = self._outputs(theta, self.x), float(np.mean(self.losses(theta, np.arange(self.examples))))
        if not self.settings.encoding.classes:
            return math.sqrt(mean)
        if out.shape[1] > 1:
            answers = out.argmax(axis=1)
        else:
            answers = out[:, 0] > (0 if self.settings.loss in ("cross-entropy", "hinge") else 0.5)
        return mean, int(np.sum(answers != (self.y > 0.5 if out.shape[1] == 1 else self.y)))
