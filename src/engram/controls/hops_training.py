"""Controls of trained hops: regimes that teach as others do, hops in another order, depth and width without effect."""

from collections.abc import Callable, Hashable
from math import exp
from typing import Any

from engram.claims.controls import Control, Controls
from engram.claims.experiment import Runs
from engram.claims.planting import alike, changed, columns, exchanged_columns, grafted, instead, rewritten
from engram.experiments.hops.curriculum import column
from engram.records import Record
from engram.records.files import Row
from engram.values import generator

MIXTURE, BY_LAYERS = "mixture", "layer by layer"
FIRST_AND_LAST = (column(1), column(4))
WITHOUT = {f"without.L{i}.hop{hops}": f"without.L{i}.hop{2 * hops}" for i, hops in ((2, 1), (3, 2))}
WHOLE = {f"without.none.hop{hops}": f"without.none.hop{2 * hops}" for hops in (1, 2)}
BEFORE = {f"alignment.L3H{h}.find2": f"alignment.L2H{h}.find2" for h in range(1, 5)}
SPREAD = 0.05  # of planted numbers, which would else be equal


def _is(*wanted: Hashable) -> Callable[[Any], bool]:
    """Labels that are one of these, or tuples that begin with one."""
    return lambda label: label in wanted or (isinstance(label, tuple) and label[0] in wanted)


def hardest_as_taught(runs: Runs) -> Runs:
    """The hardest data alone teach what a curriculum by layers teaches."""
    return grafted({label: (BY_LAYERS, label[1]) for label in runs if label[0] == "hardest only"})(runs)


def one_layer_as_two(runs: Runs) -> Runs:
    return instead({label: (2, *label[1:]) for label in runs if label[0] == 1})(runs)


def two_layers_as_one(runs: Runs) -> Runs:
    return instead({label: (1, *label[1:]) for label in runs if label[0] == 2})(runs)


def all_as_the_shallowest(runs: Runs) -> Runs:
    """Models keep their depth, but what was measured is that of the model with the fewest layers."""
    shallowest, *deeper = sorted(runs)
    return grafted(dict.fromkeys(deeper, shallowest))(runs)


def _uniform(record: Record, row: Row) -> Row:
    """Every head is aligned with find^j as uniform attention is, with noise."""
    looks = [name for name in row if name.startswith("alignment.L")]
    noise = generator(record.spec.seed, "control.uniform").normal(size=len(looks))
    chance = [row[f"alignment.chance.{name.rpartition('.')[2]}"] for name in looks]
    return {name: by * exp(SPREAD * z) for name, by, z in zip(looks, chance, noise, strict=True)}


CONTROLS: Controls = {
    "hops.hardest-only-fails": (
        Control("the hardest data teach what a curriculum by layers teaches", grafted({"hardest only": BY_LAYERS})),
    ),
    "hops.mixture-learns": (Control("a mixture teaches nothing", grafted({MIXTURE: "hardest only"})),),
    "hops.curriculum-learns": (Control("a curriculum teaches nothing", grafted({BY_LAYERS: "hardest only"})),),
    "hops.plain-curriculum": (Control("layers need not be trained one by one", grafted({"curriculum": BY_LAYERS})),),
    "hops.order": (
        Control("four hops come first", changed(exchanged_columns(FIRST_AND_LAST), only=_is(MIXTURE))),
        Control("layers are worth the same to all hops", changed(columns(WITHOUT | WHOLE, SPREAD), only=_is(MIXTURE))),
    ),
    "hops.order-by-layers": (
        Control("four hops come first", changed(exchanged_columns(FIRST_AND_LAST), only=_is(BY_LAYERS))),
    ),
    "hops.samples": (
        Control("samples do not grow with k", alike(only=_is(BY_LAYERS))),
        Control("the hardest data teach what a curriculum teaches", hardest_as_taught),
    ),
    "hops.samples-mixture": (Control("samples do not grow with k", alike(only=_is(MIXTURE))),),
    "hops.depth": (Control("depth makes no difference", all_as_the_shallowest),),
    "hops.doubling-attention-trained": (
        Control("heads look everywhere alike", changed(rewritten(_uniform))),
        Control("the last layer looks where the one before it does", changed(columns(BEFORE, SPREAD), only=_is(3))),
    ),
    "hops.one-layer-width": (
        Control("one layer needs what two need", one_layer_as_two),
        Control("two layers need what one needs", two_layers_as_one),
    ),
}
