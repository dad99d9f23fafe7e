"""Vocabularies by name: the folder of a model, a hub id, or one tokenizer file.

transformers reads folders and hub ids; without it, or where it fails, tokenizer files are recognised by their names.
The configs of the model supply what the tokenizer does not declare: end tokens and the width of the logits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from .. import demo
from ..base.errors import VocabularyError, shorten_text
from ..vocabulary.vocabulary import Vocabulary
from .end_tokens import ids_of
from .model_files import check_file, read_object
from .model_hub import foreign_errors, locally_first
from .model_names import check_model_name
from .token_files import from_mistral, from_tiktoken
from .tokenizer_json_check import check_tokenizer_json
from .tokenizer_objects import from_tokenizer

__all__ = ["from_pretrained", "read_ends", "read_size"]

SOURCES = 'Give "demo", the folder of a model, a tokenizer file, or the id of a model on the hub.'


def from_pretrained(
    source: str | PathLike[str], *, size: int | None = None, eos_ids: Iterable[int] | None = None
) -> Vocabulary:
    """See `Vocabulary.from_pretrained`."""
    if not isinstance(source, (str, PathLike)) or isinstance(source, bytes):
        raise TypeError(
            f"source is a {type(source).__name__}: give a folder, a file, the id of a model or 'demo'; "
            "Vocabulary.from_tokenizer takes a loaded tokenizer"
        )
    try:
        path = Path(source).expanduser()
        if source == "demo" and not path.exists():
            path = demo_folder()
        if path.is_dir():
            return from_folder(path, size=size, eos_ids=eos_ids)
        if path.exists():
            return from_file(path, size=size, eos_ids=eos_ids)
    except (OSError, ValueError, RuntimeError) as error:  # a name that no file can have; no home folder
        raise VocabularyError(f"{shorten_text(repr(source))} cannot be read: {shorten_text(error)}") from error
    name = str(source)
    if path.suffix in {".json", ".model", ".tiktoken"}:
        raise VocabularyError(f"there is no file or folder {shorten_text(name)}", hint=SOURCES)
    check_model_name(name, VocabularyError, SOURCES, "file or folder")
    tokenizer = locally_first(name, partial(load_transformers, name))
    documents = [hub_config(name, which) for which in ("generation_config", "config")]
    return with_config(tokenizer, documents, size=size, eos_ids=eos_ids)


def demo_folder() -> Path:
    """Return the folder of the embedded model."""

    return demo.model_folder()


def from_file(path: Path, *, size: int | None, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Return the Vocabulary of one tokenizer file, recognised by its name."""
    if path.suffix == ".tiktoken":
        return from_tiktoken(path, size=size, eos_ids=eos_ids)
    check_file(path)
    if ".model" in path.name or (path.suffix == ".json" and "tekken" in path.name):
        return from_mistral(path, size=size, eos_ids=eos_ids)
    if path.suffix == ".json":
        return from_tokenizer(load_fast(path), size=size, eos_ids=eos_ids)
    raise VocabularyError(
        f"{path} is not a tokenizer file with a name that constrain knows",
        hint="Known: tokenizer.json, tekken*.json, *.model, *.tiktoken, or the folder of a model.",
    )


