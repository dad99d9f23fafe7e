"""Do methods rank as the papers report? Five kinds of tasks, the cost of AWRS, and the protocol of GAD."""
