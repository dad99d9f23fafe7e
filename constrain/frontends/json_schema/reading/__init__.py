"""The keyword table, references between schemas, and the parser of documents."""
