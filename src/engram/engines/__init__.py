"""Engines: where many Specs run."""
