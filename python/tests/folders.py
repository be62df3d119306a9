"""Model folders made by hand, for tests."""

import hashlib
import json
import pathlib
import struct

import numpy as np

ENCODING = {
    "target": "readmitted", "task": "yes/no", "classes": ["no", "yes"], "target_range": None,
    "columns": [
        {"name": "age", "type": "number", "range": [0, 120], "missing": "refuse"},
        {"name": "ward", "type": "category", "values": ["A", "B"], "missing": "indicator"},
        {"name": "smoker", "type": "yes/no", "missing": "refuse"},
        {"name": "bmi", "type": "number", "range": [10, 60], "missing": "constant", "constant": "22"},
    ],
    "inputs": ["age", "ward=A", "ward=B", "ward missing", "smoker", "bmi"],
}
ROWS = [
    {"age": 60, "ward": "A", "smoker": "no", "bmi": 35},
    {"age": "150", "ward": "C", "smoker": "Y", "bmi": ""},
    {"age": "90", "ward": "?", "smoker": True, "bmi": None},
]
INPUTS = [
    [0, 1, 0, 0, 0, 0],
    [1, 0, 0, 0, 1, -0.52],
    [0.5, 0, 0, 1, 1, -0.52],
]


def write_tensors(path, tensors):
    """A safetensors file of float64; its digest."""
    header, data = {}, b""
    for name, values in tensors.items():
        raw = np.asarray(values, dtype="<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(np.shape(values)), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
    return hashlib.sha256(data).hexdigest()


def write_model(folder, tensors, models, newcomer, **about):
    """A model folder."""
    folder = pathlib.Path(folder)
    encoding = about.get("encoding", ENCODING)
    description = {
        "format": "coterie model 1", "name": "test", "task": encoding["task"] if encoding else "classes", "encoding": encoding,
        "shape": {"features": len(encoding["inputs"]) if encoding else 0, "classes": 2, "height": 0, "width": 0},
        "model": {"kind": "linear", "intercept": True}, "loss": "cross-entropy", "precision": "float64", "method": "mr-mtl",
        "models": models, "newcomer": newcomer, **about,
        "model_sha256": write_tensors(folder / "model.safetensors", tensors),
    }
    (folder / "model.json").write_text(json.dumps(description))
    return folder
