"""What notebooks show of the objects of packages below this one."""
