"""How the columns of a table become a model's inputs: the rules of Go's data.Encoding.

Every number here is the same, bit for bit, as in Go: the keyed hash that says which
rows are held out goes by these bytes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Optional, Sequence

import numpy as np

from .table import SPACE, DecimalComma, Rows, columns_of

MISSING = frozenset(["", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"])
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_MOST_SHOWN = 50


def _yes_no_words() -> dict[str, int]:
    words = {}
    for pair in (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"), ("0", "1"), ("0.0", "1.0")):
        for place, word in enumerate(pair):
            words[word] = words[word.upper()] = words[word[:1].upper() + word[1:]] = place
    return words


class Faults(ValueError):
    """All that is wrong with some rows: faults is a list of (row from 0, column, words)."""

    def __init__(self, faults: Sequence[tuple[Optional[int], str, str]]):
        self.faults = list(faults)
        lines = [f"row {row}, column {column}: {what}" if row is not None else f"column {column}: {what}" for row, column, what in self.faults[:_MOST_SHOWN]]
        if len(self.faults) > _MOST_SHOWN:
            lines.append(f"and {len(self.faults) - _MOST_SHOWN} more")
        super().__init__("\n".join(lines))


@dataclass(frozen=True)
class Column:
    """A column that inputs are made of, and what is public about it."""

    name: str
    type: str  # number, category, yes/no; of a target also class
    range: Optional[tuple[float, float]] = None
    values: tuple[str, ...] = ()
    missing: str = "refuse"  # refuse, constant or indicator
    constant: str = ""
    low_is_zero: bool = False  # a target: its range becomes 0…1 instead of -1…1
    words: bool = False  # no and yes may be written in any of the usual ways

    @staticmethod
    def from_json(entry: dict[str, Any]) -> "Column":
        column = Column(entry["name"], entry["type"], tuple(entry["range"]) if entry.get("range") else None, tuple(entry.get("values") or ()),
                        entry.get("missing", "refuse"), entry.get("constant", ""), words=entry["type"] == "yes/no" and not entry.get("values"))
        if column.type not in ("number", "category", "yes/no"):
            raise ValueError(f"column {column.name}: the type {column.type!r} is not known; allowed: number, category, yes/no")
        if column.missing not in ("refuse", "constant", "indicator"):
            raise ValueError(f"column {column.name}: missing {column.missing!r} is not known; allowed: refuse, constant, indicator")
        if column.type == "number" and (column.range is None or not column.range[0] < column.range[1]):
            raise ValueError(f"column {column.name}: a number needs a range, lowest then highest")
        if column.type == "category" and not column.values:
            raise ValueError(f"column {column.name}: a category needs its values")
        return column

    @property
    def inputs(self) -> list[str]:
        names = [f"{self.name}={v}" for v in self.values] if self.type == "category" else [self.name]
        return names + [f"{self.name} missing"] if self.missing == "indicator" else names

    def encode(self, cells: Sequence[Any]) -> tuple[np.ndarray, list[tuple[int, str]]]:
        """The inputs of the cells, one row each, and the faults as (row, words)."""
        numbers, absent, faults = self._numbers(cells) if self.type == "number" else self._places(cells)
        if self.missing == "refuse":
            faults += [(int(i), "the value is missing") for i in np.flatnonzero(absent)]
        elif self.missing == "constant":
            standing, _, wrong = self._numbers([self.constant]) if self.type == "number" else self._places([self.constant])
            if wrong or not len(standing):
                raise ValueError(f"column {self.name}: the constant {self.constant!r} is no value of it")
            numbers[absent] = standing[0]
        else:
            numbers[absent] = 0
            numbers = np.column_stack([numbers, absent.astype(float)])
        return numbers, sorted(faults)

    def _numbers(self, cells: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, list[tuple[int, str]]]:
        faults: list[tuple[int, str]] = []
        if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
            v = cells.astype(float)
            faults = [(int(i), f"{v[i]} is not a finite number") for i in np.flatnonzero(np.isinf(v))]
        else:
            v = np.empty(len(cells))
            for i, cell in enumerate(cells):
                value = parse_number(cell)
                if value is None:
                    faults.append((i, f"{cell!r} is not a number"))
                v[i] = math.nan if value is None else value
        absent = np.isnan(v)
        absent[[i for i, _ in faults]] = False  # a fault already
        low, high = self.range  # type: ignore[misc]
        with np.errstate(invalid="ignore"):
            v = np.where(v < low, low, np.where(v > high, high, v))
        if self.low_is_zero:
            v = (v - low) / (high - low)
        else:
            v = (v - (low + high) / 2) / ((high - low) / 2)
        return v.reshape(-1, 1), absent, faults

    def _places(self, cells: Sequence[Any]) -> tuple[np.ndarray, np.ndarray, list[tuple[int, str]]]:
        place = _yes_no_words() if self.words else {v: i for i, v in enumerate(self.values)}
        texts = [as_text(cell) for cell in cells]
        where = np.array([place.get(t, -1) for t in texts], dtype=int).reshape(-1)
        absent = np.array([t in MISSING and t not in place for t in texts], dtype=bool).reshape(-1)
        if self.type == "category":
            out = np.zeros((len(texts), len(self.values)))
            known = np.flatnonzero(where >= 0)
            out[known, where[known]] = 1
            return out, absent, []
        allowed = "no/yes, n/y, false/true, 0/1" if self.words else ", ".join(self.values)
        faults = [(int(i), f"{texts[i]!r} is not in the public list; allowed: {allowed}") for i in np.flatnonzero((where < 0) & ~absent)]
        return where.astype(float).reshape(-1, 1), absent, faults


def parse_number(cell: Any) -> Optional[float]:
    """A finite decimal number; NaN for a cell that stands for nothing, None for what is no number."""
    if isinstance(cell, (bool, np.bool_, int, float, np.integer, np.floating)):
        return None if math.isinf(cell) else float(cell)
    text = as_text(cell)
    if isinstance(cell, DecimalComma):
        text = text.replace(",", ".")
    if _NUMBER.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else None
    return math.nan if text in MISSING else None


def as_text(cell: Any) -> str:
    """A cell as a file would hold it: true and false in small letters, whole numbers without a point."""
    if cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    if isinstance(cell, (float, np.floating)):
        if math.isnan(cell):
            return ""
        return str(int(cell)) if float(cell).is_integer() and abs(cell) < 2**53 else repr(float(cell))
    if isinstance(cell, bytes):
        cell = cell.decode()
    return str(cell).strip(SPACE)


class Encoding:
    """The encoding of a model folder or of `coterie data encoding`."""

    def __init__(self, entry: dict[str, Any]):
        self.target: str = entry["target"]
        self.task: str = entry["task"]
        self.classes: list[str] = list(entry.get("classes") or [])
        self.target_range: Optional[tuple[float, float]] = tuple(entry["target_range"]) if entry.get("target_range") else None  # type: ignore[assignment]
        self.columns = [Column.from_json(c) for c in entry["columns"]]
        self.inputs = [name for c in self.columns for name in c.inputs]
        if self.task not in ("number", "yes/no", "classes"):
            raise ValueError(f"the encoding's task {self.task!r} is not known; allowed: number, yes/no, classes")
        if self.task == "number" and self.target_range is None:
            raise ValueError("the encoding's target_range is missing: a number needs its lowest and highest value")
        if self.task != "number" and len(self.classes) < 2:
            raise ValueError(f"the encoding has {len(self.classes)} classes; allowed: 2 or more")
        if self.inputs != list(entry["inputs"]):
            raise ValueError(f"the encoding's columns make the inputs {self.inputs}, but it lists {entry['inputs']}")

    def encode(self, rows: Rows) -> np.ndarray:
        """The inputs of rows, one row each. Raises Faults with all that is wrong."""
        columns, count = columns_of(rows)
        self._present(columns, [c.name for c in self.columns])
        parts, faults = [], []
        for c in self.columns:
            part, wrong = c.encode(columns[c.name])
            parts.append(part)
            faults += [(row, c.name, what) for row, what in wrong]
        if faults:
            raise Faults(sorted(faults, key=lambda f: f[0]))
        return np.concatenate(parts, axis=1) if parts else np.empty((count, 0))

    def encode_target(self, rows: Rows) -> np.ndarray:
        """The targets: a number as 0…1 of its range, a class as its place. A missing one is NaN."""
        columns, _ = columns_of(rows)
        self._present(columns, [self.target])
        if self.task == "number":
            column = Column(self.target, "number", self.target_range, missing="indicator", low_is_zero=True)
        else:
            column = Column(self.target, "class", values=tuple(self.classes), missing="indicator", words=self.task == "yes/no" and self.classes == ["no", "yes"])
        part, wrong = column.encode(columns[self.target])
        if wrong:
            raise Faults([(row, self.target, what) for row, what in wrong])
        return np.where(part[:, 1] > 0, math.nan, part[:, 0])

    @staticmethod
    def _present(columns: dict[str, Any], names: Sequence[str]) -> None:
        gone = [n for n in names if n not in columns]
        if gone:
            has = ", ".join(columns) or "no columns"
            raise Faults([(None, n, f"is missing; the rows have {has}") for n in gone])
