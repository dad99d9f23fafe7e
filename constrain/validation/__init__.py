"""Validation of JSON instances by the keyword table of the JSON Schema front end, with messages for people."""

from .instance_validation import InstanceValidator, validate
from .violations import Violation

__all__ = ["InstanceValidator", "Violation", "validate"]
