"""A tiny GPT-2 in NumPy, written from the paper and not from Coterie: writes weights in
GPT-2's names as FOLDER/model.safetensors, FOLDER/config.json, and what it makes of some
words as FOLDER/logits.json. Usage: python3 gpt2_twin.py FOLDER"""

import json
import pathlib
import struct
import sys

import numpy as np

VOCABULARY, PLACES, WIDTH, HEADS, BLOCKS = 20, 8, 12, 3, 2
EPSILON = 1e-5
ROWS = [[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8], [18, 0, 0, 7, 18, 1]]


class Numbers:
    """The same numbers wherever they are drawn: a linear congruential generator."""

    def __init__(self):
        self.state = 2019

    def draw(self, shape, size, middle=0.0):
        out = []
        for _ in range(int(np.prod(shape))):
            self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
            out.append(middle + size * ((self.state >> 33) / 2**30 - 1))
        return np.array(out, dtype="<f4").reshape(shape)


def weights():
    n = Numbers()
    w = {"wte.weight": n.draw((VOCABULARY, WIDTH), 0.8), "wpe.weight": n.draw((PLACES, WIDTH), 0.5)}
    for i in range(BLOCKS):
        h = f"h.{i}."
        for norm in ("ln_1", "ln_2"):
            w[h + norm + ".weight"] = n.draw((WIDTH,), 0.5, 1)
            w[h + norm + ".bias"] = n.draw((WIDTH,), 0.3)
        for name, size_in, size_out in (("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH), ("mlp.c_fc", WIDTH, 4 * WIDTH), ("mlp.c_proj", 4 * WIDTH, WIDTH)):
            w[h + name + ".weight"] = n.draw((size_in, size_out), 0.6)
            w[h + name + ".bias"] = n.draw((size_out,), 0.3)
    w["ln_f.weight"] = n.draw((WIDTH,), 0.5, 1)
    w["ln_f.bias"] = n.draw((WIDTH,), 0.3)
    return w


def norm(x, w, name):
    middle = x.mean(axis=-1, keepdims=True)
    spread = ((x - middle) ** 2).mean(axis=-1, keepdims=True)
    return (x - middle) / np.sqrt(spread + EPSILON) * w[name + ".weight"] + w[name + ".bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"] + w[name + ".bias"]


def attend(x, w, name):
    q, k, v = np.split(linear(x, w, name + ".c_attn"), 3, axis=-1)
    each, out = WIDTH // HEADS, []
    for head in range(HEADS):
        part = slice(head * each, (head + 1) * each)
        scores = q[:, part] @ k[:, part].T / np.sqrt(each)
        scores[np.triu_indices(len(x), 1)] = -np.inf
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        out.append(e / e.sum(axis=-1, keepdims=True) @ v[:, part])
    return linear(np.concatenate(out, axis=-1), w, name + ".c_proj")


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def logits(words, w):
    x = w["wte.weight"][words] + w["wpe.weight"][: len(words)]
    for i in range(BLOCKS):
        h = f"h.{i}."
        x = x + attend(norm(x, w, h + "ln_1"), w, h + "attn")
        x = x + linear(gelu(linear(norm(x, w, h + "ln_2"), w, h + "mlp.c_fc")), w, h + "mlp.c_proj")
    return norm(x, w, "ln_f") @ w["wte.weight"].T


def save(path, tensors):
    """A safetensors file, in the order of its names."""
    header, body = {}, b""
    for name in sorted(tensors):
        t = tensors[name]
        b = t.tobytes()
        kind = {"f": "F32", "b": "BOOL"}[t.dtype.kind]
        header[name] = {"dtype": kind, "shape": list(t.shape), "data_offsets": [len(body), len(body) + len(b)]}
        body += b
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main(folder):
    folder = pathlib.Path(folder)
    w = weights()
    tensors = {"transformer." + name: t for name, t in w.items()}
    tensors["lm_head.weight"] = w["wte.weight"]
    for i in range(BLOCKS):  # what is no parameter, as published files have it
        tensors[f"transformer.h.{i}.attn.bias"] = np.tril(np.ones((1, 1, PLACES, PLACES), dtype="?"))
        tensors[f"transformer.h.{i}.attn.masked_bias"] = np.array(-1e4, dtype="<f4")
    save(folder / "model.safetensors", tensors)
    said = {"model_type": "gpt2", "n_layer": BLOCKS, "n_embd": WIDTH, "n_head": HEADS, "n_positions": PLACES, "vocab_size": VOCABULARY,
            "layer_norm_epsilon": EPSILON, "activation_function": "gelu_new"}
    (folder / "config.json").write_text(json.dumps(said, indent=1) + "\n")
    double = {name: t.astype("f8") for name, t in w.items()}
    out = {"rows": ROWS, "logits": [[[round(v, 9) for v in place] for place in logits(row, double).tolist()] for row in ROWS]}
    (folder / "logits.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


main(sys.argv[1])
