"""Experiments of "Birth of a Transformer: A Memory Viewpoint" (Bietti et al., NeurIPS 2023)."""
