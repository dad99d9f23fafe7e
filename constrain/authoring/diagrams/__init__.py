"""Diagrams of a grammar: a railroad for each rule and terminal, and the automaton of the lexer, as SVG or a page."""

from .diagram_page import page, picture

__all__ = ["page", "picture"]
