"""A linear model trained on a CSV file: python3 train.py ward.csv

The last column is the target, the others are the features. Replace the class by
your own model; the protocol is in coterie_trainer.py.
"""

import csv
import random
import sys

import coterie_trainer


class Linear:
    def __init__(self, path):
        with open(path, newline="") as f:
            rows = list(csv.reader(f))[1:]  # the first line names the columns
        self.rows = [[float(v) for v in row] for row in rows]
        self.parameters = len(self.rows[0]) - 1
        self.examples = len(self.rows)

    def miss(self, theta, row):
        """Prediction - target."""
        return sum(t * x for t, x in zip(theta, row)) - row[-1]

    def loss(self, theta):
        """Root mean squared error."""
        return (sum(self.miss(theta, row) ** 2 for row in self.rows) / self.examples) ** 0.5

    def losses(self, theta, examples):
        return [self.miss(theta, self.rows[i]) ** 2 for i in examples]

    def gradient(self, theta, row):
        """Of the squared error of one row."""
        slope = 2 * self.miss(theta, row)
        return [slope * x for x in row[:-1]]

    def gradients(self, theta, examples):
        return [self.gradient(theta, self.rows[i]) for i in examples]

    def train(self, theta, epochs, step, batch, loss):
        if loss != "squared-error":
            raise ValueError("this trainer follows squared-error, not " + loss)
        now = list(theta)
        for _ in range(epochs):
            order = random.sample(range(self.examples), self.examples)
            for first in range(0, self.examples, batch or self.examples):
                some = order[first:first + (batch or self.examples)]
                total = [0.0] * self.parameters
                for i in some:
                    for j, g in enumerate(self.gradient(now, self.rows[i])):
                        total[j] += g
                for j, g in enumerate(total):
                    now[j] -= step * g / len(some)
        return [a - b for a, b in zip(now, theta)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 train.py FILE.csv")
    coterie_trainer.serve(Linear(sys.argv[1]))
