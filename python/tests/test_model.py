"""Model folders: reading them strictly, and predicting from them."""

import json
import math
import pathlib
import struct
import tempfile
import unittest

import numpy as np

import coterie
from coterie import network, safetensors

from .folders import ENCODING, INPUTS, ROWS, write_model, write_tensors

MODELS = [
    {"file": "model.safetensors", "tensor": "hypothesis.0", "role": "global"},
    {"file": "model.safetensors", "tensor": "client.0", "role": "client", "client": "north"},
    {"file": "model.safetensors", "tensor": "client.1", "role": "client", "client": "south", "centre": "client.1.centre", "scale": "client.1.scale"},
]
TENSORS = {
    "hypothesis.0": np.arange(7) / 10, "client.0": np.ones(7), "client.1": np.arange(7.0),
    "client.1.centre": np.full(6, 0.5), "client.1.scale": np.full(6, 2.0),
}


class ModelTest(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = pathlib.Path(self.place.name)

    def model(self, tensors=TENSORS, models=MODELS, newcomer="global", **about):
        return coterie.load(write_model(self.folder, tensors, models, newcomer, **about))

    def test_logistic(self):
        m = self.model()
        by_hand = [1 / (1 + math.exp(-(sum(x) + 1))) for x in INPUTS]  # every weight 1, and the intercept
        np.testing.assert_allclose(m.predict(ROWS, client="north"), by_hand, rtol=1e-14)
        self.assertEqual(m.classify(ROWS, client="north"), ["yes"] * 3)
        scaled = [1 / (1 + math.exp(-(sum(j * (v - 0.5) / 2 for j, v in enumerate(x)) + 6))) for x in INPUTS]
        np.testing.assert_allclose(m.predict(ROWS, client="south"), scaled, rtol=1e-14)
        common = [1 / (1 + math.exp(-(sum(j / 10 * v for j, v in enumerate(x)) + 0.6))) for x in INPUTS]
        np.testing.assert_allclose(m.predict(ROWS), common, rtol=1e-14)
        self.assertEqual((m.clients, m.classes, m.inputs[3]), (["north", "south"], ["no", "yes"], "ward missing"))
        self.assertIn("2 clients", repr(m))

    def test_the_first_class_is_no(self):
        """A score above 0 speaks for the second class: its probability is what is told."""
        m = self.model({"hypothesis.0": [0.0] * 6 + [3.0]}, MODELS[:1])
        self.assertGreater(m.predict(ROWS)[0], 0.95)
        self.assertEqual(m.classify(ROWS)[0], "yes")

    def test_other_losses(self):
        tensors = {"hypothesis.0": [0.4] + [0.0] * 5 + [0.2]}
        np.testing.assert_allclose(self.model(tensors, MODELS[:1], loss="half-squared-error").predict(ROWS), [0.2, 0.6, 0.4])
        np.testing.assert_array_equal(self.model({"hypothesis.0": [-1.0] + [0.0] * 5 + [0.6]}, MODELS[:1], loss="hinge").predict(ROWS), [1, 0, 1])
        np.testing.assert_allclose(self.model(tensors, MODELS[:1], loss="focal").predict(ROWS), self.model(tensors, MODELS[:1]).predict(ROWS))
        number = dict(ENCODING, task="number", classes=None, target_range=[10, 30])
        m = self.model(tensors, MODELS[:1], encoding=number, loss="half-squared-error", shape={"features": 6, "classes": 0, "height": 0, "width": 0})
        np.testing.assert_allclose(m.predict(ROWS), [14, 22, 18])
        with self.assertRaisesRegex(ValueError, "no names of classes"):
            m.classify(ROWS)

    def test_classes_in_their_order(self):
        encoding = dict(ENCODING, task="classes", classes=["a", "b", "c"])
        theta = np.zeros(21)
        theta[18:] = [0, math.log(2), math.log(5)]
        m = self.model({"hypothesis.0": theta}, MODELS[:1], encoding=encoding, model={"kind": "network", "layers": [{"kind": "linear", "units": 3}]},
                       shape={"features": 6, "classes": 3, "height": 0, "width": 0})
        np.testing.assert_allclose(m.predict(ROWS), [[1 / 8, 2 / 8, 5 / 8]] * 3)
        self.assertEqual(m.classify(ROWS), ["c"] * 3)
        # Softmax regression has the same outputs class by class, each with its intercept last.
        theta = np.zeros((3, 7))
        theta[:, 6] = [0, math.log(2), math.log(5)]
        theta[1, 0] = 2.0
        m = self.model({"hypothesis.0": theta.ravel()}, MODELS[:1], encoding=encoding, shape={"features": 6, "classes": 3, "height": 0, "width": 0})
        odds = np.exp(np.stack([np.zeros(3), math.log(2) + 2 * m.encoding.encode(ROWS)[:, 0], np.full(3, math.log(5))], axis=1))
        np.testing.assert_allclose(m.predict(ROWS), odds / odds.sum(axis=1, keepdims=True))

    def test_newcomers(self):
        clients = [dict(MODELS[1]), dict(MODELS[1], tensor="client.2", client="west")]
        m = self.model({"client.0": np.zeros(7), "client.2": np.ones(7)}, clients, "mean")
        np.testing.assert_allclose(m.parameters(), [0.5] * 7)
        np.testing.assert_allclose(m.predict(ROWS)[0], 1 / (1 + math.exp(-1)))
        with self.assertWarnsRegex(UserWarning, "'east' was not there.*mean model.*north, west"):
            np.testing.assert_array_equal(m.predict(ROWS, client="east"), m.predict(ROWS))
        two = [MODELS[2], dict(MODELS[2], tensor="client.0", client="west", centre="client.0.centre", scale="client.0.scale")]
        tensors = dict(TENSORS, **{"client.0.centre": np.full(6, 1.5), "client.0.scale": np.full(6, 4.0)})
        m = self.model(tensors, two, "mean", standardise="paid")
        by_hand = [1 / (1 + math.exp(-(sum((j + 1) / 2 * (v - 1) / 3 for j, v in enumerate(x)) + 3.5))) for x in INPUTS]
        np.testing.assert_allclose(m.predict(ROWS), by_hand)
        with self.assertRaisesRegex(ValueError, "this folder has none"):
            self.model({"hypothesis.0": np.ones(7)}, MODELS[:1], standardise="paid").predict(ROWS)
        with self.assertRaisesRegex(ValueError, "standardise: silo"):
            self.model(standardise="silo").predict(ROWS)
        with self.assertRaisesRegex(ValueError, "client.0.scale is not positive"):
            self.model(dict(tensors, **{"client.0.scale": np.zeros(6)}), two, "mean")
        clusters = [{"tensor": "hypothesis.%d" % i, "role": "cluster", "cluster": i} for i in range(2)]
        m = self.model({"hypothesis.0": [0.0] * 6 + [-2.0], "hypothesis.1": [0.0] * 6 + [2.0]}, clusters, "cluster")
        with self.assertRaisesRegex(ValueError, "one of 2 clusters.*choose_cluster"):
            m.predict(ROWS)
        for answer, fits in (("yes", 1), ("no", 0)):
            self.assertEqual(m.choose_cluster([dict(r, readmitted=answer) for r in ROWS]), fits)
        self.assertEqual(m.classify(ROWS, cluster=0), ["no"] * 3)
        with self.assertRaisesRegex(ValueError, "cluster 2; the model has 2"):
            m.predict(ROWS, cluster=2)
        self.assertEqual(m.choose_cluster([dict(ROWS[0], readmitted=""), dict(ROWS[1], readmitted="no")]), 0)
        with self.assertRaisesRegex(ValueError, "no row has readmitted"):
            m.choose_cluster([dict(r, readmitted="") for r in ROWS])

    def test_a_participants_own_folder(self):
        own = {"file": "personal.safetensors", "tensor": "personal.0", "role": "client", "client": "north"}
        digest = write_tensors(self.folder / "personal.safetensors", {"personal.0": np.ones(7)})
        m = self.model({"hypothesis.0": np.zeros(7)}, [MODELS[0], own], personal_sha256=digest)
        np.testing.assert_array_equal(m.parameters(client="north"), np.ones(7))
        np.testing.assert_array_equal(m.parameters(), np.ones(7))  # nobody named is its owner

    def test_pictures(self):
        m = self.model({"hypothesis.0": np.eye(4).reshape(-1)}, MODELS[:1], encoding=None, loss="cross-entropy",
                       model={"kind": "network", "layers": [{"kind": "linear", "units": 4, "no_bias": True}]}, shape={"features": 0, "classes": 4, "height": 2, "width": 2}, classes=["a", "b", "c", "d"])
        self.assertEqual(m.classify(np.eye(4).reshape(4, 2, 2)), ["a", "b", "c", "d"])
        self.assertEqual(m.predict(np.eye(4).reshape(4, 2, 2)).argmax(axis=1).tolist(), [0, 1, 2, 3])
        with self.assertRaisesRegex(ValueError, "4 values each"):
            m.predict(np.zeros((3, 5)))

    def test_wrong_folders_are_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "no model.json"):
            coterie.load(self.folder)
        self.model()
        about = json.loads((self.folder / "model.json").read_text())
        for change, words in (
            ({"format": "coterie model 9"}, "coterie model 9"), ({"model_sha256": "00"}, "another SHA-256"),
            ({"models": [dict(MODELS[0], tensor="hypothesis.7")]}, "hypothesis.7 is not in"),
        ):
            (self.folder / "model.json").write_text(json.dumps(dict(about, **change)))
            with self.assertRaisesRegex(ValueError, words):
                coterie.load(self.folder)

    def test_wrong_layers_are_refused(self):
        linear = {"kind": "linear", "units": 1}
        for layers, words in (([linear, linear], "more than the 7"), ([dict(linear, no_bias=True)], "uses 6 of its 7"), ([{"kind": "transposed-conv"}], "'transposed-conv' is not known here"), ([], "lists no layers")):
            with self.assertRaisesRegex(ValueError, words):
                self.model(model={"kind": "network", "layers": layers}).predict(ROWS)
        with self.assertRaisesRegex(ValueError, "'forest'"):
            self.model(model={"kind": "forest"}).predict(ROWS)


