"""Pages and pictures of the documentation that are generated from results and from running code."""
