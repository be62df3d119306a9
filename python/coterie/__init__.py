"""Coterie in Python: load a model and predict, write a trainer, start a run.

    model = coterie.load("coterie-runs/…")
    model.predict(coterie.read_csv("new.csv"), client="north")

Only numpy is needed. coterie.trainer is imported by its name, and so is
coterie.torch_trainer, which needs PyTorch.
"""

from .encoding import Encoding, Faults
from .model import Model, load
from .runs import Refused, RunError, RunResult, find_binary, run
from .table import read_csv

__all__ = ["Encoding", "Faults", "Model", "Refused", "RunError", "RunResult", "find_binary", "load", "read_csv", "run"]
__version__ = "0.1.0"
