"""Experiments on factual recall: how many facts are stored, by what, and in which order they are learned."""
