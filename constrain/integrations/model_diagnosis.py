"""Check a model and its tokenizer together: what is right, what is not, why it matters, and what to set.

    diagnose_model("folder")  ->  ModelDiagnosis(findings, vocabulary)

Nothing is run: of the weights only the headers of the safetensors files are read, which hold the shapes. Each check
returns exactly one Finding, so that a report always has the same lines.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from .. import demo
from ..base.errors import ConstrainError, VocabularyError, VocabularyWarning, shorten_text
from ..vocabulary.vocabulary import Vocabulary
from .end_tokens import ids_of
from .model_files import check_file, read_object
from .model_hub import foreign_errors, is_hub_id
from .pretrained_vocabularies import from_pretrained, hub_config, load_transformers, read_ends, read_size, text_config
from .vocabulary_match import most_padding

__all__ = ["Finding", "ModelDiagnosis", "diagnose_model"]

MOST_HEADER = 64 << 20
"""Maximum number of bytes of the header of a safetensors file."""
HEADS = ("lm_head.weight", "embed_out.weight", "output.weight")
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "shared.weight", "word_embeddings.weight", "embed_in.weight")
PROBE = "constrain-doctor-probe"
Status = Literal["fine", "note", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    check : str
        What was checked.
    status : {"fine", "note", "fault"}
        "fault": texts would be wrong or refused until something is set. "note": good to know.
    what, why, setting : str
        What was found; why it matters; what to set. The last two are empty if nothing is to be done.
    """

    check: str
    status: Status
    what: str
    why: str = ""
    setting: str = ""


@dataclass(frozen=True, slots=True)
class ModelDiagnosis:
    """All findings about a model. vocabulary: None if it could not be derived."""

    name: str
    findings: tuple[Finding, ...]
    vocabulary: Vocabulary | None = None

    @property
    def is_fine(self) -> bool:
        """Whether no check found a fault."""
        return all(one.status != "fault" for one in self.findings)


@dataclass
class _Parts:
    """What is known of a model. Missing parts are None or empty, and their checks say so."""

    name: str
    folder: Path | None
    generation: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Any = None
    vocabulary: Vocabulary | None = None
    error: ConstrainError | None = None
    warned: tuple[str, ...] = ()
    head: int | None = None
    embedding: int | None = None


def diagnose_model(source: str | PathLike[str]) -> ModelDiagnosis:
    """Check a model by name: "demo", "bytes" (the vocabulary of single bytes), a folder, a hub id, or a tokenizer file.

    Raises
    ------
    VocabularyError
        If there is no such model, or it has neither a tokenizer nor a config.
    """
    parts = read_parts(source)
    checks = (
        check_bytes, check_coverage, check_ends, check_turn_end, check_padding_token, check_leading_space,
        check_begin_token, check_chat_template, check_widths, check_context,
    )  # fmt: skip
    return ModelDiagnosis(parts.name, tuple(check(parts) for check in checks), parts.vocabulary)


# ---- reading -----------------------------------------------------------------------------------------------------


def read_parts(source: str | PathLike[str]) -> _Parts:
    """Read whatever there is of a model."""
    name = str(source)
    path = demo.model_folder() if name == "demo" and not Path(name).exists() else Path(name).expanduser()
    is_folder = path.is_dir()
    parts = _Parts(name, path if is_folder else None)
    if name == "bytes" and not path.exists():
        parts.vocabulary = Vocabulary.bytes()
        return parts
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VocabularyWarning)
        try:
            parts.vocabulary = from_pretrained(path if name == "demo" else source)
        except VocabularyError as error:
            if not is_folder or not (path / "config.json").is_file():
                raise
            parts.error = error
    parts.warned = tuple(str(one.message) for one in caught if issubclass(one.category, VocabularyWarning))
    if is_folder:
        parts.generation = read_object(path / "generation_config.json")
        parts.config = read_object(path / "config.json")
        parts.head, parts.embedding = read_widths(path)
    elif not path.exists() and is_hub_id(name):
        parts.generation, parts.config = hub_config(name, "generation_config"), hub_config(name, "config")
    if is_folder or not path.exists():
        try:
            parts.tokenizer = load_transformers(str(path) if is_folder else name, local=is_folder)
        except VocabularyError as error:
            parts.error = parts.error or error
    return parts


