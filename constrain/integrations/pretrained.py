"""Vocabularies by name: the folder of a model, a hub id, or one tokenizer file.

transformers reads folders and hub ids; without it, or where it cannot, the tokenizer files are read by their
names. The configs of the model are asked for what the tokenizer does not know: end tokens, width of the logits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import VocabularyError
from ..tokens.vocabulary import Vocabulary
from .token_files import existing, from_mistral, from_tiktoken
from .tokenizers import from_tokenizer, ids_of

__all__ = ["from_pretrained", "read_ends", "read_size"]


def from_pretrained(
    source: str | PathLike[str], *, size: int | None = None, eos_ids: Iterable[int] | None = None
) -> Vocabulary:
    """See `Vocabulary.from_pretrained`."""
    path = Path(source).expanduser()
    if path.is_dir():
        return from_folder(path, size=size, eos_ids=eos_ids)
    if path.is_file():
        return from_file(path, size=size, eos_ids=eos_ids)
    name = str(source)
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or path.suffix in {".json", ".model", ".tiktoken"}:
        raise VocabularyError(f"there is no file or folder {name}")
    tokenizer = load_transformers(name)
    documents = [hub_config(name, which) for which in ("generation_config", "config")]
    return with_config(tokenizer, documents, size=size, eos_ids=eos_ids)


def from_file(path: Path, *, size: int | None, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Of one tokenizer file, by its name."""
    if path.suffix == ".tiktoken":
        return from_tiktoken(path, size=size, eos_ids=eos_ids)
    if ".model" in path.name or (path.suffix == ".json" and "tekken" in path.name):
        return from_mistral(path, size=size, eos_ids=eos_ids)
    if path.suffix == ".json":
        return from_tokenizer(load_fast(path), size=size, eos_ids=eos_ids)
    raise VocabularyError(
        f"{path} is no tokenizer file that constrain knows by name",
        hint="Known: tokenizer.json, tekken*.json, *.model, *.tiktoken, or the folder of a model.",
    )


def from_folder(path: Path, *, size: int | None, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Of the folder of a model: through transformers if that reads it, else by the tokenizer files in it."""
    documents = [read_json(path / f"{which}.json") for which in ("generation_config", "config")]
    trouble: VocabularyError | None = None
    if (path / "tokenizer_config.json").is_file() or (path / "config.json").is_file():
        try:
            tokenizer = load_transformers(str(path))
        except VocabularyError as error:
            trouble = error
        else:
            return with_config(tokenizer, documents, size=size, eos_ids=eos_ids)
    for pattern in ("tokenizer.json", "tekken*.json", "tokenizer.model*", "*.model", "*.tiktoken"):
        for file in sorted(path.glob(pattern)):
            if pattern == "tokenizer.json":
                return with_config(load_fast(file), documents, size=size, eos_ids=eos_ids)
            ends = read_ends(*documents) or None if eos_ids is None else eos_ids
            return from_file(file, size=size or read_size(*documents), eos_ids=ends)
    raise trouble or VocabularyError(
        f"{path} holds no tokenizer", hint="Looked for tokenizer.json, tekken*.json, *.model, *.tiktoken."
    )


def with_config(
    tokenizer: Any,
    documents: list[Mapping[str, Any]],
    *,
    size: int | None,
    eos_ids: Iterable[int] | None,
) -> Vocabulary:
    """Of a tokenizer beside the configs of its model, which know the end tokens and the width of the logits."""
    if eos_ids is None and (said := read_ends(*documents)):
        own = getattr(tokenizer, "eos_token_id", None)
        eos_ids = {*said, *ids_of(own)}
    return from_tokenizer(tokenizer, size=size or read_size(*documents), eos_ids=eos_ids)


def read_ends(generation_config: Mapping[str, Any], config: Mapping[str, Any]) -> list[int]:
    """`eos_token_id` of a model: of its generation config, else of its config (or the text part of it)."""
    for document in (generation_config, config, config.get("text_config") or {}):
        if ends := ids_of(document.get("eos_token_id")):
            return ends
    return []


def read_size(generation_config: Mapping[str, Any], config: Mapping[str, Any]) -> int | None:
    """Width of a model's logits, by its config."""
    for document in (config, config.get("text_config") or {}):
        if isinstance(found := document.get("vocab_size"), int) and found > 0:
            return found
    return None


def load_transformers(source: str) -> Any:
    """The tokenizer of a folder or hub id; VocabularyError if transformers is missing or cannot read it."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise VocabularyError(
            f"{source} names a model, and the package that loads its tokenizer is missing",
            hint="pip install transformers",
        ) from error
    try:
        return AutoTokenizer.from_pretrained(source)
    except Exception as error:  # whatever the hub, the files or the class of the tokenizer raise
        first = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise VocabularyError(
            f"transformers cannot load a tokenizer from {source}: {first}",
            hint="Give the folder of a model, a tokenizer file, or the id of a model on the hub.",
        ) from error


def hub_config(source: str, which: str) -> Mapping[str, Any]:
    """A config of a model on the hub, or nothing if it has none."""
    from transformers.utils import cached_file

    try:
        found = cached_file(source, f"{which}.json")
    except OSError:
        return {}
    return read_json(Path(found)) if found else {}


def load_fast(path: Path) -> Any:
    """A tokenizer.json, by the tokenizers package."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise VocabularyError(f"{path} needs the package that reads it", hint="pip install tokenizers") from error
    try:
        return Tokenizer.from_file(str(existing(path)))
    except Exception as error:  # the package raises bare Exception
        raise VocabularyError(f"{path} is no tokenizer.json: {error}") from error


def read_json(path: Path) -> Mapping[str, Any]:
    """A JSON object from a file, or an empty one if there is no such file."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise VocabularyError(f"{path} is not JSON: {error}") from error
    return found if isinstance(found, dict) else {}
