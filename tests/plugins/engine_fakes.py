"""Small engines with the interfaces of llama-cpp-python and mlx-lm, traps included, for machines without them.

    install_llama(monkeypatch)   a module `llama_cpp`; `FakeLlama` swallows the exceptions of processors
    install_mlx(monkeypatch)     modules `mlx.core` and `mlx_lm`, which are a step ahead

Their models prefer tokens by a seeded random table, so that a text that is not constrained is not valid by luck.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from constrain import LimitError
from constrain.plugins import engine_versions
from constrain.vocabulary.vocabulary import Vocabulary

TOKENS: list[bytes | None] = [bytes((value,)) for value in range(256)]
TOKENS += [b'{"', b'":', b'", "', b"true", b"12", b"  ", None, None]
END, UNUSED = 262, 263
VOCABULARY = Vocabulary.from_tokens(TOKENS, [END], special={"<end>": END, "<unused>": UNUSED}, name="fake")


def pretend_versions(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Have `check_engine_version` find these versions, by package with "_" for "-"."""
    monkeypatch.setattr(engine_versions, "version", lambda package: versions[package.replace("-", "_")])


class StuckMatcher:
    """A Matcher at a dead row: its search for a token gives up, and it takes none."""

    tokens: tuple[int, ...] = ()

    def mask(self, out: Any = None) -> Any:
        raise LimitError("a search gave up")

    def advance(self, token: int) -> None:
        raise LimitError("a search gave up")


def make_batches_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the masks of several rows at once give up, as `fill_masks` does if one of them is a `StuckMatcher`."""

    def fail(*_: Any, **__: Any) -> None:
        raise LimitError("a search gave up")

    monkeypatch.setattr("constrain.plugins.request_matcher.fill_masks", fail)


def prefer_tokens(ids: list[int], seed: int, size: int = len(TOKENS)) -> np.ndarray[Any, Any]:
    """Return the logits after these ids: random, and the same each time."""
    return np.random.default_rng([seed, *ids[-3:], len(ids)]).normal(size=size).astype(np.float32)


class FakeLlama:
    """What the plug-in uses of `llama_cpp.Llama`."""

    def __init__(self, seed: int = 0, n_ctx: int = 400) -> None:
        self.seed, self.context, self.metadata = seed, n_ctx, {"general.name": "fake"}
        self._model = SimpleNamespace(vocab="handle")
        self.swallowed: list[BaseException] = []

    def n_ctx(self) -> int:
        return self.context

    def n_vocab(self) -> int:
        return len(TOKENS)

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        return list(text)

    def create_completion(self, prompt: list[int], **options: Any) -> Any:
        pieces = self.stream(prompt, **options)
        if options.get("stream"):
            return pieces
        return {"choices": [{"text": "".join(one["choices"][0]["text"] for one in pieces)}]}

    def create_chat_completion(self, messages: list[Any], **options: Any) -> Any:
        return self.create_completion(list(str(messages).encode()), **options)

    def stream(
        self, prompt: list[int], max_tokens: int, logits_processor: Any, logit_bias: Any = None, **_: Any
    ) -> Iterator[Any]:
        ids = list(prompt)
        for _step in range(max_tokens):
            table = np.zeros(len(TOKENS), np.dtype([("id", np.intc), ("logit", np.single), ("p", np.single)]))
            records = table.view(np.recarray)
            records.logit[:] = prefer_tokens(ids, self.seed)
            for processor in logits_processor or ():
                if logit_bias is not None:
                    break  # the real package loses the processors here
                try:
                    records.logit[:] = processor(np.array(ids, np.intc), records.logit)
                except BaseException as error:  # as a ctypes callback does
                    self.swallowed.append(error)
            token = int(records.logit.argmax())
            if token == END:
                return
            ids.append(token)
            yield {"choices": [{"text": (TOKENS[token] or b"").decode("latin-1")}]}


def install_llama(monkeypatch: pytest.MonkeyPatch, version: str = "0.3.36", tokens: list[bytes | None] = TOKENS) -> Any:
    """Make `import llama_cpp` find a module with the functions that the plug-in uses."""

    def write_piece(handle: str, index: int, buffer: Any, room: int, lstrip: int, special: bool) -> int:
        piece = tokens[index] or b""
        if len(piece) > room:
            return -len(piece)
        buffer[: len(piece)] = piece
        return len(piece)

    fake: Any = ModuleType("llama_cpp")
    fake.LogitsProcessorList = list
    fake.llama_vocab_n_tokens = lambda handle: len(tokens)
    fake.llama_vocab_get_attr = lambda handle, index: {END: 8, UNUSED: 2}.get(index, 4)
    fake.llama_vocab_get_text = lambda handle, index: f"<{index}>".encode()
    fake.llama_vocab_is_eog = lambda handle, index: index == END
    fake.llama_token_to_piece = write_piece
    monkeypatch.setitem(sys.modules, "llama_cpp", fake)
    pretend_versions(monkeypatch, llama_cpp_python=version)
    return fake


def install_mlx(monkeypatch: pytest.MonkeyPatch, seed: int = 0, version: str = "0.32.2") -> Any:
    """Make `import mlx.core` and `mlx_lm` find modules with what the plug-in uses; arrays are those of NumPy."""
    core: Any = ModuleType("mlx.core")
    core.array, core.where, core.inf = np.array, np.where, np.inf
    package: Any = ModuleType("mlx")
    package.core = core
    lm: Any = ModuleType("mlx_lm")

    def stream_generate(
        model: Any, tokenizer: Any, prompt: list[int], max_tokens: int, logits_processors: list[Callable[..., Any]]
    ) -> Iterator[Any]:
        def step(ids: list[int]) -> int:
            logits = prefer_tokens(ids, seed)[None]
            for processor in logits_processors:
                logits = processor(np.array(ids), logits)
            return int(logits[0].argmax())

        ids = list(prompt)
        upcoming = step(ids)
        for _ in range(max_tokens):
            ids.append(upcoming)
            upcoming = step(ids)  # the next step is computed before this token is returned
            yield SimpleNamespace(token=ids[-1])
            if ids[-1] in tokenizer.eos_token_ids:
                return

    lm.stream_generate = stream_generate
    for name, module in {"mlx": package, "mlx.core": core, "mlx_lm": lm}.items():
        monkeypatch.setitem(sys.modules, name, module)
    pretend_versions(monkeypatch, mlx_lm=version)
    return lm
