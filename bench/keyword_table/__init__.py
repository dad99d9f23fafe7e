"""The table of keywords: what each engine does with each keyword of JSON Schema.

`probes` and `formats` contain small schemas with valid and invalid documents; `peers` runs the engines on them; `table`
writes the page. `python -m bench keyword_table --write docs/json-schema.md`.
"""
