"""Scripts for another interpreter, for peers whose dependencies conflict with ours."""
