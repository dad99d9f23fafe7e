"""Vocabularies of files that store tokens as bytes: tiktoken ranks, Tekken files, and SentencePiece models.

tiktoken      one token per line: base64 of its bytes, a space, its rank, which is its id. Special tokens are not
listed. Tekken        the same as JSON, with the special tokens first: id = number of special tokens + rank.
SentencePiece pieces as text with U+2581 for a space, `<0xNN>` for a byte, and a type for each.
"""

from __future__ import annotations

from binascii import Error as Base64Error, a2b_base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

from ..base.errors import VocabularyError, check_count, check_type, shorten_text
from ..vocabulary.text_tokenisation import Encode
from ..vocabulary.tokenizer_check import TokenizerConduct, run_self_test
from ..vocabulary.vocabulary import Vocabulary
from ..vocabulary.vocabulary_arguments import MOST_TOKENS
from ..vocabulary.vocabulary_cache import LEAST_BYTES, CachedVocabulary
from .end_tokens import tiktoken_ends
from .model_files import check_file, parse_document, read_bytes
from .model_hub import foreign_errors

__all__ = ["from_mistral", "from_sentencepiece", "from_tiktoken", "piece_bytes"]

SPACE = "\u2581"
LLAMA3_DIGEST = "4fef3d761c351079cd5dd3b92669e619"
"""blake2b-128 of the 128,000 tokens of Llama 3, concatenated in order of rank."""
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3_NAMES = (
    "begin_of_text", "end_of_text", "reserved_special_token_0", "reserved_special_token_1", "finetune_right_pad_id",
    "reserved_special_token_2", "start_header_id", "end_header_id", "eom_id", "eot_id", "python_tag",
    *(f"reserved_special_token_{i}" for i in range(3, 248)),
)  # fmt: skip
LLAMA3_ENDS = (128_001, 128_008, 128_009)
"""`eos_token_id` of the generation config of Llama 3.1 Instruct: end of text, of message, of turn."""
TEKKEN_NAMES = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]",
    "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip
"""The special tokens of Tekken files that do not list their own (mistral-common, up to version 7)."""


def from_tiktoken(
    source: str | PathLike[str] | Mapping[bytes, int] | Any,
    *,
    special: Mapping[str, int] | None = None,
    eos_ids: Iterable[int] | None = None,
    pattern: str | None = None,
    size: int | None = None,
) -> Vocabulary:
    """See `Vocabulary.from_tiktoken`."""
    check_type("special", special, (Mapping, type(None)), "give a dict of name -> token id")
    for key, index in (special or {}).items():
        check_type("a name in special", key, str, "give a dict of name -> token id")
        check_count("an id in special", index)
    check_type("pattern", pattern, (str, type(None)), "give a regular expression")
    size = None if size is None else check_count("size", size, 1)
    if isinstance(source, (str, PathLike)):
        return from_ranks(Path(source), special=special, eos_ids=eos_ids, pattern=pattern, size=size)
    if isinstance(source, Mapping):
        tokens, name = by_rank(source.items(), "the ranks"), "tiktoken ranks"
    elif hasattr(source, "decode_single_token_bytes"):
        return from_encoding(source, special=special, eos_ids=eos_ids, size=size)
    else:
        raise VocabularyError(f"{type(source).__name__} is neither a rank file, nor ranks, nor a tiktoken.Encoding")
    return from_parts(tokens, name, special=special, eos_ids=eos_ids, pattern=pattern, size=size)[0]


def from_ranks(
    path: Path,
    *,
    special: Mapping[str, int] | None,
    eos_ids: Iterable[int] | None,
    pattern: str | None,
    size: int | None,
) -> Vocabulary:
    """Return the Vocabulary of a rank file, from the disk cache if it was read before."""
    data = read_bytes(path)
    eos_ids = None if eos_ids is None else [int(index) for index in eos_ids]
    cache_key = [path.name, None if special is None else list(special.items()), eos_ids, pattern, size]
    cached = CachedVocabulary(data, cache_key) if len(data) >= LEAST_BYTES else None
    known = None if cached is None else cached.fetch()
    if known is not None:
        cached_vocabulary, how = known
        encode, prompt = make_encoders(cached_vocabulary.tokens[: how["ranks"]], how["pattern"], how["begin"])
        return replace(cached_vocabulary, encode=encode, encode_prompt=prompt)
    tokens = read_ranks(data, str(path))
    ranks = len(tokens)
    vocabulary, how = from_parts(tokens, path.name, special=special, eos_ids=eos_ids, pattern=pattern, size=size)
    if cached is not None and min((*vocabulary.special.values(), *vocabulary.eos_ids)) >= ranks <= vocabulary.size:
        cached.store(vocabulary, {**how, "ranks": ranks})
    return vocabulary


