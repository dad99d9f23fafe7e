"""Hostile environments: other processes, foreign files, wrong models, wrong calls.

A scenario is a function without arguments. It returns if the behaviour is correct, raises a ConstrainError if that is
the correct answer, and `WrongAnswer` otherwise.
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
from tests.text_acceptance import accepts_text

from ..process_figures import read_resident_memory
from .answers import BYTES, WrongAnswer
from .store_scenarios import (
    NEEDS_KERNELS,
    Scenario,
    build_damaged_kernels,
    build_damaged_store,
    check_forked_children,
    check_full_disk,
    check_missing_home,
    check_pickles_in_store,
    check_world_writable_store,
    flip_bit,
    replace_with_fifo,
    replace_with_link,
    truncate_to_half,
    truncate_to_ten_bytes,
)  # fmt: skip

__all__ = ["ERRORS", "FORGED", "PUBLISHED", "SCENARIOS"]

# ---- 1.3, imports and saved limits ----------------------------------------------------------------------------------


@contextmanager
def enter_new_folder() -> Iterator[Path]:
    """Change the current folder to an empty temporary one for the block."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def check_import_of_file() -> None:
    """Compile a grammar that imports a file of the current folder, which must be refused."""
    with enter_new_folder() as folder:
        (folder / "secret.lark").write_text('A: "secret"\n', "utf-8")
        try:
            constrain.compile(BYTES, grammar="%import .secret.A\nstart: A\n")
        except constrain.ConstrainError:
            return
        raise WrongAnswer("the text of a grammar reads ./secret.lark")


def build_forged_save(change: Callable[[dict[str, Any]], None]) -> Scenario:
    """Return a scenario: load a saved constraint that was changed and whose digest was recomputed."""

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
                raise WrongAnswer("a saved file raises the limits")
            if b"s"[0] in made.matcher().next_bytes():
                raise WrongAnswer("a saved file reads ./secret.lark")

    return scenario


def forge_limits(value: dict[str, Any]) -> None:
    """Set the limit of states to 10^15."""
    value.setdefault("limits", {})["dfa_states"] = 10**15


def forge_import(value: dict[str, Any]) -> None:
    """Replace the grammar with one that imports from the current folder."""
    form = value["source"]["form"]
    form.update({"text": "%import .secret.A\nstart: A\n", "import_paths": ["."]})


# ---- 1.4, 1.5: models -----------------------------------------------------------------------------------------------


def check_logits_of_other_model() -> None:
    """Apply a constraint over 257 tokens to logits of width 128,069, which must be refused."""
    import torch

    processor = constrain.ConstraintLogitsProcessor(constrain.compile(BYTES, regex="a"))
    try:
        processor(torch.zeros((1, 1), dtype=torch.long), torch.zeros((1, 128_069)))
    except constrain.VocabularyError:
        return
    raise WrongAnswer("a constraint of another vocabulary is accepted")


def check_declared_end_tokens() -> None:
    """Read a tokenizer with a special token named like an end token: only the declared one must end a text."""
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
        raise WrongAnswer(f"ends at {vocabulary.eos_ids}, the tokenizer says 256")


# ---- 1.10 to 1.13 ---------------------------------------------------------------------------------------------------


def check_empty_operands() -> None:
    """Compile forms with an operand of the empty language, whose result is not empty."""
    nothing = constrain.gbnf('root ::= "a" root')
    for form, text in ((~nothing, b"x"), (nothing | constrain.literal("x"), b"x"), (nothing.repeat(0, 1) + "x", b"x")):
        matcher = constrain.compile(BYTES, form).matcher()
        matcher.advance_bytes(text)
        if not matcher.is_complete:
            raise WrongAnswer(f"{form} refuses x")


def check_registry_dialect() -> None:
    """Refer to a registry document without `$schema`, which has the dialect of the referring document."""
    old = "http://json-schema.org/draft-04/schema#"
    made = constrain.compile(
        BYTES,
        schema={"$schema": old, "$ref": "http://x.example/y"},
        registry={"http://x.example/y": {"minimum": 3, "exclusiveMinimum": True}},
    )
    if made.matcher().allows(ord("3")) and accepts_text(made, b"3"):
        raise WrongAnswer("exclusiveMinimum of draft 4 is not read in a registry document")


