"""The keyword truth table: what each engine really does with each keyword of JSON Schema.

`probes` and `formats` hold small schemas with documents that are in and documents that are not; `peers` puts them
through the engines; `table` makes the page of it. `python -m bench keyword_table --write docs/json-schema.md`.
"""
