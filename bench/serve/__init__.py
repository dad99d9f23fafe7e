"""A running server under load: many clients, many schemas, some of them hostile."""
