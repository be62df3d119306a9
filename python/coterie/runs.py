"""Starting `coterie run` and taking its result as an object."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Optional, Union

from .model import Model, load


class RunError(RuntimeError):
    """What `coterie` says went wrong; faults are those of the run file: path, line, column, message."""

    def __init__(self, message: str, faults: list[dict[str, Any]], code: int):
        super().__init__(message)
        self.faults, self.code = faults, code


class Refused(RunError):
    """The run was refused for privacy: a budget would have been exceeded."""


def find_binary() -> str:
    """The program: what COTERIE_BINARY names, or `coterie` on the PATH."""
    named = os.environ.get("COTERIE_BINARY")
    if named:
        if not os.access(named, os.X_OK):
            raise FileNotFoundError(f"COTERIE_BINARY is {named}, which is no program")
        return named
    found = shutil.which("coterie")
    if not found:
        raise FileNotFoundError("no program coterie on the PATH; build it (go build ./cmd/coterie) and set COTERIE_BINARY")
    return found


class RunResult:
    """A finished run. Every key of `coterie run --output json` (docs/json.md) is an attribute.

    result.metrics.accuracy.value is result["metrics"]["accuracy"]["value"].
    """

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"the result has no {name}; it has {', '.join(self._values) if not name.startswith('_') else ''}")
        return _wrap(self._values[name])

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        return f"<coterie result: {', '.join(self._values)}>"

    def model(self) -> Model:
        """The models that the run has left in its directory."""
        return load(self._values["directory"])


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return RunResult(value)
    if isinstance(value, list):
        return [_wrap(v) for v in value]
    return float("inf") if value == "inf" else value


def run(file: Union[str, os.PathLike[str]], out: Optional[Union[str, os.PathLike[str]]] = None, seed: Optional[int] = None,
        data: Optional[Union[str, os.PathLike[str]]] = None, **settings: Any) -> RunResult:
    """Trains from a run file, in simulation, and waits for the end.

    out is the run directory (a new one under coterie-runs by default), data the folder
    of built-in real data. Further settings are values of the run file, with two
    underscores for the point: algorithm__rounds=20 is --set algorithm.rounds=20.
    """
    command = [find_binary(), "run", os.fspath(file), "--output", "json", "--quiet"]
    for flag, value in (("--out", out), ("--seed", seed), ("--data", data)):
        if value is not None:
            command += [flag, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    for key, value in settings.items():
        command += ["--set", f"{key.replace('__', '.')}={json.dumps(value) if not isinstance(value, str) else value}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        try:
            told = json.loads(done.stderr.strip().splitlines()[-1])
            message, faults = told["error"], told["faults"]
        except (ValueError, KeyError, IndexError, TypeError):
            message, faults = done.stderr.strip() or f"{command[0]} ended with {done.returncode}", []
        raise (Refused if done.returncode == 3 else RunError)(message, faults, done.returncode)
    return RunResult(json.loads(done.stdout))
