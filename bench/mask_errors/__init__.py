"""How many masks are wrong? Masks along valid texts and random walks, over the schemas of MaskBench.

values.py      a JSON value whose numbers keep their spelling
judge.py       is this text valid? By jsonschema as it is, and by jsonschema with exact numbers and ECMA 262 patterns;
an
               error on which these two differ is in doubt and counted apart
variants.py    changes of valid instances: only those that both judges accept are used
spelling.py    a value as text: canonical, or in any spelling that RFC 8259 allows
cutting.py     a text as tokens in every way: all tokens that may come at each byte, random tokenisations
walks.py       one schema with one engine, mask by mask: `Findings`
summary.py     counts, errors per million masks, the first findings, as tables and as JSON

python -m bench mask_errors --sample 300 --engines constrain-any,constrain
"""
