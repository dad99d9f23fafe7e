"""The envelopes by name: formats of tool calls, one module per family."""

from .envelope import Envelope
from .harmony import HARMONY
from .hermes import HERMES
from .json_objects import JSON, LLAMA
from .mistral import MISTRAL, MISTRAL_ARGS
from .pythonic import PYTHONIC

__all__ = ["ENVELOPES"]

ENVELOPES: dict[str, Envelope] = {
    envelope.name: envelope for envelope in (HERMES, LLAMA, PYTHONIC, MISTRAL, MISTRAL_ARGS, HARMONY, JSON)
}
