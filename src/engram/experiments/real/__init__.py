"""Experiments on real language: models of others, and models of ours trained on text that people wrote."""

SMOLLM2 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # SHA-256 of the file (`smollm2`)
