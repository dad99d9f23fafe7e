"""What all samplers share: models, draws with weights, the step under a mask, checks of arguments."""
