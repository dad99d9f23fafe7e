"""The embedded model: how often its answers say what the prompt says, checkpoint beside checkpoint."""
