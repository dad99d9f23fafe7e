"""How many masks are wrong? Over schemas of MaskBench, masks on the way of texts that are valid, and of random ones.

values.py      a JSON value whose numbers keep their spelling
judge.py       is this text valid? By jsonschema as it is, and by jsonschema made exact; where these two differ
               (floats, Python's patterns) an error is in doubt and is listed apart
variants.py    a valid instance made different: only what both still call valid is used
spelling.py    a value as text: canonical, or any way that RFC 8259 has
cutting.py     a text as tokens in every way: all tokens that may come at each byte, random roads through them
walks.py       one schema through one engine, mask by mask: `Findings`
summary.py     counts, errors per million masks, the first findings, as tables and as JSON

python -m bench mask_errors --sample 300 --engines constrain-any,constrain
"""
