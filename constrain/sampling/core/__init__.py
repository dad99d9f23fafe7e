"""Code shared by all samplers: the model interface, weighted draws, the masked step, validation of arguments."""