def read_widths(folder: Path) -> tuple[int | None, int | None]:
    """Return the number of rows of the output head and of the embedding, as the weights have them; None if unknown."""
    head = embedding = None
    for file in sorted(folder.glob("*.safetensors")):
        for name, entry in read_header(file).items():
            shape = entry.get("shape") if isinstance(entry, dict) else None
            if not (isinstance(shape, list) and len(shape) == 2 and isinstance(shape[0], int)):
                continue
            if name in HEADS or name.endswith(tuple(f".{one}" for one in HEADS)):
                head = shape[0]
            elif name in EMBEDDINGS or name.endswith(tuple(f".{one}" for one in EMBEDDINGS)):
                embedding = shape[0]
    return head, embedding


def read_header(file: Path) -> dict[str, Any]:
    """Return the header of a safetensors file, which has the shapes of its tensors. Raise VocabularyError."""
    with foreign_errors(f"{shorten_text(file)} is not a safetensors file"), open(check_regular(file), "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > MOST_HEADER:
            raise VocabularyError(f"{shorten_text(file)} is not a safetensors file: its header has {length:,} bytes")
        header = json.loads(stream.read(length))
    return header if isinstance(header, dict) else {}


def check_regular(file: Path) -> Path:
    """Return a regular file of any size. Raise VocabularyError for others, which could block."""
    return file if file.is_file() else check_file(file)


# ---- checks: tokens ----------------------------------------------------------------------------------------------


def check_bytes(parts: _Parts) -> Finding:
    """The bytes of the tokens spell what the tokenizer encodes."""
    if parts.vocabulary is None:
        cause = parts.error.cause if parts.error is not None else "the vocabulary could not be read"
        hint = parts.error.hint if parts.error is not None else ""
        why = "constrain masks bytes: without the bytes of the tokens nothing can be constrained."
        return Finding("bytes of tokens", "fault", cause, why, hint or "Use a byte-exact tokenizer.")
    texts = [token for token in parts.vocabulary.tokens if token]
    repeats = sum(count - 1 for count in Counter(texts).values())
    what = (
        f"{len(texts):,} of {parts.vocabulary.size:,} tokens have text, {repeats} repeats; they spell what is encoded"
    )
    return Finding("bytes of tokens", "fine", what)


def check_coverage(parts: _Parts) -> Finding:
    """Every text can be spelled."""
    if parts.vocabulary is None:
        return unknown("coverage")
    missing = sorted(parts.vocabulary.missing_bytes)
    if not missing:
        return Finding("coverage", "fine", "every text can be spelled")
    listed = ", ".join(f"0x{byte:02x}" for byte in missing[:8]) + (", …" if len(missing) > 8 else "")
    ascii_missing = [byte for byte in missing if 0x20 <= byte < 0x7F]
    why = "Texts that need these bytes cannot be written; masks leave them out, and such constants are refused."
    return Finding(
        "coverage", "fault" if ascii_missing else "note", f"{len(missing)} bytes have no token: {listed}", why,
        "Use a tokenizer with byte fallback, or keep these characters out of constants and enum values.",
    )  # fmt: skip


def check_ends(parts: _Parts) -> Finding:
    """The end tokens that the tokenizer, the config and the generation config declare agree."""
    name = "end tokens"
    if parts.vocabulary is None:
        return unknown(name)
    declared = {
        "generation_config.json": read_ends(parts.generation, {}), "config.json": read_ends({}, parts.config),
        "the tokenizer": ids_of(getattr(parts.tokenizer, "eos_token_id", None)),
    }  # fmt: skip
    said = {source: ids for source, ids in declared.items() if ids}
    used = [name_token(parts.vocabulary, index) for index in parts.vocabulary.eos_ids]
    width = parts.vocabulary.size
    wrong = {source: [index for index in ids if not 0 <= index < width] for source, ids in said.items()}
    for source, ids in wrong.items():
        if ids:
            return Finding(
                name, "fault", f"{source} declares {ids}, and there are {width:,} tokens",
                "A model that can never write its end token never ends a text by itself.",
                f"Correct eos_token_id in {source}, or give eos_ids=[...].",
            )  # fmt: skip
    if len({tuple(sorted(ids)) for ids in said.values()}) > 1:
        listed = "; ".join(f"{source}: {ids}" for source, ids in said.items())
        return Finding(
            name, "note", f"they are declared differently ({listed}); {', '.join(used)} are used",
            "Each of them ends a text. One that the model never writes does no harm; a missing one makes texts run on.",
            "If that is not right, give eos_ids=[...].",
        )  # fmt: skip
    return Finding(name, "fine", ", ".join(used))


def check_turn_end(parts: _Parts) -> Finding:
    """The token with which the chat template ends an answer is an end token."""
    name = "end of a turn"
    vocabulary, tokenizer = parts.vocabulary, parts.tokenizer
    if vocabulary is None or not getattr(tokenizer, "chat_template", None):
        return Finding(name, "fine", "no chat template, so a text ends with an end token")
    try:
        after = render_turn(tokenizer)
    except Exception as error:  # of the template language, by its version: reported by check_chat_template
        return Finding(name, "note", f"not known: the chat template fails ({shorten_text(error, 80)})")
    written = next((token for token in vocabulary.special if after.lstrip().startswith(token)), None)
    if written is None:
        return Finding(name, "fine", "the chat template ends an answer without a special token")
    index = vocabulary.special[written]
    if index in vocabulary.eos_ids:
        return Finding(name, "fine", f"the chat template ends an answer with {written}, which is an end token")
    ids = sorted({*vocabulary.eos_ids, index})
    return Finding(
        name, "fault", f"the chat template ends an answer with {written} ({index}), which is no end token",
        "A chat model writes it where its answer is complete. The mask refuses it there, so the model goes on.",
        f"Give eos_ids={ids}, or set eos_token_id in generation_config.json.",
    )  # fmt: skip


def render_turn(tokenizer: Any) -> str:
    """Return what the chat template writes after an answer."""
    turn = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": PROBE}]
    text = tokenizer.apply_chat_template(turn, tokenize=False)
    return str(text.rpartition(PROBE)[2])


def check_padding_token(parts: _Parts) -> Finding:
    """There is a padding token, inside the vocabulary, and padding is on the left."""
    name, tokenizer = "padding", parts.tokenizer
    if tokenizer is None or parts.vocabulary is None:
        return unknown(name)
    why = "Only batches of transformers' own generate need it; constrain.generate and Engine do not pad."
    pad = getattr(tokenizer, "pad_token_id", None)
    if pad is None:
        return Finding(name, "note", "there is no padding token", why, "tokenizer.pad_token = tokenizer.eos_token")
    if not 0 <= pad < parts.vocabulary.size:
        return Finding(
            name, "fault", f"the padding token {pad} is outside of the {parts.vocabulary.size:,} logits",
            "The model has no embedding for it: a padded batch fails or reads other memory.",
            "Choose another pad_token, or resize the embeddings of the model.",
        )  # fmt: skip
    is_decoder = not parts.config.get("is_encoder_decoder", False)
    if is_decoder and getattr(tokenizer, "padding_side", "left") == "right":
        return Finding(
            name, "note", f"token {pad}, on the right", f"A text after padding on the right is nonsense. {why}",
            'tokenizer.padding_side = "left"',
        )  # fmt: skip
    return Finding(name, "fine", f"{name_token(parts.vocabulary, pad)}, on the {tokenizer.padding_side}")


def check_leading_space(parts: _Parts) -> Finding:
    """Whether the tokenizer's own decoding drops a space at the start of a text."""
    if parts.vocabulary is None:
        return unknown("leading space")
    if parts.vocabulary.leading_space == "kept":
        return Finding("leading space", "fine", "kept")
    return Finding(
        "leading space", "note", "the tokenizer's own decoding drops one space at the start of a text",
        "constrain keeps it: its texts are byte for byte what the constraint accepted.",
        "Read Generation.text or Vocabulary.text, not tokenizer.decode.",
    )  # fmt: skip


# ---- checks: the model -------------------------------------------------------------------------------------------


def check_begin_token(parts: _Parts) -> Finding:
    """A chat template that writes the begin token is not combined with a tokenizer that adds one."""
    name, tokenizer = "begin token", parts.tokenizer
    if tokenizer is None:
        return unknown(name)
    begin = getattr(tokenizer, "bos_token", None)
    if not begin:
        return Finding(name, "fine", "none: prompts are encoded as they are")
    with foreign_errors("the tokenizer cannot encode a text"):
        adds = list(tokenizer("hi")["input_ids"])[:1] == [tokenizer.bos_token_id]
    template = getattr(tokenizer, "chat_template", None)
    try:
        writes = bool(template) and render_turn_start(tokenizer).startswith(begin)
    except Exception as error:
        return Finding(name, "note", f"not known: the chat template fails ({shorten_text(error, 80)})")
    if adds and writes:
        return Finding(
            name, "note", f"{begin} is written by the chat template and added by the tokenizer",
            "A text that you rendered yourself and pass as a prompt then begins with it twice.",
            "Pass messages, not the rendered text; or remove the first one.",
        )  # fmt: skip
    return Finding(name, "fine", f"{begin}, {'added to' if adds else 'not added to'} prompts")


def render_turn_start(tokenizer: Any) -> str:
    """Return a rendered chat."""
    return str(tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False))


