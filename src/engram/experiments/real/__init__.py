"""Experiments on real language: models of others, and models of ours trained on text that people wrote."""
