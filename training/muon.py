"""Muon (Jordan et al. 2024): the optimiser of the matrices."""

from __future__ import annotations

import torch

__all__ = ["Muon"]


class Muon:
    """Momentum that is orthogonalised by Newton-Schulz iteration, for all matrices of one shape at once."""

    def __init__(self, matrices: list[torch.nn.Parameter], momentum: float = 0.95, weight_decay: float = 0.1) -> None:
        self.groups: dict[tuple[int, ...], list[torch.nn.Parameter]] = {}
        for matrix in matrices:
            self.groups.setdefault(tuple(matrix.shape), []).append(matrix)
        self.momentum, self.weight_decay = momentum, weight_decay
        self.state = {shape: torch.zeros(len(group), *shape) for shape, group in self.groups.items()}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for shape, group in self.groups.items():
            grads = torch.stack([matrix.grad for matrix in group])  # type: ignore[misc]
            moving = self.state[shape].lerp_(grads, 1 - self.momentum)
            update = orthogonalise(grads.lerp(moving, self.momentum)) * max(1, shape[0] / shape[1]) ** 0.5
            for matrix, change in zip(group, update, strict=True):
                matrix.mul_(1 - rate * self.weight_decay).sub_(change, alpha=rate)
                matrix.grad = None


def orthogonalise(matrices: torch.Tensor) -> torch.Tensor:
    """Return approximately the nearest orthogonal matrices: five steps of a quintic Newton-Schulz
    iteration in bfloat16.
    """
    x = matrices.bfloat16()
    tall = x.size(-2) > x.size(-1)
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x.mT if tall else x).float()
