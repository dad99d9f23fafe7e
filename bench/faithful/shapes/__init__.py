"""Do the samplers stand in the order that the papers report? Five kinds of tasks, AWRS's costs, and GAD's protocol."""
