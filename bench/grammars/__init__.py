"""Grammars: do we accept what Lark accepts, and how fast are the masks beside the peers? See `__main__`."""
