"""Numbers: their keywords, sets of numbers, and the automata of their spellings."""
