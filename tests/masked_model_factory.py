"""Small masked language models for tests: a product of n-gram contexts on both sides, and a transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constrain.vocabulary.vocabulary import Vocabulary


class NeighbourModel:
    """A `MaskedLanguageModel` in numpy: p(token | nearest known token on either side, distances up to `reach`), a
    product of two count tables, smoothed. Trained on sequences of tokens.
    """

    def __init__(self, size: int, sequences: Sequence[Sequence[int]], reach: int = 3, smoothing: float = 0.02) -> None:
        self.size, self.reach = size, reach
        self.left = np.full((reach, size, size), smoothing)
        self.right = np.full((reach, size, size), smoothing)
        self.alone = np.full(size, smoothing)
        self.calls = 0
        for tokens in sequences:
            np.add.at(self.alone, list(tokens), 1)
            for distance in range(1, reach + 1):
                for before, after in zip(tokens, tokens[distance:]):
                    self.left[distance - 1, before, after] += 1
                    self.right[distance - 1, after, before] += 1

    def logprobs(self, tokens: Sequence[int | None]) -> NDArray[np.float64]:
        self.calls += 1
        out = np.zeros((len(tokens), self.size))
        for position in range(len(tokens)):
            weights = np.log(self.alone)
            for side, table in ((-1, self.left), (1, self.right)):
                for distance in range(1, self.reach + 1):
                    other = position + side * distance
                    if 0 <= other < len(tokens) and tokens[other] is not None:
                        row = table[distance - 1, tokens[other]]
                        weights = weights + np.log(row / row.sum()) - np.log(self.alone / self.alone.sum())
                        break
            out[position] = weights - np.logaddexp.reduce(weights)
        return out


class RandomModel:
    """A `MaskedLanguageModel` whose rows are random and depend on what is known."""

    def __init__(self, size: int, seed: int, spread: float = 3.0) -> None:
        self.size, self.seed, self.spread, self.calls = size, seed, spread, 0

    def logprobs(self, tokens: Sequence[int | None]) -> NDArray[np.float64]:
        self.calls += 1
        known = [0 if token is None else token + 1 for token in tokens]
        rng = np.random.default_rng([self.seed, *known])
        logits = rng.normal(0, self.spread, (len(tokens), self.size))
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def train_transformer(vocabulary: Vocabulary, sequences: Sequence[Sequence[int]], steps: int = 60) -> Any:
    """A tiny bidirectional transformer, trained for a few seconds to predict masked tokens (LLaDA's objective)."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    size, length, width = vocabulary.size, len(sequences[0]), 32

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens = torch.nn.Embedding(size + 1, width)
            self.places = torch.nn.Embedding(length, width)
            layer = torch.nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
            self.body = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = torch.nn.Linear(width, size)

        def forward(self, ids: Any) -> Any:
            return self.head(self.body(self.tokens(ids) + self.places.weight[: ids.shape[1]]))

        def logprobs(self, tokens: Sequence[int | None]) -> NDArray[np.float32]:
            ids = torch.tensor([[size if token is None else token for token in tokens]])
            with torch.no_grad():
                return torch.log_softmax(self(ids)[0], -1).numpy()

    network = Network()
    data, optimizer = torch.tensor(sequences), torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(steps):
        batch = data[torch.randint(len(data), (32,))]
        masked = torch.rand(batch.shape) < torch.rand((32, 1))
        logits = network(batch.masked_fill(masked, size))
        loss = torch.nn.functional.cross_entropy(logits[masked], batch[masked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.eval()
