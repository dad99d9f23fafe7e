"""Sessions: programs that alternate fixed text, constrained fields and Python decisions over one growing text.

    with constrain.session("demo", "Describe a person.") as s:
        s.text("Name: ")
        name = s.write("name", regex=r"[A-Z]\\w+", stop="\\n")
        s.text("\\nAge: ")
        if s.write("age", type=int) >= 18: ...

A session holds the tokens of the text so far, and bytes at its end that are not tokenised yet. All its calls of the
model extend these tokens, so the model's key-value cache is used throughout; a fork shares it.

*The law.* Fixed text is given, as a prompt is: it has no probability. A field is distributed as the model continues the
tokens before it: with h the bytes of the tokens at their end that were taken back (`decoding.prompt_healing`), the
value w of a field of the language L has probability proportional to

    p(the continuation begins with h, and the longest prefix in L of what follows is w | the tokens kept)

(`decoding.field_writing`). A text written before it is tokenised as the tokenizer itself would, over the borders of its
parts, except that of a written field at most the last token changes. `log_weight` is the sum over all fields of the
log-weights of masked sampling: a session is properly weighted for the product of these unnormalised probabilities,
whatever the program decides between the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..base.errors import ConstrainError, ValueRefused, check_type
from ..base.json_documents import References
from ..base.keyword_names import explain_keywords
from ..base.options import Limits, Style
from ..captures.capture_search import show_tokens
from ..decoding.field_writing import WrittenField, build_field_constraint, write_field
from ..decoding.prompt_healing import heal_prompt, retokenize_border
from ..engine.length_limits import TokenLimit, make_full_error, name_full_context
from ..sampling import LanguageModel
from ..vocabulary.vocabulary import Vocabulary
from .captured_values import build_request_program, capture_bytes
from .generation_arguments import build_request
from .model_preparation import compile_request
from .session_arguments import check_max_tokens, check_seed, check_tokens, encode_text
from .token_options import build_proposal
from .type_styles import choose_style

__all__ = ["Field", "Session"]

REVISED = 16
"""Most tokens of fixed text at a border that are tokenised again together with the text after it."""


@runtime_checkable
class ClosableModel(LanguageModel, Protocol):
    """A model that holds slots of an Engine, see `slot_model`."""

    def close(self) -> None: ...
    def fork(self) -> ClosableModel: ...


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a session wrote.

    Attributes
    ----------
    name : str
        "" for a field without a name.
    text : str
    value : object
        The parsed text, see `Generation.value`.
    logprob : float
        Log-probability in nats of all tokens that the model wrote for the field, those at its borders included.
    log_weight : float
        See the module docstring, in nats.
    finish_reason : {"complete", "budget"}
        "budget": the field was closed, or kept short, to end within max_tokens.
    model_calls : int
        Number of calls of the model.
    """

    name: str
    text: str
    value: Any
    logprob: float
    log_weight: float
    finish_reason: str
    model_calls: int


