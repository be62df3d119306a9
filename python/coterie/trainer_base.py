"""What trainers share: descent from per-example gradients."""

from __future__ import annotations

from typing import Any, Tuple, Union

import numpy as np


class Trainer:
    """A trainer made of two methods, losses and gradients; train and loss follow from them.

    Set parameters, examples, and follows: the loss whose gradients these are, by its
    name in run files.
    """

    parameters: int
    examples: int
    follows = "squared-error"

    def losses(self, theta: np.ndarray, examples: np.ndarray) -> Any:
        """The loss of every listed example."""
        raise NotImplementedError("this trainer has no losses")

    def gradients(self, theta: np.ndarray, examples: np.ndarray) -> Any:
        """The gradient of every listed example, each from that example alone."""
        raise NotImplementedError("this trainer has no gradients")

    def loss(self, theta: np.ndarray) -> Union[float, Tuple[float, int]]:
        """The mean loss over all examples, of squared errors its root: as Coterie compares models."""
        mean = float(np.mean(np.asarray(self.losses(theta, np.arange(self.examples)))))
        return mean**0.5 if self.follows.endswith("squared-error") else mean

    def train(self, theta: np.ndarray, epochs: int, step: float, batch: int, loss: str) -> np.ndarray:
        """Plain descent along mean gradients; batches are drawn from system entropy."""
        if loss != self.follows:
            raise ValueError(f"this trainer follows {self.follows}, not {loss}")
        now, draw = np.array(theta, dtype=float), np.random.default_rng()
        batch = batch or self.examples
        for _ in range(epochs):
            order = np.arange(self.examples) if batch >= self.examples else draw.permutation(self.examples)
            for first in range(0, self.examples, batch):
                now -= step * np.asarray(self.gradients(now, order[first : first + batch])).mean(axis=0)
        return now - theta
