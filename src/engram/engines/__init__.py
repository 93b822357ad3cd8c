"""Engines: where many Specs run. One engine is one class with the method `run` of `Local`."""