class Session:
    """A text in progress over one model. Not thread-safe. `session_opening` makes one from a model and a prompt.

    Parameters
    ----------
    lm : LanguageModel
        The model. It may hold a prompt itself, whose tokens are never taken back.
    vocabulary : Vocabulary
        The tokens of the model.
    prompt : sequence of int
        Further tokens before the text; those at the end may be taken back.
    seed : int, optional
        The same seed and the same program give the same text.
    max_tokens : int
        Maximum number of tokens of a field.

    Attributes
    ----------
    fields : list of Field
        The fields written so far.
    """

    def __init__(
        self,
        lm: LanguageModel,
        vocabulary: Vocabulary,
        *,
        prompt: Sequence[int] = (),
        seed: int | None = None,
        max_tokens: int = 512,
    ) -> None:
        check_type("lm", lm, LanguageModel, "give an object with next_logprobs")
        check_type("vocabulary", vocabulary, Vocabulary, "give the Vocabulary of the model")
        self.lm, self.vocabulary = lm, vocabulary
        self.max_tokens = check_max_tokens(max_tokens)
        self.rng = np.random.default_rng(check_seed(seed))
        self.fields: list[Field] = []
        self._captures: dict[str, list[Any]] = {}
        self._tokens = check_tokens(prompt, vocabulary)
        self._rest = b""
        self._written = b""
        self._fixed = len(self._tokens)  # the number of tokens at the end that are fixed text

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free its slot of the Engine. The session can go on: its text is then fed to the model again."""
        if isinstance(self.lm, ClosableModel):
            self.lm.close()

    # ---- what was written

    @property
    def text_so_far(self) -> str:
        """The text after the prompt: fixed text and fields."""
        return show_tokens(self.vocabulary, self._written).decode("utf-8", "replace")

    @property
    def captures(self) -> dict[str, Any]:
        """The values of the named fields, and the captures of named parts of their forms; a list for a name that was
        used several times.
        """
        return {name: values[0] if len(values) == 1 else list(values) for name, values in self._captures.items()}

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the prompt given to the session and of the text so far, as the tokenizer continues them."""
        back, appended = self._join()
        return (*self._tokens[: len(self._tokens) - back], *appended)

    @property
    def log_weight(self) -> float:
        """The sum of the log-weights of the fields, in nats; see the module docstring."""
        return sum(field.log_weight for field in self.fields)

    # ---- writing

    def text(self, text: str) -> Session:
        """Append fixed text. The model runs when the next field is written.

        Parameters
        ----------
        text : str

        Returns
        -------
        Session
            This session.

        Raises
        ------
        TypeError
            If `text` is not a str.
        ArgumentError
            If it holds an unpaired surrogate.
        """
        check_type("text", text, str, "give the text to append")
        data = encode_text("text", text)
        self._rest += data
        self._written += data
        return self

    @explain_keywords
    def write(
        self,
        name: str = "",
        *,
        schema: Any = None,
        regex: str | None = None,
        grammar: Any = None,
        choices: Sequence[str] | None = None,
        type: Any = None,
        stop: str = "",
        max_tokens: int | None = None,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        style: Style = Style(),
        registry: Mapping[str, Any] | None = None,
        base_uri: str = "",
        import_paths: Sequence[str | PathLike[str]] = (),
        limits: Limits = Limits(),
    ) -> Any:
        """Let the model write a field that satisfies exactly one of schema, regex, grammar, choices or type.

        The field ends where the model writes something that cannot continue it, or where nothing can. The text before
        it and what the model writes after it need not respect token boundaries (see the module docstring).

        Parameters
        ----------
        name : str
            Key of the value in `captures`; "" for none.
        schema, regex, grammar, choices, type, style, registry, base_uri, import_paths, limits
            As for `generate`.
        stop : str
            A text at whose first occurrence the field ends. It is required, and not part of the field or of the text.
        max_tokens : int, optional
            Maximum number of tokens that the model writes for the field, by default that of the session. The field is
            always complete: one that would not end in time is closed early.
        temperature, top_k, top_p, min_p
            How a token is chosen among the allowed ones.

        Returns
        -------
        object
            The parsed text, see `Generation.value`.

        Raises
        ------
        ConstrainError
            If an argument is invalid; errors of `compile`.
        LimitError
            If the shortest field does not fit in max_tokens or in the positions of the model.
        ValueRefused
            If a validator of the type rejects the value. The text of the session is then unchanged.
        """
        check_type("name", name, str, "give the name of the field")
        check_type("stop", stop, str, "give the text that ends the field")
        encode_text("stop", stop)
        request = build_request(schema, regex, grammar, choices, type, import_paths)
        proposal = build_proposal(temperature, top_k, top_p, min_p)
        constraint = compile_request(
            self.vocabulary, request, choose_style(request, style), References(registry, base_uri), limits
        )
        program = build_request_program(request, self.vocabulary, limits)
        self._append_rest()
        healed = heal_prompt(self.vocabulary, self._tokens)
        left = self._count_positions_left(len(healed.kept))
        with name_full_context(None if left is None else left + 1):  # the limit of the error counts an end token
            field = write_field(
                self.lm, build_field_constraint(constraint, healed.prefix, stop), list(healed.kept), rng=self.rng,
                limit=self._limit_tokens(left, max_tokens), proposal=proposal,
            )  # fmt: skip
        text = show_tokens(self.vocabulary, field.data).decode("utf-8", "replace")
        try:
            value = request.value(text)
            captured = {} if program is None else capture_bytes(program, field.data)
        except ConstrainError:
            raise
        except Exception as error:  # a validator may raise anything
            refused = ValueRefused(f"the field satisfies the schema, but the type rejects its value: {error}")
            refused.text = text
            raise refused from error
        self._accept(field, healed.kept)
        self.fields.append(Field(name, text, value, field.logprob, field.log_weight, field.finish_reason, field.calls))
        for key, one in [*([(name, value)] if name else []), *captured.items()]:
            self._captures.setdefault(key, []).append(one)
        return value

    def choose(self, name: str, options: Sequence[str], **arguments: Any) -> str:
        """Let the model write one of several texts.

        Parameters
        ----------
        name : str
            Key of the text in `captures`; "" for none.
        options : sequence of str
            The texts.
        **arguments
            Further arguments of `write`.

        Returns
        -------
        str
            The option.
        """
        return str(self.write(name, choices=options, **arguments))

    def fork(self, seed: int | None = None) -> Session:
        """Return an independent session that continues this text; both use the same model and its cache, or each has a
        slot of the same Engine.

        Parameters
        ----------
        seed : int, optional
            Of the new session; by default it is derived from this one's random numbers.

        Returns
        -------
        Session
        """
        lm = self.lm.fork() if isinstance(self.lm, ClosableModel) else self.lm
        other = Session(lm, self.vocabulary, prompt=self._tokens, seed=seed, max_tokens=self.max_tokens)
        if seed is None:
            other.rng = np.random.default_rng(self.rng.integers(0, 2**63, 4))
        other.fields = list(self.fields)
        other._captures = {name: list(values) for name, values in self._captures.items()}
        other._rest, other._written, other._fixed = self._rest, self._written, self._fixed
        return other

    # ---- tokens

    def _join(self) -> tuple[int, list[int]]:
        """Return how the bytes that are not tokenised yet are appended, as `retokenize_border`."""
        return retokenize_border(self.vocabulary, self._tokens, self._rest, max(1, min(self._fixed, REVISED)))

    def _append_rest(self) -> None:
        """Tokenise the bytes at the end of the text."""
        back, appended = self._join()
        self._tokens[len(self._tokens) - back :] = appended
        self._fixed += len(appended) - back
        self._rest = b""

    def _accept(self, field: WrittenField, kept: Sequence[int]) -> None:
        """Append a field to the text: the tokens within it, and the bytes of the one that crosses its end."""
        self._tokens = [*kept, *field.tokens[: field.kept]]
        self._fixed, self._rest = 0, field.rest
        self._written += field.data

    def _count_positions_left(self, used: int) -> int | None:
        """Return the most tokens of a field after `used` tokens in the model's context; None if it is not limited."""
        positions: int | None = getattr(self.lm, "max_new_tokens", None)
        return None if positions is None else positions - used

    def _limit_tokens(self, left: int | None, max_tokens: int | None) -> TokenLimit:
        """Return the most tokens of a field. Raise LimitError if the model has no position left."""
        most = self.max_tokens if max_tokens is None else check_max_tokens(max_tokens)
        limit = TokenLimit(most if left is None else min(left, most), left)
        if limit.most < 1:
            raise make_full_error("the text")
        return limit
