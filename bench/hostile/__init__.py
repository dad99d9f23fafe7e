"""Hostile inputs through constrain and its peers, each in a process with a budget of CPU time and memory."""
