"""Controls of the experiments on heavy-tailed data, from one file for each theme."""

from engram.claims.controls import Controls
from engram.controls import scaling_dynamics

CONTROLS: Controls = {**scaling_dynamics.CONTROLS}
