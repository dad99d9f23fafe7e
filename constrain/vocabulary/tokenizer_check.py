"""Self-test of a Vocabulary: the bytes of the tokens must spell what the tokenizer encodes.

Each probe is encoded, the bytes of the tokens are joined, and the result is compared with the probe itself and with its
normalised form (NFC, lower case, a space in front). Probes that the vocabulary cannot spell (unknown tokens, missing
bytes) are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..base.errors import VocabularyError
from .text_tokenisation import Encode
from .vocabulary import Vocabulary

__all__ = ["PROBES", "TokenizerConduct", "run_self_test"]

PROBES = (
    "Hello, world! The quick brown fox",
    "a",
    " leading and trailing ",
    "runs  of   spaces    and\ttabs\t\tand  ",
    "lines\nmore\n\n\nlines\r\nand \n spaces \n\n",
    "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m \u0141\u00f3d\u017a e\u0301",
    "\u4f60\u597d\uff0c\u4e16\u754c \u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947",
    "\U0001f600\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001d538 \u2603\ufe0f",
    "\x00\x01\x07\x1b\x7f\x80\x9f\u00a0\u2028\ufeff",
    '{"name": "J\\u00f6rg \\"J\\" \\\\", "list": [1, -2.5e+10, true, null], "": {}}',
    '{\n  "a": [\n    1\n  ]\n}',
    "def f(x):\n    return x[0] != 1_000 # <b>&amp;</b>",
    "0123456789 3.14159 2024-01-01T00:00:00Z",
    "don't we'll I'M ''quoted'' -- ... !!! ??",
    "\ufffd\uffff\U0010ffff",
)
OWN_PROBES = 256
"""Number of tokens, spread over the vocabulary, whose text is used as a probe too."""


@dataclass(frozen=True)
class TokenizerConduct:
    """How a tokenizer declares to change a text before splitting it.

    `normal` is its normaliser, with U+2581 replaced by a space. `space` is "before" if it may put a space in front of a
    text. `unknown` are the ids of unknown-text tokens.
    """

    normal: Callable[[str], str] = str
    space: str = "none"
    unknown: frozenset[int] = frozenset()


def run_self_test(
    vocabulary: Vocabulary, encode: Encode, conduct: TokenizerConduct, derived: Sequence[bytes | None]
) -> None:
    """Raise VocabularyError, with the probe and its tokens, if a probe is not spelled by the bytes of its tokens.

    `derived` are the bytes of the tokens before end tokens and special tokens were set to None: the tokenizer may use
    those for text (an end token that is a line feed), even if a constrained text never does.
    """
    spelled = frozenset(vocabulary.blob)
    texts = list(derived)
    for name, index in vocabulary.special.items():
        texts[index] = texts[index] or name.encode()
    tested = 0
    for probe in (*PROBES, *sample_token_texts(vocabulary)):
        wanted = {form.encode() for form in (probe, conduct.normal(probe))}
        if not all(spelled.issuperset(form) for form in wanted):
            continue
        ids = encode(probe)
        if conduct.unknown.intersection(ids):
            continue
        tested += 1
        if conduct.space == "before":
            wanted |= {b" " + form for form in wanted}
        spelling = b"".join(texts[index] or b"" for index in ids)
        if spelling not in wanted:
            tokens = ", ".join(f"{index}={texts[index]!r}" for index in ids[:24]) + (", ..." if ids[24:] else "")
            raise report_mismatch(vocabulary.name, probe, tokens, spelling, wanted)
    if not tested:
        raise VocabularyError(f"no text could be tried on {vocabulary.name}: its tokens spell none of the probes")


def sample_token_texts(vocabulary: Vocabulary) -> list[str]:
    """Return the texts of some tokens, spread evenly over the ids."""
    ids = [index for index, token in enumerate(vocabulary.tokens) if token]
    texts = []
    for index in ids[:: max(1, len(ids) // OWN_PROBES)]:
        try:
            texts.append((vocabulary.tokens[index] or b"").decode())
        except UnicodeDecodeError:
            pass
    return texts


def report_mismatch(name: str, probe: str, tokens: str, spelling: bytes, wanted: Collection[bytes]) -> VocabularyError:
    """Return the error for one probe."""
    closest = max(wanted, key=lambda form: (common_prefix_length(form, spelling), form))
    start = common_prefix_length(closest, spelling)
    return VocabularyError(
        f"the bytes of the tokens of {name} do not spell what it encodes: {probe!r} gives the tokens {tokens}, which "
        f"differ from it at byte {start}: {spelling[start : start + 16]!r} for {closest[start : start + 16]!r}",
        hint="Vocabulary.from_tokens takes the bytes of every token as you know them.",
    )


def common_prefix_length(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
