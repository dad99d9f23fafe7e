"""Diagrams of a grammar: railroad diagrams of rules and terminals, and the automaton of the lexer, as SVG or a page."""

from .diagram_page import draw_page, draw_rules_svg, draw_svg
from .source_diagrams import draw_source

__all__ = ["draw_page", "draw_rules_svg", "draw_source", "draw_svg"]
