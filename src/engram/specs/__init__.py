"""Specs: what to run, as frozen values; how they are stored as JSON, changed field by field, and steered by events."""

from engram.specs.spec import Check, Search, Spec, Train

__all__ = ["Check", "Search", "Spec", "Train"]
