"""The Lark front end."""
