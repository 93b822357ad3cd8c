"""Columns: whatever a probe writes has a group and a title, and is drawn and born by them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engram.lab.watched_run import Births
from engram.probes.columns import axis, column, curves, memories
from engram.records.files import line_of
from engram.records.table import Table
from engram.runner.execute import execute
from engram.show.progress import Progress, birth_summary
from engram.specs import Train

NAMES = {
    "recall.W_O2": ("recall", "W_O2"),
    "recall.W_K1.t<64": ("recall", "W_K1 (t<64)"),
    "loss": ("loss", "loss"),
    "loss.in_context": ("loss", "loss in context"),
    "accuracy.first": ("accuracy", "accuracy first visits"),
    "accuracy.my_group": ("accuracy", "accuracy my group"),
    "all.accuracy": ("accuracy", "accuracy over all facts"),
    "all.loss.relation": ("loss", "loss of the relation over all facts"),
    "all.mass.right": ("mass", "right over all facts"),
    "test.uniform.accuracy.in_context": ("accuracy on tests", "uniform: accuracy in context"),
    "test.all.accuracy.hop1": ("accuracy by hops", "1 hop"),
    "test.long.accuracy.hop16": ("accuracy by hops", "long: 16 hops"),
    "test.all.loss.hop2": ("loss on tests", "all: loss at 2 hops"),
    "accuracy.hop2": ("accuracy", "accuracy at 2 hops"),
    "kl.W_F": ("kl", "W_F"),
    "attention.previous": ("attention", "previous"),
    "mass.previous.after_triggers.chance": ("mass", "previous after triggers chance"),
    "attribution.in_context.W_F.head1": ("attribution", "in context W_F head1"),
    "cut.W_I2.10%.p_correct": ("probability when truncated", "right token, W_I2 at 10%"),
    "cut.W_I2.0.5%.p_noise": ("probability when truncated", "noise token, W_I2 at 0.5%"),
    "cut.W_I2.0%.loss": ("loss when truncated", "W_I2 at 0%"),
    "map.W_F.100%.accuracy": ("accuracy when truncated", "W_F at 100%"),
    "map.mine": ("map", "mine"),
    "mine": ("mine", "mine"),
    "spectral_norm.W_K1": ("spectral norm", "W_K1"),
    "all": ("all", "all"),
    "test.short": ("test", "short"),
    "recall": ("recall", "recall"),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_column(name: str) -> None:
    assert column(name)[1:] == NAMES[name]


def test_axes_have_their_units() -> None:
    assert [axis(group) for group in ("loss", "kl", "mine")] == ["loss (nats)", "KL divergence (nats)", "mine"]


def test_a_loss_over_one_group_is_drawn_once() -> None:
    assert [c.name for c in curves(["step", "loss", "loss.first"])] == ["loss.first"]
    both = ["step", "loss", "loss.first", "loss.global", "mine"]
    assert [c.name for c in curves(both)] == both[1:]


def test_births_of_known_memories_are_told_first() -> None:
    names = ["recall.mine", "recall.W_K1", "recall.W_K1.t<64", "loss", "recall.W_K2", "recall.W_O2"]
    assert [c.title for c in memories(names)] == ["W_O2", "W_K2", "W_K1 (t<64)", "W_K1", "mine"]
    rows = [{"step": 0, "recall.mine": 0.5}, {"step": 1}, {"step": 2, "recall.mine": 0.6, "recall.W_O2": 0.7}]
    table = Table()
    births = Births(table)
    table.add([line_of(row)[:-1] for row in rows])
    both = [{"step": 2, "what": "W_O2 is born"}, {"step": 2, "what": "mine is born"}]
    assert births.so_far() == births.so_far() == both
    table.cut(2)  # a resumed run computes the row again
    assert births.so_far() == []
    table.add([line_of({"step": 2})[:-1], line_of({"step": 3, "recall.mine": 0.9})[:-1]])
    assert births.so_far() == [{"step": 3, "what": "mine is born"}]


def test_any_memory_is_born(home: Path, tiny: Callable[..., Train]) -> None:
    progress = Progress(tiny())
    assert progress.see({"step": 3, "recall.mine": 0.7}) == ["mine is born at step 3 (recall 0.70 > 0.5)"]
    assert progress.see({"step": 4, "recall.mine": 0.95}) == ["mine stands firm at step 4 (recall 0.95 > 0.9)"]
    told = [line.partition(" not born")[0].rstrip() for line in birth_summary(execute(tiny(), home))]
    assert told == ["W_O2", "W_K2", "W_K1 (t<64)", "W_K1"]


def test_the_first_head_of_a_kind_is_a_birth() -> None:
    """Two heads pass the level of previous-token heads, one that of induction heads, which is lower."""
    table = Table()
    names = ("previous.L2H1", "previous.L2H3", "induction.L3H4")
    scores = ((0.1, 0.2, 0.0), (0.2, 0.6, 0.2), (0.7, 0.8, 0.3))
    table.add([line_of({"step": step} | dict(zip(names, of, strict=True)))[:-1] for step, of in enumerate(scores)])
    assert Births(table).so_far() == [
        {"step": 1, "what": "a previous-token head is born"},
        {"step": 2, "what": "an induction head is born"},
    ]
    assert column("previous.L2H1")[1:] == ("previous-token score", "L2H1")
