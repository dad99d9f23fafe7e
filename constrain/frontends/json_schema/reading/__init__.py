"""Reading: from JSON to nodes with literal sets: keywords, references, vocabularies, faults."""
