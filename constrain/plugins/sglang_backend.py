"""SGLang: a grammar backend, `python -m sglang.launch_server --model-path MODEL --grammar-backend constrain`.

SGLang finds `register_sglang_backend` by the entry point `sglang.srt.plugins` of this package. The backend compiles
what requests ask for (`json_schema`, `regex`, `ebnf`, `structural_tag`) in threads of SGLang. What is refused is an
InvalidGrammarObject with the message of our error, so that SGLang ends the request with it; nothing is skipped.

    BaseGrammarBackend   SglangBackend   one for each server
    BaseGrammarObject    SglangGrammar   one for each request: a Matcher, and what SGLang says about it

Backends learn nothing of `max_new_tokens`. A hook of SGLang's plug-in framework on its GrammarManager, which sees each
request when its grammar is ready, makes it a budget: the text is complete within it. A request whose shortest text does
not fit is ended with our message. With a reasoning parser there is no budget, since thoughts take tokens of it.

SGLang advances a grammar along draft tokens and takes them back (`rollback`), also over the end of a text. It calls
`accept_token` with tokens that it has already sent; a refused one is a ValueError, which aborts that request alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
    register_grammar_backend,
)
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

from ..base.errors import ConstrainError, UnsupportedError
from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..dialogue.structural_tags import structural_tag
from ..engine.constraint import Constraint
from ..forms import gbnf
from ..vocabulary.vocabulary import Vocabulary
from .engine_versions import check_engine_version
from .request_matcher import RequestMatcher, fill_request_masks
from .tensor_rows import mask_tensor_rows

if TYPE_CHECKING:
    import torch

__all__ = ["SglangBackend", "SglangGrammar", "register_sglang_backend"]

check_engine_version("sglang")

NAME = "constrain"
"""The value of `--grammar-backend`."""
MANAGER = "sglang.srt.constrained.grammar_manager.GrammarManager"
ANY_JSON = "$$ANY$$"
"""What SGLang passes for `response_format: {"type": "json_object"}`."""


class SglangGrammar(BaseGrammarObject):
    """The constraint of one request."""

    def __init__(self, constraint: Constraint) -> None:
        super().__init__()
        self.constraint = constraint
        self.request = RequestMatcher(constraint)
        self.accepted: list[int] = []
        self.grammar_stats = GrammarStats()

    def limit_tokens(self, max_tokens: int) -> None:
        """Have the text end within max_tokens, its end token included. Called before its first token.

        Raises
        ------
        LimitError
            If the shortest text does not fit.
        """
        self.request = RequestMatcher(self.constraint, max_tokens)

    def accept_token(self, token: int) -> None:
        """Advance by a token. Raise ValueError if it is refused, which aborts the request."""
        if self.request.error is None:
            self.accepted.append(int(token))
            if self.request.follow(self.accepted):
                self.current_token = token
                return
            self.accepted.pop()
        raise ValueError(str(self.request.error))

    def rollback(self, k: int) -> None:
        """Take back the last k tokens."""
        del self.accepted[max(0, len(self.accepted) - k) :]
        self.request.follow(self.accepted)

    def is_terminated(self) -> bool:
        """Return whether an end token was accepted."""
        return self.request.has_ended

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Return a mask that allows everything, int32 [batch_size, ceil(vocab_size / 32)], on the host."""
        import torch

        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask of the next token to a row."""
        write_rows([self], vocab_mask, [idx])

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        """Write the masks of the listed rows, on all cores where that pays; leave others untouched."""
        own = [entry for entry in entries if isinstance(entry.grammar, SglangGrammar)]
        write_rows([entry.grammar for entry in own], vocab_mask, [entry.row for entry in own])
        for entry in entries:
            if not isinstance(entry.grammar, SglangGrammar):  # wrapped, for a reasoning model
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow everything."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """Copy a mask to the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits of tokens that are not allowed to minus infinity, in place."""
        mask_tensor_rows(logits, vocab_mask, range(len(logits)))

    def copy(self) -> SglangGrammar:
        """Return the grammar of another request with the same constraint, at the start of its text."""
        return SglangGrammar(self.constraint)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """Return ([], text), the text that must come next; None if there is a choice."""
        if not self.request.is_open:
            return None
        text = self.request.matcher.forced().decode("utf-8", "ignore")
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """Return the text of `try_jump_forward`, and -1: the state is in the Matcher."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Move to a new tokenisation of the text. Raise ValueError if it is refused."""
        self.accepted = list(new_output_ids)
        if not self.request.follow(self.accepted):
            raise ValueError(str(self.request.error))


