"""Controls of the experiments on a real language model."""

from engram.claims.controls import Controls
from engram.controls import real_heads

CONTROLS: Controls = {**real_heads.CONTROLS}
