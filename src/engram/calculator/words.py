"""Answers of the calculator in a few plain lines."""

from collections.abc import Mapping

from engram.calculator.answers import Answer, Range
from engram.calculator.kinds import FACTS, MLP
from engram.calculator.zipf import Tail
from engram.theory.prediction import exponents

CAUSES = {
    "unseen": "tokens that no sample showed, whatever the memory",
    "counts": "a matrix that adds up what it sees, q = p (order of magnitude)",
    "threshold": "a matrix that keeps the d/8 likeliest tokens alike",
    "threshold, of samples": "the same, learned from these samples",
}


def lines_of(found: Answer | Tail) -> list[str]:
    """The answer, one fact a line; the first says what was asked."""
    return _of_tail(found) if isinstance(found, Tail) else [_asked(found), *_numbers(found), *_beside(found)]


def _asked(found: Answer) -> str:
    kind = found.kind
    if found.asked == "size":
        return f"{found.store:,.0f} {kind.stores} in {kind.about}:"
    size = f"{kind.size.partition(' ')[0]} {found.size:,.0f}"
    if found.asked == "held":
        return f"{kind.about}, {size}:"
    return f"{found.store:,.0f} {kind.stores} in {kind.about}, {size}: {found.notes[0]}"


def _numbers(found: Answer) -> list[str]:
    kind, fit = found.kind, found.fit
    unit = kind.size.partition(" ")[0] if found.asked == "size" else kind.stores
    where = f"extrapolated by a factor of {found.factor:.1f} in width" if found.extrapolated else "inside the range"
    sizes = f"{kind.size.partition(' ')[0]} {fit.low:g} … {fit.high:g}"
    return [
        f"  theory    {unit} {found.theory:,.0f}, by {kind.says}",
        f"  measured  {unit} {_range(found.measured)}, 95 % for one more seed",
        f"            fit to n = {fit.n} records of {kind.experiment}, {sizes}; {where}",
    ]


def _range(found: Range) -> str:
    low, high = ("?" if end is None else f"{end:,.0f}" for end in (found.low, found.high))
    return f"{found.value:,.0f} ({low} … {high})"


def _beside(found: Answer) -> list[str]:
    lines = [f"  model     {_model(found)}"] if found.proposal else []
    if found.asked == "error":
        known = (
            "not known: it is at most 1% only below the interval"
            if found.error is None
            else f"about {found.error:.2%} of answers"
        )
        lines.append(f"  error     {known}" + (" at most" if found.error and found.kind.name != "hebb" else ""))
    else:
        lines.append(f"  error     {found.error:.0%} of answers at that size: recall of 99 % is what was sought")
    notes = found.notes[1:] if found.asked == "error" else found.notes
    return lines + [f"  note      {note}" for note in notes] + [f"  warning   {w}" for w in [found.warning] if w]


def _model(found: Answer) -> str:
    shape = found.proposal
    if found.kind is MLP:
        return f"d = {shape['d']}, m = {shape['m']} units"
    if found.kind is FACTS:
        return transformer_in_words(shape)
    return f"d = {shape['d']}"


def transformer_in_words(shape: Mapping[str, int]) -> str:
    parts = f"d = {shape['d']}, {shape['heads']} heads of width {shape['d_h']}, MLP of {shape['m']} units"
    return f"{parts} ({shape['parameters']:,} parameters)"


def _of_tail(found: Tail) -> list[str]:
    head = f"{found.tokens:,} tokens with p(z) ∝ z^−{found.alpha:g}, {found.answers} answers"
    asked = [f"{found.samples:,} samples"] if found.samples is not None else []
    asked += [f"width {found.width:,}"] if found.width is not None else []
    asked += [f"an error of {found.target:g}"] if found.target is not None else []
    lines = [f"{head}; {', '.join(asked)}:"]
    lines += [f"  {error:<9.3g} {CAUSES[cause]}" for cause, error in found.errors.items()]
    if needed := found.needed:
        lines.append(f"  samples   {needed['samples']:,} leave half of it unseen (exact)")
        lines.append(f"  width     {needed['width']:,} keeps {needed['kept']:,} tokens; the others are the other half")
    rates = exponents(found.alpha)
    law = (
        "n^{samples:.3g}; d^{counts:.3g} for q = p, d^{threshold:.3g} for a threshold".format(**rates)
        if rates
        else None
    )
    lines.append(f"  theory    errors fall like {law}" if law else "  theory    no power law for α ≤ 1: N decides")
    return [*lines, "  measured  no committed record yet: these are sums and exponents of theory"]
