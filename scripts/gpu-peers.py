#!/usr/bin/env python3
"""PyTorch's plain step, torch.func's and JAX's per-example clipped steps, of the papers'
networks on a GPU in float32 without TF32: medians in milliseconds, for docs/gpu.md.

    python3 scripts/gpu-peers.py [torch] [func] [jax] [texts]

With texts, the transformer of the membership study alone.
"""
import json
import os
import statistics
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
CLIP, RATE = 0.1, 0.02
NETWORKS = ["mnist", "autoencoder", "femnist"]
WORDS, PLACES, WIDTH, BLOCKS, HEADS = 2048, 64, 128, 2, 4  # of the transformer
TEXTS = (16, 512)  # batches of it


def report(**row):
    print(json.dumps(row), flush=True)


def median(step, wait, n):
    times = []
    for r in range(8 + n):
        began = time.perf_counter()
        step(r)
        wait()
        if r >= 8:
            times.append(1e3 * (time.perf_counter() - began))
    return round(statistics.median(times), 3)


def torch_network(name):
    from torch import nn
    if name == "mnist":
        return nn.Sequential(nn.Conv2d(1, 16, 8, 1, 3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4), nn.ReLU(),
                             nn.Flatten(), nn.Linear(16928, 32), nn.ReLU(), nn.Linear(32, 10))
    if name == "femnist":
        return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 62))
    c = [1, 8, 16, 32, 64, 32, 16, 8, 1]
    layers = []
    for i in range(8):
        layers += [(nn.Conv2d if i < 4 else nn.ConvTranspose2d)(c[i], c[i + 1], 3), nn.Sigmoid() if i == 7 else nn.LeakyReLU()]
    return nn.Sequential(*layers)


def with_torch(per_example):
    import torch
    from torch.func import functional_call, grad, vmap
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    for name in NETWORKS:
        net = torch_network(name).cuda()
        params = {k: v.detach() for k, v in net.named_parameters()}
        opt = torch.optim.SGD(net.parameters(), lr=RATE)

        def loss(out, x, y):
            return torch.nn.functional.mse_loss(out, x) if name == "autoencoder" else torch.nn.functional.cross_entropy(out, y)

        def single(p, x, y):
            return loss(functional_call(net, p, (x[None],)), x[None], y[None])

        one = vmap(grad(single), in_dims=(None, 0, 0))

        def private(x, y, n):
            g = one(params, x, y)
            norms = sum((v.flatten(1) ** 2).sum(1) for v in g.values()).sqrt()
            w = (CLIP / norms).clamp(max=1)
            for k, v in g.items():
                params[k] = params[k] - RATE / n * torch.einsum("e,e...->...", w, v)

        def plain(x, y, n):
            opt.zero_grad(set_to_none=True)
            loss(net(x), x, y).backward()
            opt.step()

        for n in (512, 4096):
            xs = [torch.rand(n, 1, 28, 28, device="cuda") for _ in range(3)]
            y = torch.randint(0, 10, (n,), device="cuda")
            torch.cuda.reset_peak_memory_stats()
            step = private if per_example else plain
            try:
                ms = median(lambda r: step(xs[r % 3], y, n), torch.cuda.synchronize, 25)
                report(peer="torch.func" if per_example else "torch plain", version=torch.__version__, network=name, batch=n, ms=ms,
                       peak_MB=round(torch.cuda.max_memory_allocated() / 1e6))
            except Exception as e:  # out of memory is an answer, too
                report(peer="torch.func" if per_example else "torch plain", network=name, batch=n, error=str(e)[:200])


