"""`RefusedWork`: the errors of constraints that took more than `compile_work`, so that sending one again costs little.

A request is looked up by everything in its body that is not listed in FREE, which is what may be part of a constraint.
Only errors of constructing a constraint, or of beginning a text of it, are kept (`LimitError.is_of_source`): an equal
request would end in the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from threading import Lock
from typing import Any

from ..base.errors import ConstrainError, LimitError
from ..base.json_documents import plain_document, write_json
from .request_errors import RequestError, as_request_error

__all__ = ["RefusedWork"]

MOST_ERRORS = 1024
"""Most errors that are kept; each has at most some 4,000 characters of text."""
MOST_POINTER = 4_000
"""Characters of a pointer beyond which an error is not kept: pointers hold names of the request, which may be long."""
FREE = frozenset({
    "prompt", "input", "messages", "instructions", "suffix", "echo", "n", "best_of", "max_tokens",
    "max_completion_tokens", "max_output_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stream",
    "stream_options", "logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty",
    "repetition_penalty", "user", "metadata", "store",
})  # fmt: skip
"""Fields on which no constraint depends."""


class RefusedWork:
    """The latest errors, by the digest of the fields that constrain. Threads may share it."""

    def __init__(self) -> None:
        self.errors: OrderedDict[str, RequestError] = OrderedDict()
        self.lock = Lock()

    def digest(self, path: str, body: Mapping[str, Any]) -> str:
        """Return the digest of what constrains the answer to a request, "" if nothing can be looked up."""
        fields = {name: value for name, value in body.items() if name not in FREE}
        try:
            return sha256(write_json(plain_document([path, fields])).encode()).hexdigest()
        except ConstrainError:
            return ""

    def check(self, digest: str) -> None:
        """Raise the error of an equal request, if it is kept."""
        with self.lock:
            error = self.errors.get(digest)
            if error is not None:
                self.errors.move_to_end(digest)
        if error is not None:
            raise copy_message(error)

    def note(self, digest: str, error: Exception) -> None:
        """Keep the error of a request if its constraint took too much work."""
        if digest and isinstance(error, ConstrainError) and comes_from_source(error):
            found = as_request_error(error)
            if len(found.pointer or "") > MOST_POINTER:
                return
            with self.lock:
                self.errors[digest] = copy_message(found)
                if len(self.errors) > MOST_ERRORS:
                    self.errors.popitem(last=False)


def copy_message(error: RequestError) -> RequestError:
    """Return a copy of an error that says the same, without its source, which may be long, and its traceback."""
    copy = RequestError(error.cause, error.pointer, hint=error.hint, status=error.status, code=error.code)
    copy.args = error.args
    return copy


def comes_from_source(error: BaseException) -> bool:
    """Return whether an error has `is_of_source`, or was raised in place of one that has, to say where it is."""
    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, LimitError) and chain.is_of_source:
            return True
        chain = chain.__cause__ or chain.__context__
    return False
