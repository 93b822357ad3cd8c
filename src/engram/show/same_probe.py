"""How far the copy of a model is from the model."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from engram.show.panels import listed, panels
from engram.show.style import THEORY, house_style


@house_style()
def largest_differences(errors: Mapping[str, float], band: float) -> Figure:
    """By what is measured the largest difference, on a logarithmic axis, beside the tolerance."""
    ax = panels(6.8, 0.36 * len(errors) + 1.3)
    ax.barh(list(errors), [abs(error) for error in errors.values()], color="C2", height=0.55)
    ax.axvline(band, **THEORY)
    ax.text(band * 1.3, 0.5, "tolerance", fontsize=8.5, rotation=90, va="center")
    ax.set(xscale="log", xlim=(1e-10, 1e-3), xlabel="largest difference between model and copy (float32)")
    ax.set_title("Probes on a model and on its copy")
    for i, error in enumerate(errors.values()):
        if error == 0:  # a logarithmic axis has no place for it
            ax.text(1.3e-10, i, "0", fontsize=8.5, va="center")
    listed(ax)
    return ax.figure
