"""Runs started from Python: by a stand-in for the program, and by the program itself where COTERIE_BINARY names it."""

import math
import os
import pathlib
import stat
import sys
import tempfile
import unittest
from unittest import mock

import coterie


class StandInTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def program(self, body):
        path = self.folder / "coterie"
        path.write_text(f"#!{sys.executable}\nimport sys, json\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return mock.patch.dict(os.environ, COTERIE_BINARY=str(path))

    def test_settings_become_flags_and_keys_attributes(self):
        with self.program("print(json.dumps({'args': sys.argv[1:], 'metrics': {'loss': 0.5}, 'privacy': {'epsilon': 'inf'}, 'participants': [{'name': 'a'}], 'directory': '/nowhere'}))"):
            r = coterie.run("run.yaml", out=self.folder / "out", seed=3, algorithm__rounds=20, privacy__noise="exact", model__intercept=True)
        self.assertEqual(r.args, ["run", "run.yaml", "--output", "json", "--quiet", "--out", str(self.folder / "out"), "--seed", "3",
                                  "--set", "algorithm.rounds=20", "--set", "privacy.noise=exact", "--set", "model.intercept=true"])
        self.assertEqual((r.metrics.loss, r.privacy.epsilon, r.participants[0].name, r["metrics"]), (0.5, math.inf, "a", {"loss": 0.5}))
        with self.assertRaisesRegex(AttributeError, "no colour; it has args, metrics"):
            r.colour
        with self.assertRaises(FileNotFoundError):
            r.model()

    def test_faults_become_exceptions(self):
        told = "{'error': 'the file is wrong', 'faults': [{'path': 'algorithm.rounds', 'line': 3, 'column': 1, 'message': 'is 0'}]}"
        for code, kind in ((1, coterie.RunError), (2, coterie.RunError), (3, coterie.Refused)):
            with self.program(f"print('a remark', file=sys.stderr); print(json.dumps({told}), file=sys.stderr); sys.exit({code})"):
                with self.assertRaisesRegex(coterie.RunError, "the file is wrong") as caught:
                    coterie.run("run.yaml")
            self.assertEqual((type(caught.exception), caught.exception.code, caught.exception.faults[0]["path"]), (kind, code, "algorithm.rounds"))
        with self.program("print('Segmentation fault', file=sys.stderr); sys.exit(1)"):
            with self.assertRaisesRegex(coterie.RunError, "Segmentation fault"):
                coterie.run("run.yaml")

    def test_finding_the_program(self):
        with self.program("") as _:
            self.assertEqual(coterie.find_binary(), str(self.folder / "coterie"))
        with mock.patch.dict(os.environ, PATH=str(self.folder)):
            os.environ.pop("COTERIE_BINARY", None)
            self.assertEqual(coterie.find_binary(), str(self.folder / "coterie"))
            os.environ["PATH"] = "/nowhere"
            with self.assertRaisesRegex(FileNotFoundError, "COTERIE_BINARY"):
                coterie.find_binary()
            os.environ["COTERIE_BINARY"] = "/nowhere/coterie"
            with self.assertRaisesRegex(FileNotFoundError, "/nowhere/coterie"):
                coterie.find_binary()
