"""What does it cost to get from the text of a schema to the first mask, where schemas are large or difficult?

`cases` builds such schemas in growing sizes; `trial` measures wall time, CPU time and memory of one schema with one
engine in a new process; `dev` finds the slowest schemas of a file and profiles them. `python -m bench compile_cost`
prints the table.
"""
