"""Diagrams of a grammar: a railroad for each rule and terminal, and the automaton of the lexer, as SVG or a page."""

from .diagram_page import draw_page, draw_svg

__all__ = ["draw_page", "draw_svg"]
