"""Probes: what a weight matrix remembers and where attention goes. Pure functions of weights and tokens."""
