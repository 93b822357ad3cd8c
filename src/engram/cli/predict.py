"""`engram predict`: the size that a memory needs, or what a size holds; theory beside what was measured."""

from typing import Any

from cyclopts import App

from engram.cli.output import Number, WholeNumber, answer, tell

predict = App(
    name="predict", help="The size that a memory needs, or what a size holds: theory beside what our records measured."
)
MATRICES = ("hebb", "linear", "mlp")


@predict.command
def pairs(
    number: Number | None = None,
    *,
    memory: str | None = None,
    width: WholeNumber | None = None,
    units: WholeNumber | None = None,
    json: bool = False,
) -> None:
    """Pairs in a matrix or an MLP: the size that so many need, what a width holds, or whether they fit.

    Parameters
    ----------
    number
        Pairs to store; left out, what the width holds.
    memory
        hebb (W = Σ u eᵀ), linear (a trained matrix) or mlp; left out, all of them.
    width
        Width d.
    units
        Units m of an MLP; 4 d by default.
    """
    kinds = ("mlp",) if memory is None and units is not None else (memory,) if memory else MATRICES
    _answer([{"memory": kind, "pairs": number, "width": width, "units": units} for kind in kinds], json)


@predict.command
def facts(
    subjects: WholeNumber | None = None,
    relations: WholeNumber | None = None,
    answers: WholeNumber | None = None,
    *,
    width: WholeNumber | None = None,
    heads: WholeNumber | None = None,
    head_width: WholeNumber | None = None,
    units: WholeNumber | None = None,
    json: bool = False,
) -> None:
    """Facts (subjects, relations, answers for each relation) in a one-layer transformer, or what a transformer holds.

    Parameters
    ----------
    subjects
        S; alone, it is the number of facts.
    relations
        R; there are S·R facts.
    answers
        D, for each relation; 8 by default, as in all records.
    width
        Width d of the transformer; what is left out has the measured shape.
    heads
        Number of heads H.
    head_width
        Width d_h of a head.
    units
        Hidden units m of the MLP.
    """
    wanted: Any = subjects
    if subjects is not None and relations is not None:
        wanted = (subjects, relations, 8 if answers is None else answers)
    shape = {"width": width, "heads": heads, "head_width": head_width, "units": units}
    _answer([{"memory": "facts", "facts": wanted, **shape}], json)


@predict.command
def zipf(
    alpha: float,
    *,
    samples: WholeNumber | None = None,
    width: WholeNumber | None = None,
    error: float | None = None,
    tokens: WholeNumber = 1000,
    answers: WholeNumber = 5,
    json: bool = False,
) -> None:
    """Heavy-tailed data, p(z) ∝ z^−alpha: the error that samples and width leave, or what an error asks for.

    Parameters
    ----------
    alpha
        The exponent, above 0.
    samples
        Samples that are seen.
    width
        Width d of the matrix.
    error
        The error that is wanted; left out, what samples and width give.
    tokens
        N.
    answers
        M.
    """
    asked = {"alpha": alpha, "samples": samples, "width": width, "error": error, "tokens": tokens, "answers": answers}
    _answer([{"memory": "zipf", **asked}], json)


def _answer(questions: list[dict[str, Any]], json: bool) -> None:
    from engram.calculator.predict import predict as ask
    from engram.calculator.words import lines_of

    found = [ask(**question) for question in questions]
    if json:
        answer({"predictions": [one.to_json() for one in found]})
        return
    for one in found:
        tell(*lines_of(one))
