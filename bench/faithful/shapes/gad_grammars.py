"""GAD's three kinds of grammars (Park et al. 2024) with models that have mass there: SLIA, BV4, constituency parses.

The grammars are recursive like the published ones. Tokens are the words of each grammar, so that all texts of a bounded
length can be enumerated and the exact distribution is known. The model of a grammar is an n-gram model, trained on
sentences of the grammar in which some words are replaced, removed or doubled: much of its mass is outside the grammar,
and a mask cannot tell after which prefixes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import constrain
from constrain.sampling import NGram
from constrain.vocabulary.vocabulary import Vocabulary

from ...counted_models import CachedModel
from ..fixtures import Fixture, build_fixture

__all__ = [
    "TRAINED",
    "TrainedGrammar",
    "draw_sentence",
    "draw_training_texts",
    "list_trained_fixtures",
    "train_model",
]

Rules = Mapping[str, list[list[str]]]
"""Right-hand sides by rule, each a list of words and rules; the first one has the shortest derivations."""


@dataclass(frozen=True)
class TrainedGrammar:
    """A grammar of words.

    rules: the first one is the start. further: additional choices in the training sentences: the language of all tasks,
    of which the grammar of one task is a subset. most: max_tokens. depth: maximum depth of derivations in training.
    order: of the n-gram model.
    """

    name: str
    rules: Rules
    further: Rules
    most: int
    depth: int = 3
    order: int = 2

    @property
    def trained(self) -> Rules:
        """The rules with the further choices."""
        return {name: [*choices, *self.further.get(name, [])] for name, choices in self.rules.items()}

    @property
    def words(self) -> list[str]:
        """All words, in the order of the rules."""
        used = [part for choices in self.trained.values() for choice in choices for part in choice]
        return list(dict.fromkeys(part for part in used if part not in self.rules))

    def to_gbnf(self) -> str:
        """Return the grammar as GBNF."""

        def write(part: str) -> str:
            return part if part in self.rules else '"' + part.replace("\\", "\\\\").replace('"', '\\"') + '"'

        lines = [f"root ::= {next(iter(self.rules))}"]
        for name, choices in self.rules.items():
            lines.append(f"{name} ::= " + " | ".join(" ".join(map(write, choice)) for choice in choices))
        return "\n".join(lines)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words as tokens, and an end token."""
        return Vocabulary.from_tokens([*(word.encode() for word in self.words), None], [len(self.words)])


SLIA: Rules = {
    "str": [["name"], ["sep"], ["(str.++ ", "str", " ", "str", ")"], ["(str.at ", "str", " ", "int", ")"]],
    "int": [["0"], ["1"], ["(str.len ", "str", ")"]],
}
BV4: Rules = {
    "bv": [["x"], ["#x1"], ["(bvnot ", "bv", ")"], ["(bvand ", "bv", " ", "bv", ")"]],
}
PARSES: Rules = {
    "s": [["(S ", "np", "vp", ")"]],
    "np": [["(NP ", "noun", ")"], ["(NP ", "det", "noun", ")"], ["(NP ", "np", "pp", ")"]],
    "vp": [["(VP ", "verb", ")"], ["(VP ", "verb", "np", ")"], ["(VP ", "vp", "pp", ")"]],
    "pp": [["(PP ", "prep", "np", ")"]],
    "noun": [["(NN dog)"], ["(NN park)"]], "det": [["(DT the)"]],
    "verb": [["(VB sees)"], ["(VB runs)"]], "prep": [["(IN in)"]],
}  # fmt: skip

TRAINED = [
    TrainedGrammar("SLIA, trained", SLIA, {
        "str": [["(str.substr ", "str", " ", "int", " ", "int", ")"], ["(str.rev ", "str", ")"]],
        "int": [["(str.indexof ", "str", " ", "str", " ", "int", ")"]],
    }, 9),
    TrainedGrammar("BV4, trained", BV4, {
        "bv": [["(bvor ", "bv", " ", "bv", ")"], ["(bvadd ", "bv", " ", "bv", ")"], ["(bvneg ", "bv", ")"], ["y"]],
    }, 9),
    TrainedGrammar("constituency parses, trained", PARSES, {
        "vp": [["(VP ", "verb", "s", ")"]], "np": [["(NP ", "det", "(JJ big)", "noun", ")"]],
    }, 17, 4, 5),
]  # fmt: skip


def draw_sentence(grammar: TrainedGrammar, rng: random.Random) -> list[int]:
    """Return the tokens of a random derivation; at the greatest depth the first choice of every rule is taken."""
    numbers = {word: number for number, word in enumerate(grammar.words)}

    def write(part: str, depth: int) -> list[int]:
        if part not in grammar.rules:
            return [numbers[part]]
        choices = grammar.trained[part]
        choice = choices[0] if depth <= 0 else rng.choice(choices)
        return [token for inner in choice for token in write(inner, depth - 1)]

    return write(next(iter(grammar.rules)), grammar.depth)


def damage_sentence(tokens: list[int], size: int, rng: random.Random) -> list[int]:
    """Return a sentence with one word replaced, removed or doubled, more often near the end, where brackets close."""
    at = max(rng.randrange(len(tokens)), rng.randrange(len(tokens)))
    changes: list[Callable[[], list[int]]] = [
        lambda: [*tokens[:at], rng.randrange(size), *tokens[at + 1 :]],
        lambda: tokens[:at] + tokens[at + 1 :],
        lambda: tokens[: at + 1] + tokens[at:],
    ]
    return rng.choice(changes)()


def draw_training_texts(grammar: TrainedGrammar, seed: int = 0, sentences: int = 4000) -> list[list[int]]:
    """Draw sentences of a grammar; a sentence is damaged with a probability that grows with its length."""
    rng, size = random.Random(f"{seed} {grammar.name}"), len(grammar.words)
    texts: list[list[int]] = []
    while len(texts) < sentences:
        tokens = draw_sentence(grammar, rng)
        if len(tokens) < grammar.most:
            texts.append(damage_sentence(tokens, size, rng) if rng.random() < 0.1 * len(tokens) else tokens)
    return texts


def train_model(grammar: TrainedGrammar, seed: int = 0, sentences: int = 4000) -> NGram:
    """Train an n-gram model on sentences of a grammar."""
    texts, size = draw_training_texts(grammar, seed, sentences), len(grammar.words)
    return NGram.of_texts(texts, end=size, size=size + 1, order=grammar.order, contexts=3000)


def list_trained_fixtures(names: list[str] | None = None) -> list[Fixture]:
    """Build a fixture of each grammar, with a model trained on it."""
    out = []
    for grammar in TRAINED:
        if names is None or grammar.name in names:
            vocabulary = grammar.vocabulary
            constraint = constrain.compile(vocabulary=vocabulary, grammar=constrain.gbnf(grammar.to_gbnf()))
            out.append(
                build_fixture(grammar.name, CachedModel(train_model(grammar)), constraint, grammar.most, real=False)
            )
    return out
