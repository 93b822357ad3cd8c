"""Controls of the experiments on heavy-tailed data, from one file for each theme."""

from engram.claims.controls import Controls
from engram.controls import scaling_dynamics, scaling_grid, scaling_laws, scaling_prediction

CONTROLS: Controls = {
    **scaling_grid.CONTROLS,
    **scaling_laws.CONTROLS,
    **scaling_dynamics.CONTROLS,
    **scaling_prediction.CONTROLS,
}
