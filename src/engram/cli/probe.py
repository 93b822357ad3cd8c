"""`engram probe MODEL WHAT`: what is asked of a model that others trained."""

from pathlib import Path

from engram.errors import EngramError, did_you_mean

WHAT = ("laser",)


def probe(
    model: str,
    what: str,
    *,
    prompts: Path | None = None,
    matrices: str = "mlp",
    text: Path | None = None,
    yes: bool = False,
    json: bool = False,
) -> None:
    """Probe a Hugging Face folder, a GGUF file or a known model (smollm2).

    Parameters
    ----------
    model
        A folder with config.json and model.safetensors, a .gguf file, or smollm2.
    what
        laser: truncate every matrix to shares of its singular values, and find the cut that helps answers most.
    prompts
        For laser: a table with the columns prompt, answer and, if there is one, rival.
    matrices
        For laser: mlp, attention or all.
    text
        A text in UTF-8 whose loss is measured beside; prose that is installed with Engram unless said.
    yes
        Download a known model that is not here.
    """
    from engram.cli.laser import laser

    if what not in WHAT:
        raise EngramError(f"probe: unknown {what!r:.60}; {did_you_mean(what, WHAT)}allowed: {', '.join(WHAT)}")
    laser(model, prompts, matrices, text, yes, json)