def check_chat_template(parts: _Parts) -> Finding:
    """The chat template renders messages, and opens the answer."""
    name, tokenizer = "chat template", parts.tokenizer
    if tokenizer is None:
        return unknown(name)
    if not getattr(tokenizer, "chat_template", None):
        return Finding(
            name, "note", "there is none", "Prompts are used unchanged, and messages are refused.",
            "For a chat model, copy tokenizer_config.json (chat_template) from its original folder.",
        )  # fmt: skip
    turn = [{"role": "user", "content": PROBE}]
    try:
        closed = str(tokenizer.apply_chat_template(turn, tokenize=False))
        opened = str(tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))
    except Exception as error:  # jinja2's, or whatever the template raises
        return Finding(
            name, "fault", f"it fails: {shorten_text(error, 120)}", "Prompts of messages raise this error.",
            "Correct chat_template in tokenizer_config.json.",
        )  # fmt: skip
    if PROBE not in closed:
        return Finding(
            name, "fault", "it leaves out the message of the user", "The model never sees the prompt.",
            "Correct chat_template in tokenizer_config.json.",
        )  # fmt: skip
    if opened == closed:
        return Finding(
            name, "note", "it ignores add_generation_prompt",
            "The model may continue the message of the user instead of answering it.",
            "Let it write the beginning of the assistant's turn if add_generation_prompt is true.",
        )  # fmt: skip
    return Finding(name, "fine", "renders messages, and opens the answer")