def with_jax():
    import jax
    import jax.numpy as jnp
    import numpy as np
    jax.config.update("jax_default_matmul_precision", "highest")
    rng = np.random.default_rng(1)

    def conv(shape):
        return [jnp.asarray(rng.uniform(-.1, .1, shape), jnp.float32), jnp.zeros(shape[-1], jnp.float32)]

    def apply_conv(x, p, pad):
        return jax.lax.conv_general_dilated(x, p[0], (1, 1), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")) + p[1]

    def pool(x, stride):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, stride, stride, 1), "VALID")

    for name in NETWORKS:
        if name == "mnist":
            params = [conv((8, 8, 1, 16)), conv((4, 4, 16, 32)), conv((16928, 32)), conv((32, 10))]
        elif name == "femnist":
            params = [conv((3, 3, 1, 32)), conv((3, 3, 32, 64)), conv((9216, 128)), conv((128, 62))]
        else:
            c = [1, 8, 16, 32, 64, 32, 16, 8, 1]
            params = [conv((3, 3, c[i], c[i + 1])) for i in range(8)]

        def out(p, x):
            relu = jax.nn.relu
            if name == "mnist":
                x = relu(apply_conv(pool(relu(apply_conv(x, p[0], 3)), 1), p[1], 0))
            elif name == "femnist":
                x = pool(relu(apply_conv(relu(apply_conv(x, p[0], 0)), p[1], 0)), 2)
            else:
                for i in range(8):
                    x = apply_conv(x, p[i], 0 if i < 4 else 2)
                    x = jax.nn.sigmoid(x) if i == 7 else jax.nn.leaky_relu(x)
                return x
            x = relu(x.reshape(x.shape[0], -1) @ p[2][0] + p[2][1])
            return x @ p[3][0] + p[3][1]

        def loss(p, x, y):
            o = out(p, x[None])[0]
            return jnp.mean((o - x) ** 2) if name == "autoencoder" else jax.nn.logsumexp(o) - o[y]

        @jax.jit
        def step(p, x, y):
            g = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(p, x, y)
            norms = jnp.sqrt(sum(jnp.sum(v.reshape(v.shape[0], -1) ** 2, 1) for v in jax.tree.leaves(g)))
            w = jnp.minimum(1, CLIP / norms)
            return jax.tree.map(lambda a, v: a - RATE / x.shape[0] * jnp.einsum("e,e...->...", w, v), p, g)

        for n in (512, 4096):
            xs = [jnp.asarray(rng.random((n, 28, 28, 1)), jnp.float32) for _ in range(3)]
            y = jnp.asarray(rng.integers(0, 10, n))
            held = [params]
            try:
                def go(r):
                    held[0] = step(held[0], xs[r % 3], y)
                ms = median(go, lambda: jax.block_until_ready(held[0]), 25)
                report(peer="jax vmap", version=jax.__version__, network=name, batch=n, ms=ms)
            except Exception as e:
                report(peer="jax vmap", network=name, batch=n, error=str(e)[:200])


