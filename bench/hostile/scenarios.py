"""Hostile surroundings: other processes, foreign files, wrong models, wrong calls.

Each is a function without arguments that returns if all is as it must be, raises a ConstrainError where that is the
right answer, and `Wrong` otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import constrain
from constrain import Constraint, Style, Vocabulary

from ..process_memory import read_resident_memory
from .answers import BYTES, Wrong
from .store_scenarios import (
    NEEDS_KERNELS,
    Scenario,
    cut,
    damaged_kernels,
    damaged_store,
    flip,
    forked,
    full_disk,
    halve,
    no_home,
    open_store,
    pickles_in_the_store,
    to_a_fifo,
    to_a_link,
)  # fmt: skip

__all__ = ["ERRORS", "FORGED", "PUBLISHED", "SCENARIOS"]

# ---- 1.3, imports and saved limits ----------------------------------------------------------------------------------


@contextmanager
def enter_new_folder() -> Iterator[Path]:
    """A new current folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def importing() -> None:
    """`%import` of a file beside the process."""
    with enter_new_folder() as folder:
        (folder / "secret.lark").write_text('A: "secret"\n', "utf-8")
        try:
            constrain.compile(BYTES, grammar="%import .secret.A\nstart: A\n")
        except constrain.ConstrainError:
            return
        raise Wrong("the text of a grammar reads ./secret.lark")


def forged(change: Callable[[dict[str, Any]], None]) -> Scenario:
    """A saved constraint is changed and signed anew."""

    def scenario() -> None:
        with enter_new_folder() as folder:
            path = folder / "saved"
            constrain.compile(BYTES, constrain.lark('start: "a"')).save(path)
            head, _, body = path.read_text("utf-8").partition("\n")
            value, about = json.loads(body), json.loads(head)
            change(value)
            text = json.dumps(value, sort_keys=True)
            about["digest"] = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
            path.write_text(json.dumps(about) + "\n" + text + "\n", "utf-8")
            (folder / "secret.lark").write_text('A: "secret"\n', "utf-8")
            made = Constraint.load(path, BYTES)
            if made.limits.dfa_states > constrain.Limits().dfa_states:
                raise Wrong("a saved file raises the limits")
            if b"s"[0] in made.matcher().next_bytes():
                raise Wrong("a saved file reads ./secret.lark")

    return scenario


def raise_limits(value: dict[str, Any]) -> None:
    """A billion states."""
    value.setdefault("limits", {})["dfa_states"] = 10**15


def import_paths(value: dict[str, Any]) -> None:
    """A grammar that imports, and where from."""
    form = value["source"]["form"]
    form.update({"text": "%import .secret.A\nstart: A\n", "import_paths": ["."]})


# ---- 1.4, 1.5: models -----------------------------------------------------------------------------------------------


def other_model() -> None:
    """A vocabulary of 257 tokens on logits 128,069 wide."""
    import torch

    processor = constrain.ConstraintLogitsProcessor(constrain.compile(BYTES, regex="a"))
    try:
        processor(torch.zeros((1, 1), dtype=torch.long), torch.zeros((1, 128_069)))
    except constrain.VocabularyError:
        return
    raise Wrong("a constraint of another vocabulary is accepted")


