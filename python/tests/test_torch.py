"""The PyTorch adapter: part of the second tier, ./scripts/test torch."""

import unittest

import numpy as np

try:
    import torch
    from torch import nn

    from coterie.torch_trainer import TorchTrainer
except ImportError as err:
    raise unittest.SkipTest(f"no PyTorch: {err}") from err

from coterie import network
from coterie.trainer import Table

from .test_trainer import ask, table


def examples(*shape, classes=3):
    draw = np.random.default_rng(2)
    return draw.normal(size=shape), draw.integers(0, classes, shape[0])


def dense(inputs=5, outputs=3):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(inputs, 4), nn.Tanh(), nn.Linear(4, outputs))


class TorchTest(unittest.TestCase):
    def test_gradients_by_differences(self):
        """The gradient of every example is that of its own loss; both ways to compute it agree."""
        for loss, outputs in (("cross-entropy", 3), ("cross-entropy", 1), ("squared-error", 1), ("half-squared-error", 1)):
            x, y = examples(12, 5, classes=max(2, outputs))
            ways = [TorchTrainer(dense(5, outputs), x, y, loss, per_example=way) for way in ("vmap", "loop")]
            theta, some = ways[0].start(), np.array([7, 2, 11])
            got = [t.gradients(theta, some) for t in ways]
            np.testing.assert_allclose(got[0], got[1], atol=1e-6)
            factor = 0.5 if loss == "half-squared-error" else 1
            for j in range(ways[0].parameters):
                step = np.zeros_like(theta)
                step[j] = 1e-2
                slope = (ways[0].losses(theta + step, some) - ways[0].losses(theta - step, some)) / 2e-2
                np.testing.assert_allclose(got[0][:, j], factor * slope, atol=2e-3)  # float32, and the third derivative

    def test_one_layer_is_table(self):
        """A single linear layer has, to rounding, the gradients of coterie.trainer.Table."""
        t = table()
        own = TorchTrainer(nn.Linear(6, 1), t.x, t.y, "cross-entropy")
        theta, some = np.linspace(-1, 1, 7), np.array([9, 0, 4])
        np.testing.assert_allclose(own.gradients(theta, some), t.gradients(theta, some), atol=1e-6)
        np.testing.assert_allclose(own.losses(theta, some), t.losses(theta, some), atol=1e-6)
        self.assertEqual(own.loss(theta)[1], t.loss(theta)[1])
        np.testing.assert_allclose(own.train(theta, 3, 0.5, 0, "cross-entropy"), Table.train(t, theta, 3, 0.5, 0, "cross-entropy"), atol=1e-5)
        self.assertIsInstance(t, Table)

    def test_parameters_lie_as_coteries(self):
        """Networks of dense layers and of convolutions give what the same layers give in Coterie."""
        x, y = examples(6, 5)
        module = dense()
        t = TorchTrainer(module, x, y, "cross-entropy")
        layers = [{"kind": "linear", "units": 4}, {"kind": "tanh"}, {"kind": "linear", "units": 3}]
        self.same(module, t, x, {"kind": "network", "layers": layers}, {}, x)
        x, y = examples(6, 2, 8, 8)

        class Flat(nn.Module):
            def forward(self, v):
                return v.permute(0, 2, 3, 1).flatten(1)

        module = nn.Sequential(nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.ReLU(), nn.MaxPool2d(2), Flat(), nn.Linear(12, 3))
        t = TorchTrainer(module, x, y, "cross-entropy")
        layers = [{"kind": "conv", "channels": 3, "kernel": 3, "stride": 2, "padding": 1}, {"kind": "relu"}, {"kind": "max-pool", "kernel": 2}, {"kind": "linear", "units": 3}]
        self.same(module, t, x, {"kind": "network", "layers": layers}, {"height": 8, "width": 8}, x.transpose(0, 2, 3, 1).reshape(6, -1))

    def same(self, module, trainer, inputs, model, shape, x):
        theta = np.random.default_rng(4).normal(size=trainer.parameters)
        trainer._load(theta)
        np.testing.assert_allclose(trainer.start(), theta, rtol=1e-6)
        with torch.no_grad():
            got = module(torch.as_tensor(inputs, dtype=torch.float32)).numpy()
        np.testing.assert_allclose(got, network.outputs(model, shape, theta, x), atol=1e-4)

    def test_what_mixes_examples_is_refused(self):
        x, y = examples(6, 5)
        with self.assertRaisesRegex(ValueError, "1 .BatchNorm1d. mixes the examples"):
            TorchTrainer(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4)), x, y, "cross-entropy")
        with self.assertRaisesRegex(ValueError, "the loss hinge is not known"):
            TorchTrainer(dense(), x, y, "hinge")
        with self.assertRaisesRegex(ValueError, "6 inputs, but 5 targets"):
            TorchTrainer(dense(), x, y[:5], "cross-entropy")

    def test_served(self):
        x, y = examples(12, 5)
        t = TorchTrainer(nn.Sequential(nn.Dropout(0.5), dense()), x, y, "cross-entropy")
        theta = t.start()
        answers = ask(t, ({"op": "hello"}, []), ({"op": "gradients", "examples": [3]}, theta), ({"op": "gradients", "examples": [0, 3]}, theta), ({"op": "loss"}, theta),
                      ({"op": "train", "epochs": 20, "step": 0.5, "loss": "cross-entropy"}, theta))
        self.assertEqual(answers[0][0]["parameters"], 39)
        np.testing.assert_allclose(answers[1][1], answers[2][1][39:], atol=1e-6)  # alone as in a batch
        self.assertLess(t.loss(theta + answers[4][1])[0], answers[3][0]["loss"])
