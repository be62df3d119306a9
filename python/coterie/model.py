"""A model folder: model.json and model.safetensors, and predictions from them."""

from __future__ import annotations

import json
import os
import pathlib
import warnings
from typing import Any, Optional, Union

import numpy as np

from . import safetensors
from .encoding import Encoding
from .network import outputs, sigmoid, softmax
from .table import Rows

FORMAT = "coterie model 1"
MODEL_FILE, PERSONAL_FILE = "model.safetensors", "personal.safetensors"


def load(folder: Union[str, os.PathLike[str]]) -> "Model":
    """The model of a run directory, or of the out folder of a federation's server or participant."""
    place = pathlib.Path(folder)
    description = place / "model.json"
    if not description.is_file():
        raise FileNotFoundError(f"{place} has no model.json: is it a run directory or an out folder?")
    with open(description, encoding="utf-8") as f:
        about = json.load(f)
    if about.get("format") != FORMAT:
        raise ValueError(f"{description}: the format is {about.get('format')!r}; this package reads {FORMAT!r}")
    tensors: dict[str, dict[str, np.ndarray]] = {}
    for name, digest in ((MODEL_FILE, about.get("model_sha256")), (PERSONAL_FILE, about.get("personal_sha256"))):
        if name == PERSONAL_FILE and not digest:
            continue  # no participant's own model
        tensors[name], _, found = safetensors.read(place / name)
        if found != digest:
            raise ValueError(f"{place}: {name} is not the file that model.json describes (its tensors have another SHA-256)")
    for entry in about["models"]:
        for key in ("tensor", "centre", "scale"):
            if entry.get(key) and entry[key] not in tensors.get(entry.get("file", MODEL_FILE), {}):
                raise ValueError(f"{description}: the tensor {entry[key]} is not in {entry.get('file', MODEL_FILE)}")
        if entry.get("scale") and not np.all(tensors[entry.get("file", MODEL_FILE)][entry["scale"]] > 0):
            raise ValueError(f"{description}: the scale {entry['scale']} is not positive")
    return Model(about, tensors)