class SglangBackend(BaseGrammarBackend):
    """Compiles the constraints of requests for the served model.

    vocabulary: of the model. style: how JSON is spelled, by the flags of the server.
    """

    def __init__(self, vocabulary: Vocabulary, style: Style = Style()) -> None:
        super().__init__()
        self.vocabulary, self.style = vocabulary, style

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a JSON Schema, as JSON text."""
        schema = '{"type": "object"}' if key_string == ANY_JSON else key_string
        return self._compile("json", schema=schema, style=self.style)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a regular expression, which must match the whole text."""
        return self._compile("regex", regex=key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a text in XGrammar's EBNF, which SGLang's requests are written in, or in Lark."""
        if "::=" not in key_string:
            return self._compile("ebnf", grammar=key_string)
        try:
            form = gbnf(key_string, dialect="xgrammar")
        except (ConstrainError, TypeError) as error:
            return InvalidGrammarObject(str(error))
        return self._compile("ebnf", form=form)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a structural tag, as JSON text."""
        try:
            form = structural_tag(key_string, style=self.style)
        except (ConstrainError, TypeError) as error:
            return InvalidGrammarObject(str(error))
        return self._compile("structural_tag", form=form)

    def _compile(self, kind: str, **source: Any) -> BaseGrammarObject:
        try:
            grammar = SglangGrammar(compile(self.vocabulary, **source))
        except (ConstrainError, TypeError) as error:
            return InvalidGrammarObject(str(error))
        grammar.grammar_stats.dispatch_type = kind
        return grammar


def write_rows(grammars: Sequence[SglangGrammar], vocab_mask: torch.Tensor, rows: Sequence[int]) -> None:
    """Write the mask of each grammar to its row of an int32 tensor on the host."""
    if not grammars:
        return
    masks = np.zeros((len(rows), len(grammars[0].request.ends)), np.int32)
    fill_request_masks([one.request for one in grammars], masks)
    target = vocab_mask.numpy()
    target[rows] = 0
    target[rows, : masks.shape[1]] = masks


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> BaseGrammarBackend:
    """Return the backend of a server; with a reasoning parser, wrapped so that thoughts are free.

    Raises
    ------
    UnsupportedError
        If the server has a flag that this backend does not follow.
    VocabularyError
        If the bytes of the model's tokens cannot be derived.
    """
    for name in ("constrained_json_whitespace_pattern", "constrained_json_max_whitespace_cnt"):
        if getattr(server_args, name, None) is not None:
            flag = "--" + name.replace("_", "-")
            raise UnsupportedError(f"{flag} is not supported by --grammar-backend {NAME}", hint="Leave it out.")
    compact = getattr(server_args, "constrained_json_disable_any_whitespace", False)
    style = Style(whitespace="compact") if compact else Style()
    ends = [eos_token_ids] if isinstance(eos_token_ids, int) else sorted(eos_token_ids or ()) or None
    backend = SglangBackend(Vocabulary.from_tokenizer(tokenizer, size=vocab_size, eos_ids=ends), style)
    if not getattr(server_args, "reasoning_parser", None):
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=server_args.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    strict = bool(getattr(server_args, "enable_strict_thinking", False))
    wrapped: BaseGrammarBackend = ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=strict)
    return wrapped


def limit_request(request: Any) -> None:
    """Make `max_new_tokens` of a request the budget of its grammar, if it is one of ours and ready.

    request: a `Req` of SGLang, whose scheduler has limited max_new_tokens to what the context holds.
    """
    grammar, most = request.grammar, request.sampling_params.max_new_tokens
    if not isinstance(grammar, SglangGrammar) or not most:
        return
    try:
        grammar.limit_tokens(most)
    except ConstrainError as error:
        request.set_finish_with_abort(str(error))


def limit_new_request(_waits: bool, _manager: Any, request: Any) -> None:
    """Limit a request after `GrammarManager.process_req_with_grammar`, if its grammar was in the cache."""
    limit_request(request)


def limit_ready_requests(requests: Sequence[Any], _manager: Any) -> None:
    """Limit the requests that `GrammarManager.get_ready_grammar_requests` returns."""
    for request in requests:
        limit_request(request)


def register_sglang_backend() -> None:
    """Make `--grammar-backend constrain` known to SGLang; called by its plug-in loader."""
    from sglang.srt.server_args import add_grammar_backend_choices

    register_grammar_backend(NAME, make_backend)
    add_grammar_backend_choices([NAME])
    HookRegistry.register(f"{MANAGER}.process_req_with_grammar", limit_new_request, HookType.AFTER)
    HookRegistry.register(f"{MANAGER}.get_ready_grammar_requests", limit_ready_requests, HookType.AFTER)
