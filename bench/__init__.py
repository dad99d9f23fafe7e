"""Every figure that README and docs claim, as a command: one file a question, see bench/README.md."""
