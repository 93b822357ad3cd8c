"""What can be stored, and how: linear, low-rank, MLP, Hopfield and dense memories with one small interface."""

from engram.memory.factorised import Factorised, LayerNormed, LowRank
from engram.memory.hopfield import Hopfield
from engram.memory.linear import Edit, Linear, quantisation_bound
from engram.memory.memory import Memory
from engram.memory.mlp import MLP, Sets, Threshold, TwoInputs
from engram.memory.retrieval import Dense, Exponential, NearestNeighbour, Softmax

__all__ = [
    "MLP",
    "Dense",
    "Edit",
    "Exponential",
    "Factorised",
    "Hopfield",
    "LayerNormed",
    "Linear",
    "LowRank",
    "Memory",
    "NearestNeighbour",
    "Sets",
    "Softmax",
    "Threshold",
    "TwoInputs",
    "quantisation_bound",
]
