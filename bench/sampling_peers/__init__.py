"""Scripts that run in another interpreter, where a peer lives that does not go together with what is installed here."""
