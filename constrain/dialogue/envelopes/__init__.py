"""The envelopes by name: how models write tool calls, one file a family."""

from .call import Envelope
from .harmony import HARMONY
from .hermes import HERMES
from .mistral import MISTRAL, MISTRAL_ARGS
from .objects import JSON, LLAMA
from .pythonic import PYTHONIC

__all__ = ["ENVELOPES"]

ENVELOPES: dict[str, Envelope] = {
    envelope.name: envelope for envelope in (HERMES, LLAMA, PYTHONIC, MISTRAL, MISTRAL_ARGS, HARMONY, JSON)
}
