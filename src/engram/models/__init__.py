"""Models: a frozen description, weights as a dict of named matrices, and a forward pass that returns a Trace."""

from engram.models.network import Network
from engram.models.own_network import network_of
from engram.models.simplified import Simplified
from engram.models.trace import Architecture, Head, Model, Trace, Weights
from engram.models.transformer import Layer, Transformer

__all__ = [
    "Architecture", "Head", "Layer", "Model", "Network", "Simplified", "Trace", "Transformer", "Weights", "network_of",
]  # fmt: skip
