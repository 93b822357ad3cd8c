"""Experiments on heavy-tailed data: how errors fall with width and samples, and what optimisers store."""
