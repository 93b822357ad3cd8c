"""Controls of the experiments on heavy-tailed data, from one file for each theme."""

from engram.claims.controls import Controls
<<<<<<< HEAD
from engram.controls import scaling_dynamics, scaling_grid

CONTROLS: Controls = {**scaling_grid.CONTROLS, **scaling_dynamics.CONTROLS}
=======
from engram.controls import scaling_laws

CONTROLS: Controls = {**scaling_laws.CONTROLS}
>>>>>>> sc-laws