def check_mask_array() -> None:
    """Call `mask(out)` with an array that became read-only or was resized; it must be checked each time."""
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
        raise WrongAnswer("writes into an array that is read-only")
    if not np.array_equal(before, out):
        raise WrongAnswer("changes an array that is read-only")
    small = np.zeros(9, np.int32)
    matcher.mask(small)
    small.resize(1, refcheck=False)
    try:
        matcher.mask(small)
    except (TypeError, ValueError):
        return
    raise WrongAnswer("writes past an array that was resized")


def check_bytes_used() -> None:
    """Check that `bytes_used` of a small Constraint is small."""
    made = constrain.compile(BYTES, schema={"type": "integer"})
    made.matcher().mask()
    if made.bytes_used > 16 << 20:
        raise WrongAnswer(f"{made.bytes_used >> 20:,} MiB for a schema of one keyword")


# ---- 3, errors ------------------------------------------------------------------------------------------------------


def build_refusal(call: Callable[[], Any], *also: type[Exception]) -> Scenario:
    """Return a scenario: a call must raise a ConstrainError or one of `also`, with a message of at most
    5,000 characters.
    """
    expected: tuple[type[Exception], ...] = (constrain.ConstrainError, *also)

    def scenario() -> None:
        try:
            call()
        except expected as error:
            if len(str(error)) > 5_000:
                raise WrongAnswer(f"a message of {len(str(error)):,} characters") from None
            return
        raise WrongAnswer("no error")

    return scenario


def build_load(data: bytes) -> Callable[[], Any]:
    """Return a call that loads a file with this content."""

    def call() -> None:
        with enter_new_folder() as folder:
            (folder / "saved").write_bytes(data)
            Constraint.load(folder / "saved", BYTES)

    return call


def check_load_of_fifo() -> None:
    """Call `load` with a FIFO, which must not block."""
    with enter_new_folder() as folder:
        os.mkfifo(folder / "saved")
        signal.signal(signal.SIGALRM, _raise_blocked)
        signal.alarm(5)
        try:
            Constraint.load(folder / "saved", BYTES)
        except (constrain.ConstrainError, OSError):
            return
        finally:
            signal.alarm(0)
        raise WrongAnswer("no error")


def _raise_blocked(*_: Any) -> None:
    raise WrongAnswer("blocks")


def check_save_through_link() -> None:
    """Call `save` with a symbolic link, which must be replaced by a private file."""
    with enter_new_folder() as folder:
        target = folder / "target"
        target.write_text("keep", "utf-8")
        (folder / "saved").symlink_to(target)
        constrain.compile(BYTES, regex="a").save(folder / "saved")
        if target.read_text("utf-8") != "keep":
            raise WrongAnswer("writes through a link")
        if (folder / "saved").stat().st_mode & 0o077:
            raise WrongAnswer(f"mode {(folder / 'saved').stat().st_mode & 0o777:o}")


def check_memory_of_many_schemas() -> None:
    """Compile 3,000 different schemas; memory must stay within the budgets of the caches."""
    held = 0.0
    for number in range(3_000):
        constrain.compile(BYTES, schema={"const": f"value {number}"}).matcher().mask()
        if number == 500:
            held = read_resident_memory()
    grown = read_resident_memory() - held
    if grown > 300:
        raise WrongAnswer(f"{grown:.0f} MiB more after 2,500 schemas")


def check_keywords_named_like_options() -> None:
    """Compile a schema with keys named like options of `compile`, which are unknown keywords."""
    made = constrain.compile(
        BYTES,
        schema={"style": "any", "limits": {"work": 10**18}, "type": "integer", "registry": {}, "__class__": "x"},
        style=Style(),
    )
    if not accepts_text(made, b"1"):
        raise WrongAnswer("refuses 1")


