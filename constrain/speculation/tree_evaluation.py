"""Evaluation of a draft tree: the model's rows after the text and after each node, in one forward pass if it can.

A model with a tree mask (`TreeModel`, such as `integrations.PromptedModel`) computes all rows in one pass: each node
attends to the text and to its own ancestors (SpecInfer, Miao et al. 2024, section 4.2; Medusa, Cai et al. 2024, section
2.1.2). Any other LanguageModel is asked for the rows after all paths in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..sampling.core.language_model import LanguageModel, rows_after
from .draft_source import DraftTree

__all__ = ["TreeModel", "list_paths", "rows_after_tree"]


@runtime_checkable
class TreeModel(Protocol):
    """A LanguageModel that evaluates draft trees."""

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """See `LanguageModel`."""
        ...

    def evaluate_tree(
        self, prefix: Sequence[int], tokens: Sequence[int], parents: Sequence[int]
    ) -> NDArray[np.floating[Any]]:
        """Return the log-probabilities after a prefix, and after each node of a tree that follows it.

        Parameters
        ----------
        prefix : sequence of int
            The text so far, without the prompt.
        tokens, parents : sequence of int, length n
            As in `DraftTree`.

        Returns
        -------
        ndarray of float, shape (1 + n, V)
            Natural logs; the row after the prefix first.
        """
        ...


def list_paths(prefix: Sequence[int], tree: DraftTree) -> list[list[int]]:
    """Return the texts of a tree: the prefix, and the prefix with the path to each node."""
    texts = [list(prefix)]
    for token, parent in zip(tree.tokens, tree.parents):
        texts.append([*texts[parent + 1], token])
    return texts


def rows_after_tree(lm: LanguageModel, prefix: Sequence[int], tree: DraftTree, size: int) -> NDArray[np.floating[Any]]:
    """Return the model's rows after a text and after each node of a draft.

    Parameters
    ----------
    lm : LanguageModel
        The target. A `TreeModel` computes trees that are no chains in one forward pass.
    prefix : sequence of int
        The text so far, without the prompt.
    tree : DraftTree
        n nodes.
    size : int
        The number of tokens of the vocabulary, V.

    Returns
    -------
    ndarray of float, shape (1 + n, V or more)
        Natural logs; row i + 1 is that of node i.

    Raises
    ------
    ArgumentError
        If the model returns rows of another shape.
    """
    if tree.is_chain or not isinstance(lm, TreeModel):
        return rows_after(lm, list_paths(prefix, tree), size)
    rows = np.asarray(lm.evaluate_tree(prefix, tree.tokens, tree.parents))
    if rows.ndim != 2 or len(rows) != len(tree) + 1 or rows.shape[1] < size:
        raise ArgumentError(f"the model returned {list(rows.shape)} for a tree of {len(tree)} nodes: it must be rows")
    return rows
