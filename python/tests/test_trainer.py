"""The trainer protocol, and the trainer on tables."""

import io
import json
import struct
import unittest

import numpy as np

import coterie
from coterie import trainer
from coterie.table_trainer import row_numbers

from .folders import ENCODING

SETTINGS = {
    "format": "coterie encoding 1", "encoding": ENCODING, "shape": {"features": 6, "classes": 2}, "model": {"kind": "linear", "intercept": True},
    "loss": "cross-entropy", "seed": 7, "test_share": 0.25, "test": None, "train_limit": 0, "target_missing": "refuse", "standardise": "none",
}


def rows(count=200):
    draw = np.random.default_rng(3)
    return {
        "age": draw.uniform(0, 130, count).round(1), "ward": draw.choice(["A", "B", "C", ""], count), "smoker": draw.choice(["yes", "no"], count),
        "bmi": draw.choice(["", "20", "31.5"], count), "readmitted": draw.choice(["no", "yes"], count), "hospital": draw.choice(["north", "south"], count),
        "split": draw.choice(["train", "test"], count),
    }


def table(client="north", client_column=None, data=None, **settings):
    return trainer.Table(trainer.Settings(dict(SETTINGS, **settings)), data or rows(), client, client_column)


def ask(served, *requests):
    """What a trainer answers: (header, values) each."""
    asked = b""
    for i, (header, values) in enumerate(requests):
        text, raw = json.dumps(dict(header, id=i)).encode(), np.asarray(values, dtype="<f4").tobytes()
        asked += struct.pack("<4sIQ", b"CTR1", len(text), len(raw)) + text + raw
    out = io.BytesIO()
    trainer.serve(served, io.BytesIO(asked), out)
    answers, raw = [], out.getvalue()
    while raw:
        magic, header_size, values_size = struct.unpack("<4sIQ", raw[:16])
        assert magic == b"CTR1"
        answers.append((json.loads(raw[16 : 16 + header_size]), np.frombuffer(raw[16 + header_size : 16 + header_size + values_size], dtype="<f4")))
        raw = raw[16 + header_size + values_size :]
    return answers


class ProtocolTest(unittest.TestCase):
    def test_every_request(self):
        t = table()
        theta = np.linspace(-1, 1, 7).astype("f4")
        answers = ask(t, ({"op": "hello"}, []), ({"op": "loss"}, theta), ({"op": "losses", "examples": [5, 0]}, theta),
                      ({"op": "gradients", "examples": [5, 0]}, theta), ({"op": "train", "epochs": 2, "step": 0.5, "loss": "cross-entropy"}, theta))
        self.assertEqual(answers[0][0], {"id": 0, "protocol": 1, "parameters": 7, "examples": t.examples})
        self.assertEqual(set(answers[1][0]), {"id", "loss", "wrong"})
        np.testing.assert_allclose(answers[2][1], t.losses(theta.astype(float), np.array([5, 0])), rtol=1e-6)
        np.testing.assert_allclose(answers[3][1].reshape(2, 7), t.gradients(theta.astype(float), np.array([5, 0])), rtol=1e-6)
        now = theta.astype(float)
        for _ in range(2):
            now = now - 0.5 * t.gradients(now, np.arange(t.examples)).mean(axis=0)
        np.testing.assert_allclose(answers[4][1], now - theta, atol=1e-6)

    def test_failures_are_answers(self):
        class Odd(trainer.Trainer):
            parameters, examples = 2, 3

            def gradients(self, theta, examples):
                return np.zeros(5)

        theta = [0, 0]
        errors = [header["error"] for header, values in ask(
            Odd(), ({"op": "gradients", "examples": [0]}, theta), ({"op": "losses", "examples": [0]}, theta), ({"op": "dance"}, theta),
            ({"op": "train", "loss": "rmse"}, theta), ({"op": "loss"}, [1]))]
        for error, words in zip(errors, ("shape (5,), not (1, 2)", "no losses", "does not know dance", "follows squared-error, not rmse", "a model of 1 parameters")):
            self.assertIn(words, error)

    def test_what_is_no_request_ends_it(self):
        with self.assertRaisesRegex(ValueError, "CTR1"):
            trainer.serve(table(), io.BytesIO(b"x" * 16), io.BytesIO())


