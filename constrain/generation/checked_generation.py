"""`check=` of `generate`: which checkers guide masked sampling token by token, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.errors import UnsupportedError, check_choice
from ..checking.checked_sampling import MaskOrder, TokenCheck
from ..checking.verdicts import TextChecker, VerdictChecker
from ..decoding.token_choice import TokenChoice
from ..sampling import Checker
from ..sampling.post_filtering import as_checker
from ..vocabulary.vocabulary import Vocabulary
from .generation_arguments import Check

__all__ = ["TokenChecks", "check_mask_order", "find_mask_option", "is_guiding"]


def is_guiding(check: Check | None, choice: TokenChoice, heal: str) -> bool:
    """Return whether a check guides masked sampling token by token.

    It does if it judges prefixes. Where a text ends at a stop string, or its forced runs are not sampled, complete
    texts are judged instead; so they are by a `sampling.Checker` after a healed prompt, since it knows whole tokens
    only.
    """
    if choice.stop or choice.forced != "sample":
        return False
    return isinstance(check, TextChecker) or (hasattr(check, "matcher") and heal == "none")


def check_mask_order(arguments: Mapping[str, Any], choice: TokenChoice) -> None:
    """Raise ArgumentError or UnsupportedError unless the sampler can apply the mask in the order of `masks=`.

    arguments: keyword arguments of `generate` by name.
    """
    check_choice("masks", arguments["masks"], ("first", "after"))
    sampler, check = arguments["sampler"], arguments["check"]
    guides = sampler == "masked" and arguments["search"] is None and is_guiding(check, choice, arguments["heal"])
    if arguments["masks"] == "after" and not guides and not (sampler == "awrs" and check is not None):
        raise UnsupportedError(
            'masks="after" needs a check= that judges the text so far, and the sampler "masked" or "awrs"',
            hint='Use masks="first".',
        )


def find_mask_option(sampler: str, checker: object, masks: MaskOrder) -> dict[str, str]:
    """Return the option by which a sampler of `sampling` applies the mask in this order."""
    if sampler != "awrs" or checker is None:
        return {}
    return {"masks": "first" if masks == "first" else "never"}


@dataclass
class TokenChecks:
    """The check of a call, as checks of the tokens of its texts. Verdicts are shared by all texts."""

    check: Check
    vocabulary: Vocabulary
    masks: MaskOrder
    known: dict[int, Checker] = field(default_factory=dict)

    def make_check(self, skipped: int) -> TokenCheck:
        """Return the check of texts of which a number of bytes at the start belong to the prompt."""
        if skipped not in self.known:
            checker: Any = self.check
            if isinstance(checker, TextChecker):
                checker = VerdictChecker(self.vocabulary, checker, skipped=skipped)
            self.known[skipped] = as_checker(checker, self.vocabulary)
        return TokenCheck(self.known[skipped], self.masks)
