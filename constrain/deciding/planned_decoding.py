"""Planning-guided decoding, PG-TD: Monte Carlo tree search by the reward of complete texts (Zhang et al. 2023).

A node is a text so far; its children are its likeliest next tokens. A rollout goes down from the root, at each node to
the child of largest

    Q(child) + beta(visits) p(token) sqrt(log visits) / (1 + visits of the child),   beta = log((visits + base + 1) /
                                                                                               base) + exploration

(P-UCB, section 4.2), adds the children of the node that it reaches, completes that node greedily under the constraint,
and asks for the reward of the complete text, of which each node above keeps the largest as its Q. Each text is rewarded
once (sequence caching, section 4.3), and subtrees in which everything was tried are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..sampling import LanguageModel
from ..sampling.core.numeric_functions import compute_number
from ..search.candidate_order import top_falling
from ..search.hypotheses import Candidate, Searchable, SearchSpace, check_search_arguments
from ..search.search_results import FoundAnswer, FoundAnswers
from .decision_options import PlanningGuided
from .rollouts import Branch, continue_branches, open_space, start_branch

__all__ = ["decide_by_planning"]


@dataclass(slots=True, eq=False)
class PlanNode:
    """A node of the tree. share: probability of its last token. best: largest reward below it. is_closed: whether
    everything below it was tried.
    """

    branch: Branch
    share: float = 1.0
    visits: int = 0
    best: float = -math.inf
    children: list[PlanNode] | None = None
    is_closed: bool = field(default=False)


def decide_by_planning(
    lm: LanguageModel,
    constraint: Searchable,
    options: PlanningGuided,
    *,
    n: int = 1,
    rng: np.random.Generator | None = None,
    max_tokens: int = 512,
) -> FoundAnswers:
    """Search for answers of large reward.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `search.beam_search`.
    options : PlanningGuided
        The reward and the number of rollouts.
    n : int
        Most answers that are returned.
    rng : numpy.random.Generator, optional
        Not used: the search is deterministic.

    Returns
    -------
    FoundAnswers
        Largest reward first, which is their score; the likelier ones first among equals. The stats have `rollouts` and
        `rewards`, the number of different texts that were rewarded.

    Raises
    ------
    LimitError
        If no text ends within max_tokens.
    ValueError
        If a reward is not a finite number.
    """
    check_search_arguments(lm, constraint, n, max_tokens)
    space = open_space(lm, constraint, max_tokens)
    root, answers, rollouts = PlanNode(start_branch(space)), dict[str, FoundAnswer](), 0
    while rollouts < options.rollouts and not root.is_closed:
        rollouts += 1
        path = select_path(root, options)
        leaf = path[-1]
        expand_node(space, leaf, options.branches)
        ended = [leaf.branch] if leaf.branch.end is not None else continue_branches(space, [leaf.branch], max_tokens)
        reward = -math.inf
        if ended and ended[0].end is not None:
            reward = reward_text(ended[0], options, answers)
        for node in reversed(path):
            node.visits += 1
            node.best = max(node.best, reward)
            node.is_closed = node.children is not None and all(child.is_closed for child in node.children)
    if not answers:
        raise space.nothing_found()
    ranked = sorted(answers.values(), key=lambda answer: (-answer.score, -answer.logprob))
    stats = {**space.stats, "rollouts": float(rollouts), "rewards": float(len(answers))}
    return FoundAnswers(tuple(ranked[:n]), stats)


def select_path(root: PlanNode, options: PlanningGuided) -> list[PlanNode]:
    """Return the nodes from the root to one that has no children yet, each the best open child by P-UCB."""
    path = [root]
    while path[-1].children:
        node = path[-1]
        beta = math.log((node.visits + options.base + 1) / options.base) + options.exploration
        spread = beta * math.sqrt(math.log(max(node.visits, 1)))
        open_children = [child for child in node.children or () if not child.is_closed]
        path.append(max(open_children, key=lambda child: rate_child(child, spread)))
    return path


def rate_child(child: PlanNode, spread: float) -> float:
    """Return Q plus the exploration term of a child; Q of a node that was not visited is 0."""
    value = child.best if child.visits and child.best > -math.inf else 0.0
    return value + spread * child.share / (1 + child.visits)


def expand_node(space: SearchSpace, node: PlanNode, branches: int) -> None:
    """Add the likeliest admissible tokens after a node, and the end where the text may end, as its children."""
    node.children = []
    if node.branch.end is not None:
        return
    head = node.branch.head
    (row,) = space.request_rows([head.tokens])
    children = space.list_children(head, row)
    if children.end > -np.inf:
        node.children.append(PlanNode(Branch(head, children.end), math.exp(children.end)))
    added = 0
    for i in top_falling(children.logs, len(children.logs)).tolist():
        if added == branches:
            break
        candidate = Candidate(head, int(children.tokens[i]), float(children.logs[i]), 0.0)
        if space.admit(candidate) and candidate.fits:
            node.children.append(PlanNode(Branch(candidate.extend()), math.exp(candidate.step)))
            added += 1


def reward_text(ended: Branch, options: PlanningGuided, answers: dict[str, FoundAnswer]) -> float:
    """Return the reward of a complete text, and add it to the answers the first time."""
    if ended.text not in answers:
        reward = compute_number("the reward", options.reward, ended.text, finite=True)
        answers[ended.text] = FoundAnswer(ended.text, ended.logprob, reward, (ended.found,))
    return answers[ended.text].score
