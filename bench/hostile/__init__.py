"""Hostile inputs to constrain and its peers, each in a process with limits of CPU time and memory."""
