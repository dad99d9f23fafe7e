"""Values of abstract states, learned from the model's own rows: the twist of `smc` and `pimh`, apart from sampling.

    state_numbers     abstract states as numbers that outlive a state cache
    value_table       the table: estimates of the mass to come, by state, tokens left, and last token
    visited_prefixes  the texts that populations have visited, with their next-token distributions
    value_backups     from these to a better table: the look-ahead equation, applied backwards
    fallback_rule     when populations leave the learned twist for a flat one
    constraint_tables the table that a Constraint keeps between calls
    table_files       tables on disk

Beside this package are `lookahead` (all next tokens of a text at once), `twisted_populations` (one population: weights
by exact one-token look-ahead, tokens in proportion to p times value) and `population_schedule` (which values each
population of a call uses: learned, flat, or a scout's).
"""
