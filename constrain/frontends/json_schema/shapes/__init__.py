"""Shapes: what a schema allows for each JSON type, and the interface of the algebra that combines them."""
