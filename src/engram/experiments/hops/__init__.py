"""Experiments on several hops: how deep a transformer must be, what it can be taught, and in which order."""

DEPTH = "Sanford, Hsu and Telgarsky 2024, Transformers, parallel computation, and logarithmic depth (ICML)"
CURRICULUM = (
    "Wang, Nichani, Bietti, Damian, Hsu, Lee and Wu 2025, Learning compositional functions with transformers from "
    "easy-to-hard data"
)
SOURCE = f"{DEPTH}; {CURRICULUM}; talks, slides on k-hop reasoning"