def check_widths(parts: _Parts) -> Finding:
    """The weights, the config and the tokenizer agree on the number of tokens."""
    name = "widths"
    configured = read_size(parts.generation, parts.config)
    width = parts.head or parts.embedding or configured
    if width is None:
        return Finding(name, "note", "not known: there is no config.json", "", "Give the folder of the model.")
    source = "the output head has" if parts.head else "the embedding has" if parts.embedding else "config.json says"
    if configured is not None and configured != width:
        return Finding(
            name, "fault", f"{source} {width:,} rows, and config.json says {configured:,}",
            "The model cannot be loaded as it is, or some of its logits belong to no token.",
            f'Set "vocab_size": {width} in config.json.',
        )  # fmt: skip
    tokens = len(parts.tokenizer) if parts.tokenizer is not None else None
    if tokens is None and parts.vocabulary is not None:
        tokens = sum(token is not None for token in parts.vocabulary.tokens)
    if tokens is None:
        return unknown(name)
    if tokens > width:
        return Finding(
            name, "fault", f"the tokenizer has {tokens:,} tokens, and the model {width:,} logits",
            "Tokens beyond the logits cannot be written, and crash the model in a prompt.",
            f"Use the tokenizer of this model, or model.resize_token_embeddings({tokens}).",
        )  # fmt: skip
    if width - tokens > most_padding(tokens):
        return Finding(
            name, "fault", f"the model has {width:,} logits, and the tokenizer {tokens:,} tokens",
            "That is more than padding explains: the tokenizer is probably that of another model.",
            "Use the tokenizer of this model.",
        )  # fmt: skip
    padding = f", {width - tokens:,} of them padding, which the mask never allows" if width > tokens else ""
    return Finding(name, "fine", f"{width:,} logits{padding}")


def check_context(parts: _Parts) -> Finding:
    """The tokenizer's idea of the longest input is not longer than what the model has positions for."""
    name = "context"
    config = {**parts.config, **text_config(parts.config)}
    positions = next((config[key] for key in ("max_position_embeddings", "n_positions") if key in config), None)
    if not isinstance(positions, int):
        return Finding(name, "fine", "config.json states no limit")
    longest = getattr(parts.tokenizer, "model_max_length", None)
    if isinstance(longest, int) and positions < longest < 10**9:
        return Finding(
            name, "note", f"the model has {positions:,} positions, and the tokenizer allows {longest:,} tokens",
            "The tokenizer does not warn of a prompt that is too long; constrain refuses it.",
            f"tokenizer.model_max_length = {positions}",
        )  # fmt: skip
    return Finding(name, "fine", f"{positions:,} positions for prompt and text")


def unknown(check: str) -> Finding:
    """Return the finding of a check whose parts are missing."""
    return Finding(check, "note", "not checked: a part that it needs is missing")


def name_token(vocabulary: Vocabulary, index: int) -> str:
    """Return the id and the name of a special token."""
    name = next((name for name, token in vocabulary.special.items() if token == index), "")
    return f"{index} {name}".rstrip()
