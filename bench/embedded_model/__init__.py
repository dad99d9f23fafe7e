"""How often are answers of the embedded model right, for several checkpoints?"""