def guessed_ends() -> None:
    """End tokens are those that the tokenizer declares."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    pieces = {f"<0x{value:02X}>": value for value in range(256)}
    made = Tokenizer(models.BPE(vocab=pieces, merges=[], byte_fallback=True))
    from tokenizers import decoders

    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    made.add_special_tokens(["<|end_of_text|>", "<|eot_id|>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end_of_text|>")
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    if tuple(vocabulary.eos_ids) != (256,):
        raise Wrong(f"ends at {vocabulary.eos_ids}, the tokenizer says 256")


# ---- 1.10 to 1.13 ---------------------------------------------------------------------------------------------------


def empty_operands() -> None:
    """Forms with an operand that has no text, though the whole has."""
    nothing = constrain.gbnf('root ::= "a" root')
    for form, text in ((~nothing, b"x"), (nothing | constrain.literal("x"), b"x"), (nothing.repeat(0, 1) + "x", b"x")):
        matcher = constrain.compile(BYTES, form).matcher()
        matcher.advance_bytes(text)
        if not matcher.is_complete:
            raise Wrong(f"{form} refuses x")


def dialect_of_registry() -> None:
    """A registry document without `$schema` is read in the dialect of the document that refers to it."""
    old = "http://json-schema.org/draft-04/schema#"
    made = constrain.compile(
        BYTES,
        schema={"$schema": old, "$ref": "http://x.example/y"},
        registry={"http://x.example/y": {"minimum": 3, "exclusiveMinimum": True}},
    )
    if made.matcher().allows(ord("3")) and accepts_text(made, b"3"):
        raise Wrong("exclusiveMinimum of draft 4 is not read in a registry document")


def accepts_text(made: Constraint, text: bytes) -> bool:
    """Return whether the text is accepted."""
    matcher = made.matcher()
    try:
        matcher.advance_bytes(text)
    except constrain.TokenRefused:
        return False
    return matcher.is_complete


def mask_into() -> None:
    """`mask(out)` looks at its array each time."""
    matcher = constrain.compile(BYTES, schema={}).matcher()
    out = np.zeros(9, np.int32)
    matcher.mask(out)
    out.flags.writeable = False
    before = out.copy()
    matcher.advance_bytes(b"[")
    try:
        matcher.mask(out)
    except (TypeError, ValueError):
        pass
    else:
        raise Wrong("writes into an array that is read-only")
    if not np.array_equal(before, out):
        raise Wrong("changes an array that is read-only")
    small = np.zeros(9, np.int32)
    matcher.mask(small)
    small.resize(1, refcheck=False)
    try:
        matcher.mask(small)
    except (TypeError, ValueError):
        return
    raise Wrong("writes past an array that was resized")


def bytes_used() -> None:
    """A small Constraint says that it is small."""
    made = constrain.compile(BYTES, schema={"type": "integer"})
    made.matcher().mask()
    if made.bytes_used > 16 << 20:
        raise Wrong(f"{made.bytes_used >> 20:,} MiB for a schema of one keyword")


# ---- 3, errors ------------------------------------------------------------------------------------------------------


def refused(call: Callable[[], Any], *also: type[Exception]) -> Scenario:
    """Build a scenario: a call that ends in a ConstrainError or one of `also`, with a message that fits on a screen."""
    expected: tuple[type[Exception], ...] = (constrain.ConstrainError, *also)

    def scenario() -> None:
        try:
            call()
        except expected as error:
            if len(str(error)) > 5_000:
                raise Wrong(f"a message of {len(str(error)):,} characters") from None
            return
        raise Wrong("no error")

    return scenario


def saved_as(data: bytes) -> Callable[[], Any]:
    """Loading a file with that content."""

    def call() -> None:
        with enter_new_folder() as folder:
            (folder / "saved").write_bytes(data)
            Constraint.load(folder / "saved", BYTES)

    return call


def loaded_fifo() -> None:
    """`load` of a FIFO does not wait."""
    with enter_new_folder() as folder:
        os.mkfifo(folder / "saved")
        signal.signal(signal.SIGALRM, _stuck)
        signal.alarm(5)
        try:
            Constraint.load(folder / "saved", BYTES)
        except (constrain.ConstrainError, OSError):
            return
        finally:
            signal.alarm(0)
        raise Wrong("no error")


def _stuck(*_: Any) -> None:
    raise Wrong("blocks")


def saved_through_link() -> None:
    """`save` replaces a link instead of writing where it leads, and its file is private."""
    with enter_new_folder() as folder:
        target = folder / "target"
        target.write_text("keep", "utf-8")
        (folder / "saved").symlink_to(target)
        constrain.compile(BYTES, regex="a").save(folder / "saved")
        if target.read_text("utf-8") != "keep":
            raise Wrong("writes through a link")
        if (folder / "saved").stat().st_mode & 0o077:
            raise Wrong(f"mode {(folder / 'saved').stat().st_mode & 0o777:o}")


def many_schemas() -> None:
    """3,000 schemas, all different: memory stays within the caches' budgets."""
    held = 0.0
    for number in range(3_000):
        constrain.compile(BYTES, schema={"const": f"value {number}"}).matcher().mask()
        if number == 500:
            held = read_resident_memory()
    grown = read_resident_memory() - held
    if grown > 300:
        raise Wrong(f"{grown:.0f} MiB more after 2,500 schemas")


