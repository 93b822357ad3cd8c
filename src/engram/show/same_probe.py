"""How far the copy of a model is from the model."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from engram.show.panels import listed, panels
from engram.show.style import THEORY, house_style


@house_style()
def largest_differences(errors: Mapping[str, float], band: float) -> Figure:
    """By what is measured the largest difference, on a logarithmic axis, beside the tolerance."""
    ax = panels(6.8, 0.36 * len(errors) + 1.3)
    ax.barh(list(errors), [max(abs(error), 1e-12) for error in errors.values()], color="C2", height=0.55)
    ax.axvline(band, **THEORY)
    ax.text(band * 1.3, 0, "tolerance", fontsize=8.5, rotation=90, va="center")
    ax.set(xscale="log", xlim=(1e-10, 1e-3), xlabel="largest difference between model and copy (float32)")
    ax.set_title("A model of ours, and the same read from a Hugging Face folder")
    listed(ax)
    return ax.figure
