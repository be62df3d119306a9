"""A PyTorch module as a trainer: per-example gradients, losses and training.

    serve(TorchTrainer(module, rows.x, rows.y, loss="cross-entropy"))

PyTorch is needed for this module alone.
"""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np
import torch
from torch import nn

from .trainer_base import Trainer


def _cross_entropy(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    if out.shape[-1] == 1:
        return nn.functional.binary_cross_entropy_with_logits(out[..., 0], target, reduction="none")
    return nn.functional.cross_entropy(out, target.long(), reduction="none")


# By their names in run files: every example's loss, and what its gradient is taken of.
_LOSSES: dict[str, tuple[Callable[..., torch.Tensor], float]] = {
    "cross-entropy": (_cross_entropy, 1.0),
    "squared-error": (lambda out, target: (out - target[:, None]).square().mean(dim=1), 1.0),
    "half-squared-error": (lambda out, target: (out - target[:, None]).square().mean(dim=1), 0.5),
}


class TorchTrainer(Trainer):
    """Trains a module on examples: inputs and targets as arrays, one row an example.

    loss is the run file's. The parameter vector lies as a model of Coterie's own lies:
    the module's parameters in their order, weights of linear layers as [input][output],
    of convolutions as [height][width][input][output]; so a network of the run file and
    the same module here are one model. (Coterie flattens pictures as rows, columns,
    channels: permute(0, 2, 3, 1) before flattening does so here.)

    Layers that mix examples, such as batch normalisation, are refused: with them no
    gradient belongs to one example alone.
    """

    def __init__(self, module: nn.Module, inputs: Any, targets: Any, loss: str, per_example: Optional[str] = None):
        if loss not in _LOSSES:
            raise ValueError(f"the loss {loss} is not known here; known: {', '.join(_LOSSES)}")
        for name, part in module.named_modules():
            if isinstance(part, nn.modules.batchnorm._NormBase) and not isinstance(part, nn.modules.instancenorm._InstanceNorm):
                raise ValueError(f"{name} ({type(part).__name__}) mixes the examples of a batch: no gradient belongs to one of them; take group or layer normalisation")
        self.module, self.follows = module.eval().float(), loss
        self._loss, self._factor = _LOSSES[loss]
        self._x = torch.as_tensor(np.asarray(inputs), dtype=torch.float32)
        self._y = torch.as_tensor(np.asarray(targets), dtype=torch.float32)
        if len(self._x) != len(self._y):
            raise ValueError(f"{len(self._x)} inputs, but {len(self._y)} targets")
        self._turns = _turns(self.module)
        self._names = list(self._turns)
        self.examples, self.parameters = len(self._y), sum(p.numel() for p in self.module.parameters())
        ways = {"vmap": _vmap, "loop": _loop}
        self._way = ways[per_example] if per_example else (_vmap if _transforms() else _loop)

    def start(self) -> np.ndarray:
        """The module's parameters now, as one vector."""
        own = {name: p.detach() for name, p in self.module.named_parameters()}
        return self._flat(own, ()).numpy().astype(float)

    def losses(self, theta: np.ndarray, examples: np.ndarray) -> np.ndarray:
        """Every listed example's loss."""
        self._load(theta)
        with torch.no_grad():
            return self._loss(self.module(self._x[examples]), self._y[examples]).numpy().astype(float)

    def gradients(self, theta: np.ndarray, examples: np.ndarray) -> np.ndarray:
        """Every listed example's gradient."""
        self._load(theta)
        if not len(examples):
            return np.empty((0, self.parameters))
        return self._factor * self._way(self, self._x[examples], self._y[examples]).numpy().astype(float)

    def loss(self, theta: np.ndarray) -> Any:
        """The mean loss; of classes also how many answers are wrong."""
        mean = float(self.losses(theta, np.arange(self.examples)).mean())
        if self.follows != "cross-entropy":
            return mean**0.5
        with torch.no_grad():
            out = self.module(self._x)
        answers = (out[:, 0] > 0) if out.shape[1] == 1 else out.argmax(dim=1)
        return mean, int((answers.float() != self._y).sum())

    def _load(self, theta: np.ndarray) -> None:
        """Puts a parameter vector into the module."""
        if len(theta) != self.parameters:
            raise ValueError(f"{len(theta)} parameters for a module of {self.parameters}")
        rest = torch.as_tensor(np.asarray(theta), dtype=torch.float32)
        with torch.no_grad():
            for name, p in self.module.named_parameters():
                piece, rest = rest[: p.numel()], rest[p.numel() :]
                turn = self._turns[name]
                shape = [p.shape[i] for i in turn]
                p.copy_(piece.reshape(shape).permute(*np.argsort(turn).tolist()))

    def _flat(self, parts: dict[str, torch.Tensor], lead: tuple[int, ...]) -> torch.Tensor:
        """Tensors of the parameters' shapes (with a leading one, of examples) as vectors in Coterie's order."""
        k = len(lead)
        return torch.cat([parts[name].permute(*range(k), *(k + i for i in self._turns[name])).reshape(*lead, -1) for name in self._names], dim=k)


def _turns(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """How the axes of every parameter lie in Coterie's order, by name."""
    kinds = {f"{name}.weight" if name else "weight": type(part) for name, part in module.named_modules() if isinstance(part, (nn.Linear, nn.Conv2d))}
    turns = {}
    for name, p in module.named_parameters():
        kind = kinds.get(name)
        turns[name] = (1, 0) if kind is nn.Linear else (2, 3, 1, 0) if kind is nn.Conv2d else tuple(range(p.dim()))
    return turns


def _transforms() -> Any:
    """torch.func, or functorch where that came before it; None where neither is."""
    try:
        from torch import func

        return func
    except ImportError:
        pass
    try:
        import functorch

        return functorch
    except ImportError:
        return None


def _vmap(trainer: TorchTrainer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """All examples at once."""
    transforms = _transforms()
    if hasattr(transforms, "functional_call"):
        def call(values: Any, one: torch.Tensor) -> torch.Tensor:
            return transforms.functional_call(trainer.module, dict(zip(trainer._names, values)), (one,))
        values = tuple(p.detach() for p in trainer.module.parameters())
    else:
        bare, values, buffers = transforms.make_functional_with_buffers(trainer.module)
        values = tuple(v.detach() for v in values)

        def call(values: Any, one: torch.Tensor) -> torch.Tensor:
            return bare(values, buffers, one)

    def loss(values: Any, one: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return trainer._loss(call(values, one[None]), target[None])[0]

    parts = transforms.vmap(transforms.grad(loss), in_dims=(None, 0, 0))(values, x, y)
    return trainer._flat(dict(zip(trainer._names, parts)), (len(y),)).detach()


def _loop(trainer: TorchTrainer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One example after another: for modules that vmap cannot do, and PyTorch without it."""
    own = list(trainer.module.parameters())
    rows = []
    for i in range(len(y)):
        loss = trainer._loss(trainer.module(x[i : i + 1]), y[i : i + 1])[0]
        rows.append(trainer._flat(dict(zip(trainer._names, torch.autograd.grad(loss, own))), ()).detach())
    return torch.stack(rows)