def from_parts(
    tokens: list[bytes | None],
    name: str,
    *,
    special: Mapping[str, int] | None,
    eos_ids: Iterable[int] | None,
    pattern: str | None,
    size: int | None,
) -> tuple[Vocabulary, dict[str, Any]]:
    """Return the Vocabulary of tokens by rank, with the pre-tokenisation pattern and the begin tokens of a prompt."""
    begin: list[int] = []
    if special is None and len(tokens) == 128_000 and is_llama3(tokens):
        special = {f"<|{key}|>": 128_000 + i for i, key in enumerate(LLAMA3_NAMES)}
        eos_ids = LLAMA3_ENDS if eos_ids is None else eos_ids
        pattern = pattern or LLAMA3_PATTERN
        begin = [128_000]
    special = dict(special or {})
    ranks = len(tokens)
    tokens += [None] * (max(special.values(), default=-1) + 1 - ranks)
    if eos_ids is None:
        eos_ids = tiktoken_ends(special, name)
    encode, prompt = make_encoders(tokens[:ranks], pattern, begin)
    vocabulary = Vocabulary.from_tokens(
        tokens, eos_ids, special=special, size=size, encode=encode, encode_prompt=prompt, name=name
    )
    return vocabulary, {"pattern": pattern, "begin": begin}


def make_encoders(
    tokens: Sequence[bytes | None], pattern: str | None, begin: list[int]
) -> tuple[Encode, Encode] | tuple[None, None]:
    """Return `encode` and `encode_prompt` of ranks, or None for both if the pre-tokenisation pattern is not known."""
    if pattern is None:
        return None, None
    encode = lazy_bpe(tokens, pattern, 0)
    return encode, prepend_tokens(encode, begin)


def from_encoding(
    encoding: Any, *, special: Mapping[str, int] | None, eos_ids: Iterable[int] | None, size: int | None
) -> Vocabulary:
    """Return the Vocabulary of a `tiktoken.Encoding`; ids that it does not assign are None."""
    known = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    known.update(special or {})
    tokens: list[bytes | None] = []
    for index in range(encoding.n_vocab):
        try:
            tokens.append(encoding.decode_single_token_bytes(index))
        except KeyError:
            tokens.append(None)
    ends = tiktoken_ends(known, f"tiktoken {encoding.name}") if eos_ids is None else eos_ids
    out = Vocabulary.from_tokens(
        tokens, ends, special=known, size=size, encode=encoding.encode_ordinary, name=f"tiktoken {encoding.name}"
    )
    run_self_test(out, encoding.encode_ordinary, TokenizerConduct(), tokens)
    return out


def from_mistral(
    source: str | PathLike[str] | Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None
) -> Vocabulary:
    """See `Vocabulary.from_mistral`."""
    if isinstance(source, (str, PathLike)):
        path = check_file(Path(source))
        if path.suffix == ".json":
            return from_tekken(path, size=size, eos_ids=eos_ids)
        return from_sentencepiece(path, size=size, eos_ids=eos_ids)
    inner = source
    for name in ("instruct_tokenizer", "tokenizer"):  # MistralTokenizer > InstructTokenizer > Tokenizer
        inner = getattr(inner, name, inner)
    file = getattr(inner, "file_path", None)
    if file is None:
        raise VocabularyError(
            f"{type(source).__name__} is not a tokenizer of mistral-common, or does not name its file"
        )
    return from_mistral(file, size=size, eos_ids=eos_ids)


