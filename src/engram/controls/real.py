"""Controls of the experiments on real language."""

from engram.claims.controls import Controls
from engram.controls import real_birth

CONTROLS: Controls = {**real_birth.CONTROLS}
