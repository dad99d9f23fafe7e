"""The learned twist of `smc` and `pimh`: a table of values of abstract states, learned from the model's own rows.

state_numbers        abstract states as numbers that outlive a state cache
value_table          the table: estimates of the mass to come, by state, tokens left, and last token
visited_prefixes     the texts that populations have visited, with their next-token distributions
value_backups        from these to a better table: the look-ahead equation, applied backwards
lookahead            all next tokens of a text at once: probabilities, states and values
twisted_populations  one population: weights by exact one-token look-ahead, tokens in proportion to p times value
population_schedule  which table each population uses: learned, flat, or a scout's; the guard
kept_tables          the tables that a Constraint keeps between calls
table_files          tables on disk
"""
