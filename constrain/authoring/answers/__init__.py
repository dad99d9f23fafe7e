"""How an answer came about, token by token: what the model wanted, what the constraint allowed, and what was taken."""

from .answer_explanation import AnswerExplanation, explain_answer
from .answer_page import build_answer_page, draw_plain_text, draw_token_line
from .answer_steps import TokenStep
from .answer_text import format_answer

__all__ = [
    "AnswerExplanation",
    "TokenStep",
    "build_answer_page",
    "draw_plain_text",
    "draw_token_line",
    "explain_answer",
    "format_answer",
]
