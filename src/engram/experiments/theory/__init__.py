"""Experiments on learning by gradients: lemmas, three population steps, finite width and samples."""