class Model:
    """What a run has made: one model for all, for every cluster, or for every client.

    about is model.json, tensors are the arrays by file and name. task, classes and inputs
    say what is predicted from what.
    """

    def __init__(self, about: dict[str, Any], tensors: dict[str, dict[str, np.ndarray]]):
        self.about, self.tensors = about, tensors
        self.encoding: Optional[Encoding] = Encoding(about["encoding"]) if about.get("encoding") else None
        self.task: str = about["task"]
        self.classes: list[str] = self.encoding.classes if self.encoding else about.get("classes") or []
        self.inputs: list[str] = self.encoding.inputs if self.encoding else []
        self.privacy: dict[str, Any] = about.get("privacy") or {}
        self.newcomer: str = about["newcomer"]

    @property
    def clients(self) -> list[str]:
        """The names of those that have a model of their own."""
        return [m["client"] for m in self.about["models"] if m["role"] == "client"]

    def __repr__(self) -> str:
        of = f"{self.encoding.target} ({self.task})" if self.encoding else self.task
        return f"<coterie model of {of}: {self.about.get('method')}, {len(self.clients)} clients, newcomers get {self.newcomer}>"

    def encode(self, rows: Rows) -> np.ndarray:
        """Rows as the model's inputs, by the encoding it was trained with.

        A model of other data than tables takes an array of examples as they are.
        """
        if self.encoding is not None:
            return self.encoding.encode(rows)
        x = np.asarray(rows, dtype=float)
        shape = self.about["shape"]
        size = shape["features"] or shape["height"] * shape["width"] * max(1, shape.get("channels") or 0)
        if x.ndim < 2 or int(np.prod(x.shape[1:])) != size:
            raise ValueError(f"an array of shape {x.shape}; the model takes examples of {size} values each")
        return x.reshape(len(x), size)

    def predict(self, rows: Rows, client: Optional[str] = None, cluster: Optional[int] = None) -> np.ndarray:
        """What the model says of rows.

        Numbers come in the target's own unit; of yes/no it is the probability of yes,
        the second class; of classes one column of probabilities each, in the order of
        classes.

        client names one that took part: its own model is used. One that was not there,
        or nobody named, is a newcomer: newcomer says which model it gets (global, mean, or
        cluster; a cluster is given as cluster, or found by choose_cluster from labelled
        rows). In the folder of one participant nobody named is that participant.
        """
        return self._answers(self._outputs(self._entry(client, cluster), self.encode(rows)))

    def parameters(self, client: Optional[str] = None, cluster: Optional[int] = None) -> np.ndarray:
        """The parameters of the model that would answer: of a linear one in the order of inputs, then the intercept."""
        return self._parameters(self._entry(client, cluster))

    def classify(self, rows: Rows, client: Optional[str] = None, cluster: Optional[int] = None) -> list[str]:
        """The most probable class of every row, by name."""
        if not self.classes:
            raise ValueError(f"the model's task is {self.task}: it has no names of classes")
        answers = self.predict(rows, client, cluster)
        places = (answers > 0.5).astype(int) if answers.ndim == 1 else answers.argmax(axis=1)
        return [self.classes[i] for i in places]

    def choose_cluster(self, rows: Rows) -> int:
        """The cluster whose model fits labelled rows best: for a newcomer with rows of its own."""
        entries = self._of_role("cluster")
        if self.encoding is None or not entries:
            raise ValueError("the model has no clusters to choose from" if not entries else "the model is of no table")
        y, x = self.encoding.encode_target(rows), self.encode(rows)
        x, y = x[~np.isnan(y)], y[~np.isnan(y)]
        if not len(y):
            raise ValueError(f"no row has {self.encoding.target} to choose a cluster by")
        return int(np.argmin([self._loss(self._outputs(e, x), y) for e in entries]))

    def _of_role(self, role: str) -> list[dict[str, Any]]:
        return [m for m in self.about["models"] if m["role"] == role]

    def _entry(self, client: Optional[str], cluster: Optional[int]) -> dict[str, Any]:
        """The entry of the model that answers: as `coterie predict` chooses."""
        if cluster is not None:
            entries = self._of_role("cluster")
            if not 0 <= cluster < len(entries):
                raise ValueError(f"cluster {cluster}; the model has {len(entries)}" + (", from 0" if entries else ""))
            return entries[cluster]
        if client is None and len(self.clients) == 1:
            return self._of_role("client")[0]  # a participant's own folder
        for m in self._of_role("client"):
            if m["client"] == client:
                return m
        if self.newcomer == "cluster":
            raise ValueError(f"a newcomer gets one of {len(self._of_role('cluster'))} clusters: give cluster, or find it by choose_cluster(labelled rows)")
        if client is not None and self.clients:
            warnings.warn(f"{client!r} was not there in training: it gets the {self.newcomer} model (those who were: {', '.join(self.clients)})", stacklevel=3)
        entries = self._of_role(self.newcomer)
        if entries:
            return entries[0]
        if self.newcomer == "mean" and self.clients:
            return {"mean_of": self._of_role("client")}
        raise ValueError(f"newcomers get the {self.newcomer} model, which the folder has not")

    def _parameters(self, entry: dict[str, Any]) -> np.ndarray:
        if "mean_of" in entry:
            return np.mean([self._parameters(e) for e in entry["mean_of"]], axis=0)
        return self._tensor(entry, "tensor").reshape(-1)

    def _tensor(self, entry: dict[str, Any], key: str) -> np.ndarray:
        return self.tensors[entry.get("file", MODEL_FILE)][entry[key]]

    def _scaled(self, entry: dict[str, Any], x: np.ndarray) -> np.ndarray:
        """The inputs as the model wants them. Where clients paid for constants of their own, a model that has none gets their mean."""
        how = self.about.get("standardise", "none")
        if how == "silo" and self.encoding is not None:
            raise ValueError("the models were trained on inputs that every client scaled by its own rows (data.standardise: silo), and no model carries such constants; train with none or paid")
        owners = [entry] if entry.get("centre") else [e for e in self._of_role("client") if e.get("centre")] if how == "paid" else []
        if not owners:
            if how == "paid":
                raise ValueError("inputs are scaled by constants that each participant keeps (data.standardise: paid), and this folder has none: use a participant's out folder")
            return x
        centre, scale = (np.mean([self._tensor(e, key) for e in owners], axis=0) for key in ("centre", "scale"))
        return (x - centre) / scale

    def _outputs(self, entry: dict[str, Any], x: np.ndarray) -> np.ndarray:
        return outputs(self.about["model"], self.about["shape"], self._parameters(entry), self._scaled(entry, x))

    def _answers(self, out: np.ndarray) -> np.ndarray:
        loss, classes = self.about["loss"], self.about["shape"].get("classes") or 0
        if classes == 0:
            low, high = self.encoding.target_range if self.encoding and self.encoding.target_range else (0.0, 1.0)
            return out[:, 0] * (high - low) + low
        if out.shape[1] == 1:
            if loss in ("cross-entropy", "focal"):
                return sigmoid(out[:, 0])
            if loss == "hinge":
                return (out[:, 0] > 0).astype(float)
            return np.clip(out[:, 0], 0, 1)
        probabilities = softmax(out)
        return probabilities[:, 1] if self.task == "yes/no" else probabilities

    def _loss(self, out: np.ndarray, y: np.ndarray) -> float:
        """What models are compared by: squared errors of values, log loss of classes."""
        return float(losses(self.about["loss"], out, y).mean())


def losses(loss: str, out: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Every row's loss of the model's outputs."""
    if out.shape[1] > 1:  # an output a class: judged by the cross entropy, whatever was trained
        top = out.max(axis=1)
        return top + np.log(np.exp(out - top[:, None]).sum(axis=1)) - out[np.arange(len(y)), y.astype(int)]
    z = out[:, 0]
    if loss in ("cross-entropy", "focal"):  # models are judged by the cross entropy
        return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))) - y * z
    if loss == "hinge":
        return np.maximum(0, 1 - (2 * y - 1) * z)
    return (z - y) ** 2
