"""JSON Schema: a document in, a Grammar of exactly its instances out.

    text | dict | bool --read--> numbered nodes --algebra--> Shapes --emit--> Grammar

`read` checks and parses keywords by the table in `keywords` and resolves references (`refs`). `algebra` combines them
into a Shape for each literal set (`literals`, `shapes`), one room for each type: `quantities` (numbers), `strings`,
`arrays`, `objects`; and it knows what is empty. `emit` and the rooms write nodes, as a Style wants them. `front` is
the pipeline, `describe` says of every keyword of a schema how it is enforced.
"""

from __future__ import annotations

from .front import to_grammar
from .reading.describe import Row, describe
from .reading.keywords import KEYWORDS, Keyword

__all__ = ["KEYWORDS", "Keyword", "Row", "describe", "to_grammar"]
