"""Experiments on global against in-context associations: which part of a transformer learns which, and how soon."""

SOURCE = (
    "Chen, Bruna and Bietti 2025, Distributional associations vs in-context reasoning: a study of feed-forward and "
    "attention layers (ICLR); talks, 'Global vs in-context associations'"
)
