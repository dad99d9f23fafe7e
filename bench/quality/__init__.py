"""The measures of JSONSchemaBench, and tasks of lm-evaluation-harness, with any local model; see `__main__`."""
