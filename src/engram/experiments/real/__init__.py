"""Experiments on real language models, and on models of ours that are read as they are."""