class GradientTest(unittest.TestCase):
    """Every example's gradient is the slope of that example's own loss."""

    def check(self, t):
        draw = np.random.default_rng(5)
        theta, some = draw.normal(size=t.parameters), np.array([4, 0, 9])
        gradients, factor = t.gradients(theta, some), 0.5 if t.follows == "half-squared-error" else 1
        for j in range(t.parameters):
            up, down = theta.copy(), theta.copy()
            up[j] += 1e-6
            down[j] -= 1e-6
            slope = (t.losses(up, some) - t.losses(down, some)) / 2e-6
            np.testing.assert_allclose(gradients[:, j], factor * slope, atol=1e-6)

    def test_by_differences(self):
        for loss in ("cross-entropy", "hinge", "squared-error", "half-squared-error"):
            with self.subTest(loss):
                self.check(table(loss=loss))
        number = dict(ENCODING, task="number", classes=None, target_range=[0, 50], target="bmi", columns=ENCODING["columns"][:3], inputs=ENCODING["inputs"][:5])
        data = dict(rows(), bmi=np.arange(200) % 50)
        self.check(table(encoding=number, loss="half-squared-error", data=data))
        three = dict(ENCODING, task="classes", classes=["A", "B", "C"], target="ward", columns=[ENCODING["columns"][0], ENCODING["columns"][2]], inputs=["age", "smoker"])
        data = dict(rows(), ward=["ABC"[i % 3] for i in range(200)])
        self.check(table(encoding=three, data=data, model={"kind": "network", "layers": [{"kind": "linear", "units": 3}]}))

    def test_alone_as_in_a_batch(self):
        t = table()
        theta = np.linspace(-1, 1, 7)
        together = t.gradients(theta, np.array([3, 1, 2]))
        for k, i in enumerate([3, 1, 2]):
            np.testing.assert_allclose(t.gradients(theta, np.array([i]))[0], together[k], rtol=1e-12)


class SplitTest(unittest.TestCase):
    def test_a_row_decides_alone(self):
        """What is held out does not change when other rows come or go, and changes with the key."""
        data = rows()
        whole = table(data=data).rows
        self.assertTrue(20 < len(whole.held) < 80)  # 200 rows, share 0.25: below 20 or above 80 in 1 of 10^6 draws
        less = table(data={name: cells[1:] for name, cells in data.items()}).rows
        self.assertEqual([i - 1 for i in whole.held if i > 0], less.held.tolist())
        for other in (table("south"), table(seed=8)):
            self.assertNotEqual(whole.held.tolist(), other.rows.held.tolist())

    def test_known_numbers(self):
        """As Go's data.Client.numbers has them (cmd/coterie, TestPythonHoldsOutTheSameRows compares whole tables)."""
        x, y = np.array([[0.5, -1.0]]), np.array([1.0])
        self.assertEqual(row_numbers(x, y, 7, "hold out", "north"), [2392987750933409877])

    def test_limit_test_column_and_leave_out(self):
        self.assertEqual(table(train_limit=11).examples, 11)
        self.assertTrue(set(table(train_limit=11).rows.kept) < set(table().rows.kept))
        data = rows()
        by_column = table(test={"column": "split", "value": "test"}, test_share=0).rows
        self.assertEqual(by_column.held.tolist(), np.flatnonzero(data["split"] == "test").tolist())
        self.assertEqual(len(table(test_share=0).rows.held), 0)
        self.assertEqual(table("north", "hospital", test_share=0).examples, int((data["hospital"] == "north").sum()))
        gaps = dict(data, readmitted=["", "yes"] * 100)
        self.assertEqual(table(data=gaps, target_missing="leave-out", test_share=0).examples, 100)
        with self.assertRaisesRegex(coterie.Faults, "the target is missing"):
            table(data=gaps)

    def test_what_it_does_not_know_is_refused(self):
        for settings, words in (
            ({"format": "x"}, "data encoding RUNFILE"), ({"standardise": "silo"}, "standardise is silo"), ({"loss": "rmse"}, "loss rmse"),
            ({"model": {"kind": "network", "layers": [{"kind": "linear", "units": 2}, {"kind": "relu"}]}}, "torch_trainer"), ({"test": {"column": "gone", "value": "x"}}, "gone"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                table(**settings)
        with self.assertRaisesRegex(ValueError, "no rows of 'east'"):
            table("east", "hospital")


class LossTest(unittest.TestCase):
    def test_loss_and_wrong_answers(self):
        t = table()
        loss, wrong = t.loss(np.zeros(7))
        self.assertAlmostEqual(loss, np.log(2))
        self.assertEqual(wrong, int(t.y.sum()))  # a score of 0 is a no
        loss, wrong = t.loss(np.array([0.0] * 6 + [9]))
        self.assertEqual(wrong, int((1 - t.y).sum()))


