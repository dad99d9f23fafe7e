"""Are answers and masks inside other engines what our Matcher says?

tally.py           the rows of the table, and masks compared with a Matcher's
local_engines.py   llama-cpp-python, MLX and transformers: the embedded model inside the package itself
class_engines.py   vLLM and SGLang: their own classes, driven by a simulated scheduler and model
"""
