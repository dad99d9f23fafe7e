"""What runs on a card, and how fast: see `__main__`."""
