"""A round of BenchmarkHandwritingRound in torch, on one thread: 20 clients of 100 pictures
train the papers' network of FEMNIST in batches of 10, one pass each, and their models are
averaged. Without a federation's program around it: the least that such a round can take.

    OMP_NUM_THREADS=1 LD_PRELOAD=libtcmalloc_minimal.so.4 python3 femnist_torch.py

prints the median and the least processor time of 5 rounds, for pictures as torch lays them
and with channels last. Let it take turns with the Go benchmark: figures of different minutes
are not to be compared.
"""
import copy
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CLIENTS, PICTURES, BATCH, ROUNDS = 20, 100, 10, 5

torch.set_num_threads(1)
torch.manual_seed(1)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 62),
    )


def a_round(model, clients, layout):
    total = [torch.zeros_like(p) for p in model.parameters()]
    for pictures, labels in clients:
        own = copy.deepcopy(model)
        step = torch.optim.SGD(own.parameters(), lr=0.1)
        for rows in torch.randperm(PICTURES).split(BATCH):
            step.zero_grad(set_to_none=True)
            F.cross_entropy(own(pictures[rows].to(memory_format=layout)), labels[rows]).backward()
            step.step()
        with torch.no_grad():
            for sum, p in zip(total, own.parameters()):
                sum += p
    with torch.no_grad():
        for p, sum in zip(model.parameters(), total):
            p.copy_(sum / CLIENTS)


for name, layout in ("as torch lays them", torch.contiguous_format), ("channels last", torch.channels_last):
    model = network().to(memory_format=layout)
    clients = [(torch.rand(PICTURES, 1, 28, 28), torch.randint(0, 62, (PICTURES,))) for _ in range(CLIENTS)]
    took = []
    for _ in range(ROUNDS + 1):
        began = time.process_time()
        a_round(model, clients, layout)
        took.append(time.process_time() - began)
    took = sorted(took[1:])
    print(f"torch {torch.__version__}, {name}: median {took[len(took) // 2]:.3f} s, least {took[0]:.3f} s of processor time a round")