def from_tekken(path: Path, *, size: int | None, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Return the Vocabulary of a Tekken file: `config`, `vocab` and, in newer ones, `special_tokens`."""
    try:
        document = parse_document(read_bytes(path), path)
        config = document["config"]
        count, width = config["default_num_special_tokens"], config["default_vocab_size"]
        if not all(type(number) is int and 0 <= number <= MOST_TOKENS for number in (count, width)):
            raise ValueError(f"{count!r} special tokens of {width!r}")
        entries = document["vocab"][: max(width - count, 0)]
        texts = by_rank(((a2b_base64(entry["token_bytes"]), entry["rank"]) for entry in entries), str(path))
        listed = document.get("special_tokens")
        special = {e["token_str"]: e["rank"] for e in listed} if listed else {n: i for i, n in enumerate(TEKKEN_NAMES)}
        if not all(isinstance(key, str) and type(rank) is int for key, rank in special.items()):
            raise ValueError("a special token is not a text with a rank")
        pattern = config["pattern"]
        if not isinstance(pattern, str):
            raise ValueError("the pattern is not a text")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise VocabularyError(f"{shorten_text(path)} is not a Tekken file: {shorten_text(repr(error))}") from error
    used_ids = set(special.values())
    special.update({f"<SPECIAL_{i}>": i for i in range(count) if i not in used_ids})
    ends = [special["</s>"]] if eos_ids is None and "</s>" in special else eos_ids or ()
    encode = lazy_bpe(texts, pattern, count)
    prompt = prepend_tokens(encode, [special["<s>"]] if "<s>" in special else [])
    tokens = [None] * count + texts
    out = Vocabulary.from_tokens(
        tokens, ends, special=special, size=size, encode=encode, encode_prompt=prompt, name=path.name
    )
    run_self_test(out, encode, TokenizerConduct(), tokens)
    return out


def from_sentencepiece(source: Any, *, size: int | None = None, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """Return the Vocabulary of a SentencePiece model, given as a file or a `SentencePieceProcessor`."""
    model, name = source, "a SentencePiece model"
    if isinstance(source, Path):
        model, name = load_sentencepiece(check_file(source)), source.name
    count = model.vocab_size()
    pieces = model.id_to_piece(list(range(count)))
    tokens: list[bytes | None] = [piece_bytes(piece) for piece in pieces]
    special = {}
    for index in range(count):
        if model.is_control(index) or model.is_unknown(index) or model.is_unused(index):
            tokens[index] = None
            special[pieces[index]] = index
    ends = [model.eos_id()] if eos_ids is None and model.eos_id() >= 0 else eos_ids or ()
    begin = [model.bos_id()] if model.bos_id() >= 0 else []

    def encode(text: str) -> list[int]:
        return list(model.encode(text))

    def normal(text: str) -> str:
        return str(model.normalize(text)).replace(SPACE, " ")

    out = Vocabulary.from_tokens(
        tokens,
        ends,
        special=special,
        size=size,
        encode=encode,
        encode_prompt=prepend_tokens(encode, begin),
        leading_space="stripped" if normal("a") == " a" else "kept",
        name=name,
    )
    run_self_test(out, encode, TokenizerConduct(normal, "before", frozenset({model.unk_id()})), tokens)
    return out


def piece_bytes(piece: str) -> bytes:
    """Return the bytes of a SentencePiece piece that is not at the start of a text."""
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        try:
            return bytes((int(piece[3:5], 16),))
        except ValueError:
            pass
    return piece.replace(SPACE, " ").encode("utf-8", "surrogatepass")


def load_sentencepiece(path: Path) -> Any:
    """Load a processor of the `sentencepiece` package."""
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise VocabularyError(
            f"{path} is a SentencePiece model, and the package that reads it is missing",
            hint='pip install "constrain-lm[tokenizers]"',
        ) from error
    try:
        return SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise VocabularyError(f"{shorten_text(path)} is not a SentencePiece model: {shorten_text(error)}") from error


def read_ranks(data: bytes, path: str) -> list[bytes | None]:
    """Return the tokens of a rank file, by rank. Columns are converted as a whole: 128,000 tokens take 40 ms."""
    parts = data.split()
    try:
        tokens, ranks = list(map(a2b_base64, parts[::2])), list(map(int, parts[1::2]))
        if tokens and len(tokens) == len(ranks) and ranks == list(range(len(ranks))):  # true of all known files
            return list(tokens)
        return by_rank(zip(tokens, ranks), path)
    except (Base64Error, ValueError) as error:
        raise VocabularyError(
            f"{shorten_text(path)} is not a rank file: {shorten_text(error)}",
            hint="Each line is the base64 of a token, a space, its rank.",
        ) from error


def by_rank(items: Iterable[tuple[bytes, int]], kind: str) -> list[bytes | None]:
    """Return tokens in order of rank; missing ranks are None.

    Raise VocabularyError for an invalid token or rank, and for a rank of two tokens.
    """
    tokens: dict[int, bytes] = {}
    for token, rank in items:
        if type(token) is not bytes or type(rank) is not int or not 0 <= rank < MOST_TOKENS:
            raise VocabularyError(
                f"{shorten_text(kind)} gives {shorten_text(repr(token), 60)} the rank {shorten_text(repr(rank), 60)}",
                hint="A token is bytes, a rank a whole number from 0 on, below 16,777,216.",
            )
        if tokens.setdefault(rank, token) != token:
            raise VocabularyError(f"{shorten_text(kind)} gives the rank {rank} to two tokens")
    if not tokens:
        raise VocabularyError(f"{shorten_text(kind)} holds no tokens")
    return list(map(tokens.get, range(max(tokens) + 1)))


def is_llama3(tokens: list[bytes | None]) -> bool:
    """Return whether these are the ranks of Llama 3, whose special tokens are known."""
    return blake2b(b"".join(t or b"" for t in tokens), digest_size=16).hexdigest() == LLAMA3_DIGEST


def lazy_bpe(tokens: Sequence[bytes | None], pattern: str, first: int) -> Encode:
    """Return a BPE encoder by ranks. It is built on first use, since that takes longer than loading the vocabulary."""

    @lru_cache(maxsize=1)
    def made() -> Any:
        try:
            from tiktoken import Encoding
        except ImportError as error:
            raise VocabularyError(
                "text cannot be encoded by ranks: tiktoken is missing", hint='pip install "constrain-lm[tokenizers]"'
            ) from error
        ranks = {token: rank for rank, token in enumerate(tokens) if token}
        with foreign_errors("tiktoken cannot use these ranks"):
            return Encoding("ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def encode(text: str) -> list[int]:
        encoding = made()
        with foreign_errors("tiktoken cannot encode a text by these ranks"):
            return [rank + first for rank in encoding.encode_ordinary(text)]

    return encode


def prepend_tokens(encode: Encode, begin: list[int]) -> Encode:
    """Return `encode` with these tokens prepended."""

    def prompt(text: str) -> list[int]:
        return [*begin, *encode(text)]

    return prompt