def keyword_arguments() -> None:
    """A schema cannot name options of ours: what looks like one is an unknown keyword."""
    made = constrain.compile(
        BYTES,
        schema={"style": "any", "limits": {"work": 10**18}, "type": "integer", "registry": {}, "__class__": "x"},
        style=Style(),
    )
    if not accepts_text(made, b"1"):
        raise Wrong("refuses 1")


DEEP = b"[" * 100_000
SCENARIOS: tuple[tuple[str, str, Scenario, float], ...] = (
    ("four children after fork", "faults 1.1", forked, 30.0),
    ("a store's files cut to half", "faults 1.2", damaged_store(halve), 30.0),
    ("a store's files cut to ten bytes", "faults 1.2", damaged_store(cut), 30.0),
    ("a store's files with a bit flipped", "faults 1.2", damaged_store(flip), 30.0),
    ("a store's files made links", "faults 1.2", damaged_store(to_a_link), 30.0),
    ("a store's files made FIFOs", "faults 1.2", damaged_store(to_a_fifo), 30.0),
    ("a store that anyone may write to", "faults 1.2", open_store, 30.0),
    ("compiled kernels cut to half", "faults 1.2", damaged_kernels(halve), NEEDS_KERNELS),
    ("%import of a file beside the process", "faults 1.3", importing, 10.0),
    ("logits of another model", "faults 1.4", other_model, 10.0),
    ("end tokens guessed by name", "faults 1.5", guessed_ends, 10.0),
    ("forms with an empty operand", "faults 1.10", empty_operands, 10.0),
    ("the dialect of a registry document", "faults 1.11", dialect_of_registry, 10.0),
    ("mask(out) of a changed array", "faults 1.12", mask_into, 10.0),
    ("bytes_used of a small constraint", "faults 1.13", bytes_used, 10.0),
)
"""Section 1 of faults.md: name, section, function, CPU seconds (also of the processes that it starts)."""
FORGED: tuple[tuple[str, str, Scenario, float], ...] = (
    ("a saved file with 10^15 states", "faults 1.3", forged(raise_limits), 10.0),
    ("a saved file with import_paths", "faults 1.3", forged(import_paths), 10.0),
)
"""Saved files that say more than they may: refused, or read without it."""
ERRORS: tuple[tuple[str, str, Scenario, float], ...] = (
    (
        "a registry key that is a number",
        "faults 3",
        refused(lambda: constrain.compile(BYTES, schema={}, registry={5: {}}), TypeError),  # type: ignore[dict-item]
        10.0,
    ),  # type: ignore[dict-item]
    ("compile('demo', ...)", "faults 3", refused(lambda: constrain.compile("demo", schema={}), TypeError), 10.0),  # type: ignore[arg-type]
    ("schema=Path(...)", "faults 3", refused(lambda: constrain.compile(BYTES, schema=Path("x.json")), TypeError), 10.0),
    ("type=len", "faults 3", refused(lambda: constrain.compile(BYTES, type=len), TypeError), 10.0),
    ("a saved file: a list", "faults 3", refused(saved_as(b"[]\n[]\n")), 10.0),
    ("a saved file, 100,000 deep", "faults 3", refused(saved_as(DEEP + b"\n" + DEEP)), 10.0),
    ("a saved file of zeros", "faults 3", refused(saved_as(bytes(1_000))), 10.0),
    ("a saved file that is a FIFO", "faults 3", loaded_fifo, 10.0),
    ("save through a link", "faults 3", saved_through_link, 10.0),
    ("a full store", "faults 3", full_disk, 30.0),
)
PUBLISHED: tuple[tuple[str, str, Scenario, float], ...] = (
    ("pickles in the store's folder", "CVE-2025-69872", pickles_in_the_store, 30.0),
    ("3,000 different schemas", "CVE-2025-32381", many_schemas, 60.0),
    ("options of ours as keywords", "CVE-2025-48944", keyword_arguments, 10.0),
    ("no HOME and nowhere to write", "CVE-2025-29770", no_home, 30.0),
)
