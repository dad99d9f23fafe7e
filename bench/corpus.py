"""The data of MaskBench: schemas with valid and invalid instances.

    load_cases(path)           all cases of a file, in its order; a line is {"id", "schema", "tests": [{"valid",
    "data"}]} choose_cases(cases, ...)   all of them, a seeded sample, or those with given ids Llama3(path)
    the vocabulary of Llama 3, by which instances are tokenised

An instance is serialised as the upstream benchmark does, `json.dumps(data, indent=None, ensure_ascii=False)`
(github.com/guidance-ai/jsonschemabench, maskbench/), and tokenised by the vocabulary's own tokenizer.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tiktoken

__all__ = ["Case", "Instance", "Llama3", "choose_cases", "load_cases", "spell_json"]

# The published split of Llama 3 (meta-llama/llama3, llama/tokenizer.py): not in the ranks file.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
RANKS = 128_000
SIZE = 128_256
SPECIAL = {"<|begin_of_text|>": 128_000, "<|end_of_text|>": 128_001, "<|eot_id|>": 128_009}
ENDS = (128_001, 128_009)


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance: its text, and whether the schema allows it."""

    text: str
    valid: bool


@dataclass(frozen=True, slots=True)
class Case:
    """One schema, as JSON text, with its instances."""

    id: str
    schema: str
    tests: tuple[Instance, ...]


def spell_json(value: Any) -> str:
    """Return a JSON value as the upstream benchmark writes it."""
    return json.dumps(value, indent=None, ensure_ascii=False)


def load_cases(path: Path) -> list[Case]:
    """Return all cases of a file (.jsonl or .jsonl.gz) in its order. Raises OSError, ValueError with
    the line number.
    """
    cases = []
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                tests = tuple(Instance(spell_json(test["data"]), bool(test["valid"])) for test in row["tests"])
                cases.append(Case(row["id"], spell_json(row["schema"]), tests))
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{path}, line {number}: not a case of MaskBench: {error!r}") from error
    return cases


def choose_cases(cases: Sequence[Case], *, sample: int | None, seed: int, ids: Sequence[str] = ()) -> list[Case]:
    """Return the cases with the given ids, or a sample (None: all), in the order of the file."""
    if ids:
        known = {case.id: case for case in cases}
        missing = [name for name in ids if name not in known]
        if missing:
            raise ValueError(f"no such id: {', '.join(missing)}")
        return [known[name] for name in ids]
    if sample is None or sample >= len(cases):
        return list(cases)
    chosen = random.Random(seed).sample(range(len(cases)), sample)
    return [cases[i] for i in sorted(chosen)]


class Llama3:
    """The Llama-3 vocabulary: 128,000 ranks, 256 special tokens, two of which end a text."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def encoding(self) -> tiktoken.Encoding:
        """tiktoken's tokenizer over the ranks file."""
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe

        ranks = load_tiktoken_bpe(str(self.path))
        if len(ranks) != RANKS:
            raise ValueError(f"{self.path}: {len(ranks):,} ranks, but Llama 3 has {RANKS:,}")
        special = {f"<|reserved_{token}|>": token for token in range(RANKS, SIZE)}
        special = {name: token for name, token in special.items() if token not in SPECIAL.values()} | SPECIAL
        return tiktoken.Encoding("llama3", pat_str=SPLIT, mergeable_ranks=ranks, special_tokens=special)

    @cached_property
    def tokens(self) -> list[bytes]:
        """Return the bytes of the 128,000 ordinary tokens."""
        return [self.encoding.decode_single_token_bytes(token) for token in range(RANKS)]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, special tokens not recognised."""
        tokens: list[int] = self.encoding.encode_ordinary(text)
        return tokens

    def decode(self, tokens: list[int]) -> bytes:
        """Return the bytes of tokens."""
        text: bytes = self.encoding.decode_bytes(tokens)
        return text
