"""What does it cost to get from a schema's text to the first mask, where schemas are large or nasty?

`cases` makes such schemas, each in sizes that grow, so that a cliff shows; `trial` takes one through one engine in a
fresh process, with wall time, CPU time and memory; `dev` finds the slowest of a file of schemas and says where their
time goes. `python -m bench compile_cost` prints the table.
"""
