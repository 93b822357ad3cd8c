"""Controls of the experiments on real language."""

from engram.claims.controls import Controls
from engram.controls import real_birth, real_export, real_facts, real_heads

CONTROLS: Controls = {**real_birth.CONTROLS, **real_heads.CONTROLS, **real_facts.CONTROLS, **real_export.CONTROLS}
