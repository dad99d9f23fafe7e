"""`constrain doctor`: check what constrain reads from a model's tokenizer."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from . import display
from .source_options import JsonFlag, vocabulary_of

__all__ = ["diagnose_tokenizer"]


def diagnose_tokenizer(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="demo, a folder, a tokenizer file or a hub id.")],
    as_json: JsonFlag = False,
) -> None:
    """Test a model's tokenizer: whether the bytes of its tokens match its encoding and decoding, and any peculiarities.

    Loading a vocabulary runs the self-test: the bytes of the tokens must spell the texts that they encode.
    """
    with display.show_progress("reading and testing the tokenizer …"):
        vocabulary = vocabulary_of(model)
    texts = [token for token in vocabulary.tokens if token]
    repeats = sum(n - 1 for n in Counter(texts).values())
    ends = [name for name, token in vocabulary.special.items() if token in vocabulary.eos_ids]
    missing = sorted(vocabulary.missing_bytes)
    longest = max(map(len, texts), default=0)
    if as_json:
        display.as_json({
            "name": vocabulary.name, "size": vocabulary.size, "with_text": len(texts), "repeats": repeats,
            "special": len(vocabulary.special), "end_ids": list(vocabulary.eos_ids), "missing_bytes": missing,
            "leading_space": vocabulary.leading_space, "longest": longest,
            "fingerprint": vocabulary.fingerprint, "self_test": "passed",
        })  # fmt: skip
        return
    display.print_facts([
        ("vocabulary", vocabulary.name),
        ("self-test", "passed: the bytes of the tokens spell the texts that they encode"),
        ("tokens", f"{vocabulary.size:,}: {len(texts):,} with text, {repeats} repeats; at most {longest} bytes"),
        ("special", f"{len(vocabulary.special)}; end tokens {' '.join(map(str, vocabulary.eos_ids))} {' '.join(ends)}"),
        ("missing bytes", ", ".join(f"0x{byte:02x}" for byte in missing) or "none: every text can be spelled"),
        ("leading space", f"{vocabulary.leading_space} by its own decoding at the start of a text; constrain keeps it"
         if vocabulary.leading_space != "kept" else "kept"),
        ("fingerprint", vocabulary.fingerprint),
    ])  # fmt: skip
