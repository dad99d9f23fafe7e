"""Automata of JSON numbers by arithmetic: sets of decimals, and the spellings of their members, one state at a time."""
