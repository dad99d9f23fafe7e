"""Numbers: intervals and multiples, and the automata of their spellings."""