class SafetensorsTest(unittest.TestCase):
    def read(self, raw):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.safetensors"
            path.write_bytes(raw)
            return safetensors.read(path)

    @staticmethod
    def file(header, data):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def test_both_types(self):
        header = {"__metadata__": {"a": "b"}, "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "y": {"dtype": "F64", "shape": [1, 1], "data_offsets": [8, 16]}}
        tensors, metadata, _ = self.read(self.file(header, struct.pack("<ffd", 1, 2, 3)))
        self.assertEqual((tensors["x"].tolist(), tensors["y"].tolist(), metadata), ([1, 2], [[3]], {"a": "b"}))

    def test_whatever_is_wrong_is_refused(self):
        one = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
        number = struct.pack("<d", 1)
        for raw in (
            b"", b"1234567", struct.pack("<Q", 1 << 40), self.file({"x": one}, b""), self.file({"x": one}, number + b"x"),
            self.file({"x": dict(one, dtype="I64")}, number), self.file({"x": dict(one, shape=[2])}, number), self.file({"x": dict(one, shape=[-1])}, number),
            self.file({"x": dict(one, data_offsets=[8, 16])}, number * 2), self.file({"x": one, "y": one}, number), self.file([], b""),
            self.file({"x": 3}, number), self.file({"x": {}}, number), self.file(b'{"x": 1, "x": 2}', b""), self.file({"x": one}, struct.pack("<d", math.nan)),
            self.file({"x": dict(one, data_offsets=[0])}, number), self.file({"x": dict(one, shape="1")}, number), self.file(b"{nonsense", b""),
        ):
            with self.assertRaises(ValueError, msg=raw):
                self.read(raw)


class NetworkTest(unittest.TestCase):
    def test_by_hand(self):
        x = np.arange(16.0).reshape(1, 16)
        shape = {"height": 4, "width": 4}
        ones = {"kind": "network", "layers": [{"kind": "conv", "channels": 1, "kernel": 2, "stride": 2, "no_bias": True}]}
        np.testing.assert_array_equal(network.outputs(ones, shape, np.ones(4), x), [[10, 18, 42, 50]])
        for kind, want in (("max-pool", [5, 7, 13, 15]), ("mean-pool", [2.5, 4.5, 10.5, 12.5])):
            np.testing.assert_array_equal(network.outputs({"kind": "network", "layers": [{"kind": kind, "kernel": 2}]}, shape, np.empty(0), x), [want])
        chain = {"kind": "network", "layers": [{"kind": "residual", "inner": [{"kind": "relu"}]}, {"kind": "leaky-relu"}, {"kind": "tanh"}, {"kind": "sigmoid"}, {"kind": "flatten"}]}
        want = [1 / (1 + math.exp(-math.tanh(v))) for v in (-0.01, 4)]
        np.testing.assert_allclose(network.outputs(chain, {}, np.empty(0), np.array([[-1.0, 2.0]])), [want])
        norm = {"kind": "network", "layers": [{"kind": "layer-norm"}]}
        np.testing.assert_allclose(network.outputs(norm, {}, np.array([2.0, 3, 1, 1]), np.array([[0.0, 4]])), [[-1, 4]], atol=1e-4)
        words = {"kind": "network", "layers": [{"kind": "embedding", "vocabulary": 2, "units": 1}]}
        np.testing.assert_array_equal(network.outputs(words, {}, np.array([5.0, 7]), np.array([[1.0, 0, 1]])), [[7, 5, 7]])
        for row in ([2.0], [-1.0], [0.5], [math.nan]):
            with self.assertRaisesRegex(ValueError, "no word; allowed: whole numbers from 0 to 1"):
                network.outputs(words, {}, np.array([5.0, 7]), np.array([row]))
