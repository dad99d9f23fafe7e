"""How fast is generation under constraints, and are answers valid? Our Engine, and the peers inside transformers.

models.py    the embedded model, and Llamas with random weights of 100 million and 1 billion parameters
peers.py     logits processors of llguidance, XGrammar and Outlines
timing.py    runs that are compared alternate
plain.py     tokens per second under a constraint over those without
forced.py    the same where the constraint forces much of the text, and what limits it
written_texts.py  make a model write a given text
drafts.py    tokens per second with drafts over those without
batches.py   time outside the forward pass in a batch of 32; n=8 compared with n=1
budgets.py   do all answers within token budgets validate?

python -m bench decoding --sample 20 --parts plain,forced --models demo,random-100m
"""
