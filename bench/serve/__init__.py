"""Load on a running server: many clients and schemas, and some hostile requests."""
