"""Pages and pictures of the documentation that are made from results and from running code."""