def from_folder(path: Path, *, size: int | None, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Return the Vocabulary of a model's folder: through transformers if possible, else from its tokenizer files."""
    documents: list[Mapping[str, Any]] = [
        read_object(path / f"{which}.json") for which in ("generation_config", "config")
    ]
    trouble: VocabularyError | None = None
    if (path / "tokenizer_config.json").is_file() or (path / "config.json").is_file():
        try:
            for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
                if (path / name).exists():
                    check_file(path / name)
            check_tokenizer_json(read_object(path / "tokenizer.json"), path / "tokenizer.json")
            tokenizer = load_transformers(str(path), local=True)
        except VocabularyError as error:
            trouble = error
        else:
            return with_config(tokenizer, documents, size=size, eos_ids=eos_ids)
    for pattern in ("tokenizer.json", "tekken*.json", "tokenizer.model*", "*.model", "*.tiktoken"):
        for file in sorted(path.glob(pattern)):
            if pattern == "tokenizer.json":
                fast = load_fast(file)
                if eos_ids is None:
                    eos_ids = {*read_ends(*documents), *declared_in(path, fast)} or None
                return from_tokenizer(fast, size=size or read_size(*documents), eos_ids=eos_ids)
            ends = read_ends(*documents) or None if eos_ids is None else eos_ids
            return from_file(file, size=size or read_size(*documents), eos_ids=ends)
    raise trouble or VocabularyError(
        f"{path} holds no tokenizer", hint="Looked for tokenizer.json, tekken*.json, *.model, *.tiktoken."
    )


def with_config(
    tokenizer: Any,
    documents: Sequence[Mapping[str, Any]],
    *,
    size: int | None,
    eos_ids: Iterable[int] | None,
) -> Vocabulary:
    """Return the Vocabulary of a tokenizer, with end tokens and width of the logits from the configs of its model."""
    if eos_ids is None and (declared := read_ends(*documents)):
        own_id = getattr(tokenizer, "eos_token_id", None)
        eos_ids = {*declared, *ids_of(own_id)}
    return from_tokenizer(tokenizer, size=size or read_size(*documents), eos_ids=eos_ids)


def declared_in(path: Path, fast: Any) -> list[int]:
    """Return the end token that `tokenizer_config.json` declares for a tokenizer that was read without transformers."""
    declared = read_object(path / "tokenizer_config.json").get("eos_token")
    text = declared.get("content") if isinstance(declared, dict) else declared
    return ids_of(fast.token_to_id(text)) if isinstance(text, str) else []


def read_ends(generation_config: Mapping[str, Any], config: Mapping[str, Any]) -> list[int]:
    """Return `eos_token_id` of a model: of its generation config, else of its config (or the text part of it)."""
    for document in (generation_config, config, text_config(config)):
        if ends := ids_of(document.get("eos_token_id")):
            return ends
    return []


def read_size(generation_config: Mapping[str, Any], config: Mapping[str, Any]) -> int | None:
    """Return the width of a model's logits according to its config, or None."""
    for document in (config, text_config(config)):
        if isinstance(size := document.get("vocab_size"), int) and size > 0:
            return size
    return None


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the text part of a config, for models that also read images; {} if there is none."""
    nested = config.get("text_config")
    return nested if isinstance(nested, Mapping) else {}


def load_transformers(source: str, local: bool = False) -> Any:
    """Load the tokenizer of a folder or hub id. Raise VocabularyError if transformers is missing or cannot read it.

    local: whether to read the disk only. Code that comes with a tokenizer is never run.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise VocabularyError(
            f"{source} names a model, and the package that loads its tokenizer is missing",
            hint='pip install "constrain-lm[transformers]"',
        ) from error
    with foreign_errors(
        f"transformers cannot load a tokenizer from {shorten_text(source)}",
        SOURCES,
    ):
        return AutoTokenizer.from_pretrained(source, local_files_only=local, trust_remote_code=False)


def hub_config(source: str, which: str) -> Mapping[str, Any]:
    """Return a config of a model on the hub, or {} if it has none or cannot be reached."""
    from transformers.utils import cached_file

    def load(local: bool) -> Any:
        with foreign_errors(f"{source} has no {which}.json"):
            return cached_file(source, f"{which}.json", local_files_only=local)

    try:
        file = locally_first(f"{which}.json of {source}", load)
    except VocabularyError:
        return {}
    return read_object(Path(file)) if file else {}


def load_fast(path: Path) -> Any:
    """Load a tokenizer.json with the tokenizers package."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise VocabularyError(
            f"{path} needs the package that reads it", hint='pip install "constrain-lm[transformers]"'
        ) from error
    with foreign_errors(f"{shorten_text(path)} is not a tokenizer.json"):
        check_tokenizer_json(read_object(check_file(path)), path)
        return Tokenizer.from_file(str(path))
