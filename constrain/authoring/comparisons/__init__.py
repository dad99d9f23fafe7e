"""Comparisons: two samplers under one constraint, and two languages (schemas, styles, patterns, grammars)."""

from .comparison_report import build_language_page, build_sampler_page, describe_languages, describe_samplers
from .comparison_results import Inclusion, SamplerRow
from .language_comparison import LanguageComparison, compare_forms, compare_schemas
from .sampler_comparison import SamplerComparison, compare_samplers

__all__ = [
    "Inclusion",
    "LanguageComparison",
    "SamplerComparison",
    "SamplerRow",
    "build_language_page",
    "build_sampler_page",
    "compare_forms",
    "compare_samplers",
    "compare_schemas",
    "describe_languages",
    "describe_samplers",
]
