"""A linear model trained on a CSV file: python3 train.py ward.csv

The last column is the target, the others are the features. Replace the class by your
own model; the package coterie (pip install ./python) has the protocol.
"""

import sys

import numpy

from coterie.trainer import Trainer, serve


class Linear(Trainer):
    def __init__(self, path):
        rows = numpy.loadtxt(path, delimiter=",", skiprows=1)  # the first line names the columns
        self.x, self.y = rows[:, :-1], rows[:, -1]
        self.examples, self.parameters = self.x.shape

    def losses(self, theta, examples):
        return (self.x[examples] @ theta - self.y[examples]) ** 2

    def gradients(self, theta, examples):
        return 2 * (self.x[examples] @ theta - self.y[examples])[:, None] * self.x[examples]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 train.py FILE.csv")
    serve(Linear(sys.argv[1]))