def texts_with_torch(peers):
    import math
    import torch
    from torch import nn
    from torch.func import functional_call, grad, vmap
    torch.backends.cuda.matmul.allow_tf32 = False

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.look, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.register_buffer("later", torch.full((PLACES, PLACES), float("-inf")).triu(1))

        def forward(self, x):
            def heads(z):
                return z.view(x.shape[0], PLACES, HEADS, WIDTH // HEADS).transpose(1, 2)
            q, k, v = map(heads, self.look(self.before(x)).split(WIDTH, 2))
            if self.fused:
                seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                seen = (q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + self.later).softmax(3) @ v
            x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
            return x + self.narrow(nn.functional.gelu(self.wide(self.between(x)), approximate="tanh"))

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
            return nn.functional.linear(self.last(x), self.words.weight)

    net = Transformer().cuda()
    params = {k: v.detach() for k, v in net.named_parameters()}
    opt = torch.optim.SGD(net.parameters(), lr=RATE)

    def loss(scores, text):
        return nn.functional.cross_entropy(scores[:, :-1].reshape(-1, WORDS), text[:, 1:].reshape(-1))

    one = vmap(grad(lambda p, text: loss(functional_call(net, p, (text[None],)), text[None])), in_dims=(None, 0))

    def private(text, n):
        g = one(params, text)
        norms = sum((v.flatten(1) ** 2).sum(1) for v in g.values()).sqrt()
        w = (CLIP / norms).clamp(max=1)
        for k, v in g.items():
            params[k] = params[k] - RATE / n * torch.einsum("e,e...->...", w, v)

    def plain(text, n):
        opt.zero_grad(set_to_none=True)
        loss(net(text), text).backward()
        opt.step()

    for peer, step, fused in (("torch plain", plain, False), ("torch plain, fused attention", plain, True), ("torch.func", private, False)):
        if ("torch" if step is plain else "func") not in peers:
            continue
        Block.fused = fused
        for n in TEXTS:
            texts = [torch.randint(0, WORDS, (n, PLACES), device="cuda") for _ in range(3)]
            torch.cuda.reset_peak_memory_stats()
            try:
                ms = median(lambda r: step(texts[r % 3], n), torch.cuda.synchronize, 25)
                report(peer=peer, version=torch.__version__, network="gpt", batch=n, ms=ms, peak_MB=round(torch.cuda.max_memory_allocated() / 1e6))
            except Exception as e:
                report(peer=peer, network="gpt", batch=n, error=str(e)[:200])


def texts_with_jax():
    import jax
    import jax.numpy as jnp
    import numpy as np
    jax.config.update("jax_default_matmul_precision", "highest")
    rng = np.random.default_rng(1)

    def normal(*shape):
        return jnp.asarray(0.02 * rng.standard_normal(shape), jnp.float32)

    def linear(a, b):
        return [normal(a, b), jnp.zeros(b, jnp.float32)]

    def norm():
        return [jnp.ones(WIDTH, jnp.float32), jnp.zeros(WIDTH, jnp.float32)]

    params = {"words": normal(WORDS, WIDTH), "places": normal(PLACES, WIDTH), "last": norm(),
              "blocks": [[norm(), linear(WIDTH, 3 * WIDTH), linear(WIDTH, WIDTH), norm(), linear(WIDTH, 4 * WIDTH), linear(4 * WIDTH, WIDTH)] for _ in range(BLOCKS)]}

    def normed(x, p):
        x = x - x.mean(-1, keepdims=True)
        return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p[0] + p[1]

    def times(x, p):
        return x @ p[0] + p[1]

    def loss(p, text):
        x = p["words"][text] + p["places"]
        later = jnp.triu(jnp.full((PLACES, PLACES), -jnp.inf), 1)
        for before, look, out, between, wide, narrow in p["blocks"]:
            q, k, v = [z.reshape(PLACES, HEADS, -1).transpose(1, 0, 2) for z in jnp.split(times(normed(x, before), look), 3, -1)]
            seen = jax.nn.softmax(q @ k.transpose(0, 2, 1) / (WIDTH // HEADS) ** 0.5 + later) @ v
            x = x + times(seen.transpose(1, 0, 2).reshape(PLACES, WIDTH), out)
            x = x + times(jax.nn.gelu(times(normed(x, between), wide)), narrow)
        scores = jax.nn.log_softmax(normed(x, p["last"]) @ p["words"].T)
        return -scores[jnp.arange(PLACES - 1), text[1:]].mean()

    @jax.jit
    def step(p, texts):
        g = jax.vmap(jax.grad(loss), in_axes=(None, 0))(p, texts)
        norms = jnp.sqrt(sum(jnp.sum(v.reshape(v.shape[0], -1) ** 2, 1) for v in jax.tree.leaves(g)))
        w = jnp.minimum(1, CLIP / norms)
        return jax.tree.map(lambda a, v: a - RATE / texts.shape[0] * jnp.einsum("e,e...->...", w, v), p, g)

    for n in TEXTS:
        texts = [jnp.asarray(rng.integers(0, WORDS, (n, PLACES))) for _ in range(3)]
        held = [params]
        try:
            def go(r):
                held[0] = step(held[0], texts[r % 3])
            ms = median(go, lambda: jax.block_until_ready(held[0]), 25)
            report(peer="jax vmap", version=jax.__version__, network="gpt", batch=n, ms=ms)
        except Exception as e:
            report(peer="jax vmap", network="gpt", batch=n, error=str(e)[:200])


if __name__ == "__main__":
    asked = sys.argv[1:] or ["torch", "func", "jax"]
    if "texts" not in asked:
        if "torch" in asked:
            with_torch(False)
        if "func" in asked:
            with_torch(True)
        if "jax" in asked:
            with_jax()
    peers = [a for a in asked if a != "texts"] or ["torch", "func", "jax"]
    if "torch" in peers or "func" in peers:
        texts_with_torch(peers)
    if "jax" in peers:
        texts_with_jax()
