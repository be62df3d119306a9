"""Tables as columns: reading a CSV file, and taking what callers hold as columns."""

from __future__ import annotations

import csv
import gzip
import io
import os
from typing import Any, Mapping, Sequence, Union

import numpy as np

Columns = Mapping[str, Sequence[Any]]
Rows = Union[Columns, Sequence[Mapping[str, Any]], np.ndarray, Any]

# What Go's strings.TrimSpace takes away, so that both sides see the same cells.
SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


class DecimalComma(str):
    """A cell of a file whose cells are parted by semicolons: in a number column, 3,14 is a number."""


def _separator(text: str) -> str:
    """The comma, semicolon or tab that the first line has most often outside quotes."""
    counts, quoted = dict.fromkeys(",;\t", 0), False
    for c in text:
        if c == '"':
            quoted = not quoted
        elif c == "\n" and not quoted:
            break
        elif c in counts and not quoted:
            counts[c] += 1
    return max(counts, key=lambda c: counts[c])  # the first of equals: the comma


def read_csv(path: Union[str, os.PathLike[str]]) -> dict[str, list[str]]:
    """The columns of a CSV file by their names, as text.

    Commas, semicolons or tabs part the cells, as the line of names shows; a byte-order
    mark and gzip are taken as they come. Parted by semicolons, numbers may have a
    decimal comma.
    """
    with open(path, "rb") as f:
        raw = f.read()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    text = raw.decode("utf-8-sig").lstrip("\r\n")
    separator = _separator(text)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    names: list[str] = []
    cells: list[list[str]] = []
    try:
        for row in lines:
            if not row or len(row) == 1 and len(names) != 1 and not row[0].strip(SPACE):
                continue  # an empty line
            if not names:
                names = [name.strip(SPACE) for name in row]
                twice = sorted({n for n in names if names.count(n) > 1})
                if twice:
                    raise ValueError(f"{path}: these columns stand twice in the header: {', '.join(twice)}")
                cells = [[] for _ in names]
                continue
            if len(row) != len(names):
                raise ValueError(f"{path}, line {lines.line_num}: {len(row)} cells, but the header names {len(names)} columns")
            for column, cell in zip(cells, row):
                cell = cell.strip(SPACE)
                comma = separator == ";" and cell.count(",") == 1 and "." not in cell
                column.append(DecimalComma(cell) if comma else cell)
    except csv.Error as err:
        raise ValueError(f"{path}, line {lines.line_num}: {err}") from err
    if not names:
        raise ValueError(f"{path}: no line of column names")
    return dict(zip(names, cells))


def columns_of(rows: Rows) -> tuple[dict[str, Sequence[Any]], int]:
    """The columns of whatever holds rows, and how many rows there are.

    Taken are a mapping of columns, a list of mappings (one a row), a numpy structured
    array, and anything with .columns, such as a pandas frame.
    """
    if isinstance(rows, Mapping):
        columns = {str(name): _sequence(values) for name, values in rows.items()}
    elif isinstance(rows, np.ndarray):
        if rows.dtype.names is None:
            raise TypeError("an array without names of columns; give a dict of columns, a list of dicts, or a structured array")
        columns = {name: rows[name] for name in rows.dtype.names}
    elif hasattr(rows, "columns"):
        columns = {str(name): np.asarray(rows[name]) for name in rows.columns}
    elif isinstance(rows, Sequence) and not isinstance(rows, (str, bytes)) and all(isinstance(r, Mapping) for r in rows):
        names = dict.fromkeys(str(name) for r in rows for name in r)
        columns = {name: [r.get(name) for r in rows] for name in names}
        return columns, len(rows)
    else:
        raise TypeError(f"{type(rows).__name__} holds no rows; give a dict of columns, a list of dicts, or a structured array")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError("the columns are of different length: " + ", ".join(f"{k} {v}" for k, v in lengths.items()))
    return columns, next(iter(lengths.values()), 0)


def _sequence(values: Any) -> Sequence[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(f"{values!r} is no column; give a list or an array of its cells")
    return values if isinstance(values, (list, tuple, np.ndarray)) else np.asarray(values)