DEEP = b"[" * 100_000
SCENARIOS: tuple[tuple[str, str, Scenario, float], ...] = (
    ("four children after fork", "faults 1.1", check_forked_children, 30.0),
    ("a store's files cut to half", "faults 1.2", build_damaged_store(truncate_to_half), 30.0),
    ("a store's files cut to ten bytes", "faults 1.2", build_damaged_store(truncate_to_ten_bytes), 30.0),
    ("a store's files with a bit flipped", "faults 1.2", build_damaged_store(flip_bit), 30.0),
    ("a store's files made links", "faults 1.2", build_damaged_store(replace_with_link), 30.0),
    ("a store's files made FIFOs", "faults 1.2", build_damaged_store(replace_with_fifo), 30.0),
    ("a store that anyone may write to", "faults 1.2", check_world_writable_store, 30.0),
    ("compiled kernels cut to half", "faults 1.2", build_damaged_kernels(truncate_to_half), NEEDS_KERNELS),
    ("%import of a file beside the process", "faults 1.3", check_import_of_file, 10.0),
    ("logits of another model", "faults 1.4", check_logits_of_other_model, 10.0),
    ("end tokens guessed by name", "faults 1.5", check_declared_end_tokens, 10.0),
    ("forms with an empty operand", "faults 1.10", check_empty_operands, 10.0),
    ("the dialect of a registry document", "faults 1.11", check_registry_dialect, 10.0),
    ("mask(out) of a changed array", "faults 1.12", check_mask_array, 10.0),
    ("bytes_used of a small constraint", "faults 1.13", check_bytes_used, 10.0),
)
"""Section 1 of faults.md: (name, section, scenario, CPU seconds with those of its child processes)."""
FORGED: tuple[tuple[str, str, Scenario, float], ...] = (
    ("a saved file with 10^15 states", "faults 1.3", build_forged_save(forge_limits), 10.0),
    ("a saved file with import_paths", "faults 1.3", build_forged_save(forge_import), 10.0),
)
"""Saved files that claim more than is allowed: refused, or loaded without the claim."""
ERRORS: tuple[tuple[str, str, Scenario, float], ...] = (
    (
        "a registry key that is a number",
        "faults 3",
        build_refusal(lambda: constrain.compile(BYTES, schema={}, registry={5: {}}), TypeError),  # type: ignore[dict-item]
        10.0,
    ),  # type: ignore[dict-item]
    ("compile('demo', ...)", "faults 3", build_refusal(lambda: constrain.compile("demo", schema={}), TypeError), 10.0),  # type: ignore[arg-type]
    (
        "schema=Path(...)",
        "faults 3",
        build_refusal(lambda: constrain.compile(BYTES, schema=Path("x.json")), TypeError),
        10.0,
    ),
    ("type=len", "faults 3", build_refusal(lambda: constrain.compile(BYTES, type=len), TypeError), 10.0),
    ("a saved file: a list", "faults 3", build_refusal(build_load(b"[]\n[]\n")), 10.0),
    ("a saved file, 100,000 deep", "faults 3", build_refusal(build_load(DEEP + b"\n" + DEEP)), 10.0),
    ("a saved file of zeros", "faults 3", build_refusal(build_load(bytes(1_000))), 10.0),
    ("a saved file that is a FIFO", "faults 3", check_load_of_fifo, 10.0),
    ("save through a link", "faults 3", check_save_through_link, 10.0),
    ("a full store", "faults 3", check_full_disk, 30.0),
)
PUBLISHED: tuple[tuple[str, str, Scenario, float], ...] = (
    ("pickles in the store's folder", "CVE-2025-69872", check_pickles_in_store, 30.0),
    ("3,000 different schemas", "CVE-2025-32381", check_memory_of_many_schemas, 60.0),
    ("options of ours as keywords", "CVE-2025-48944", check_keywords_named_like_options, 10.0),
    ("no HOME and nowhere to write", "CVE-2025-29770", check_missing_home, 30.0),
)
