"""The plain step of BenchmarkTransformerStep in torch, on one thread: forward and backward of
the quick membership study's language model, 16 rows of 64 words out of 2,048.

    OPENBLAS_NUM_THREADS=1 LD_PRELOAD=libtcmalloc_minimal.so.4 python3 transformer_torch.py

prints the median and the least processor time of 30 steps. Let it take turns with the Go
benchmark: figures of different minutes are not to be compared.
"""
import math
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WORDS, PLACES, WIDTH, BLOCKS, HEADS, ROWS = 2048, 64, 128, 2, 4, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.register_buffer("later", torch.full((PLACES, PLACES), float("-inf")).triu(1))

    def forward(self, x):
        heads = lambda z: z.view(ROWS, PLACES, HEADS, WIDTH // HEADS).transpose(1, 2)
        q, k, v = map(heads, self.look(self.before(x)).split(WIDTH, 2))
        seen = (q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + self.later).softmax(3)
        x = x + self.out((seen @ v).transpose(1, 2).reshape(ROWS, PLACES, WIDTH))
        return x + self.narrow(F.gelu(self.wide(self.between(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        nn.init.normal_(self.words.weight, 0, 0.02)
        self.places = nn.Parameter(0.02 * torch.randn(PLACES, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.last = nn.LayerNorm(WIDTH)

    def forward(self, text):
        x = self.words(text) + self.places
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.words.weight)


torch.set_num_threads(1)
torch.manual_seed(1)
model, text = Transformer(), torch.randint(0, WORDS, (ROWS, PLACES))
took = []
for _ in range(35):
    began = time.process_time()
    model.zero_grad(set_to_none=True)
    F.cross_entropy(model(text)[:, :-1].reshape(-1, WORDS), text[:, 1:].reshape(-1)).backward()
    took.append(1e3 * (time.process_time() - began))
took = sorted(took[5:])
print(f"torch {torch.__version__}, {sum(p.numel() for p in model.parameters())} parameters: {took[15]:.1f} cpu-ms a step, {took[0]:.1f} at best")
