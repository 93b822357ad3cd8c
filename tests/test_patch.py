"""Weights rescaled, and weights of another run or step: what they do, what is refused, and that it can be replayed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engram.api import recheck
from engram.errors import EngramError
from engram.lab.sources import weights_of
from engram.models import Layer, Simplified, Transformer
from engram.records import Record
from engram.records.fork import fork, steered
from engram.records.weights import initial_weights
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.encode import build
from engram.specs.events import interventions
from engram.specs.patch import MOST_NUMBERS, Patch, Rescale, RescaleHead, carried
from lab import Page, Served

Tiny = Callable[..., Train]


def patch(home: Path, **fields: Any) -> Patch:
    """As the lab makes one from what its form says."""
    return build(Patch, Patch.completed({"matrix": "W_O2"} | fields, weights_of(home)))  # type: ignore[return-value]


def test_a_rescaled_matrix_is_a_multiple(home: Path, tiny: Tiny) -> None:
    plain = execute(tiny(), home)
    scaled = execute(steered(tiny(), Rescale(step=2, matrix="W_O2", factor=-3.0)), home)
    assert torch.equal(scaled.snapshot(2)["W_O2"], -3 * plain.snapshot(2)["W_O2"])
    assert torch.equal(scaled.snapshot(2)["W_K2"], plain.snapshot(2)["W_K2"])
    assert scaled.train.events[0].sentence == "rescale W_O2 by -3"


def test_a_rescaled_head_has_other_columns(home: Path, tiny: Tiny) -> None:
    spec = tiny().model_copy(update={"model": Transformer(d=16, layers=(Layer(heads=2), Layer(heads=4)))})
    plain = execute(spec, home).snapshot(2)["W_O2"]
    record = execute(steered(spec, RescaleHead(step=2, layer=2, head=3, factor=0.5)), home)
    scaled = record.snapshot(2)["W_O2"]
    assert torch.equal(scaled[:, 8:12], 0.5 * plain[:, 8:12])
    assert torch.equal(scaled[:, :8], plain[:, :8])
    assert torch.equal(scaled[:, 12:], plain[:, 12:])


def test_a_head_whose_output_is_not_trained_is_not_rescaled(tiny: Tiny) -> None:
    why = "head: 1.1 writes through W_O1, which is not trained; ablate it, or rescale a trained matrix"
    with pytest.raises(EngramError, match=why):
        steered(tiny(), RescaleHead(step=2, layer=1, factor=0.5))
    with pytest.raises(EngramError, match="factor: 1 changes nothing"):
        steered(tiny(), Rescale(step=2, matrix="W_O2", factor=1.0))
    with pytest.raises(EngramError, match="factor"):
        Rescale(step=2, matrix="W_O2", factor=float("inf"))


def test_a_patch_is_the_matrix_of_the_other_run(home: Path, tiny: Tiny) -> None:
    other, own = execute(tiny(seed=7), home), execute(tiny(), home)
    event = patch(home, source=other.id, of=4, step=2)
    record = execute(steered(tiny(), event), home)
    assert torch.equal(record.snapshot(2)["W_O2"], other.snapshot(4)["W_O2"])
    assert torch.equal(record.snapshot(2)["W_K1"], own.snapshot(2)["W_K1"])
    assert event.sentence == f"patch W_O2 from step 4 of {other.id}"


def test_a_patched_run_is_computed_again_without_the_other(home: Path, tiny: Tiny) -> None:
    """From its own record, elsewhere, to the byte: the run that it was patched from is gone."""
    other, parent = execute(tiny(seed=7), home), execute(tiny(), home)
    event = patch(home, source=other.id, of=4, step=2)
    child = fork(parent, steered(parent.train, event))
    rows = execute(Record(child).train, home).rows
    shutil.rmtree(other.folder)
    shutil.rmtree(parent.folder)
    assert Record(child).train.events == (event,), "what it carries reads back as it was"
    assert recheck(Record(child), everything=True)["ok"]
    elsewhere = home.parent / "elsewhere"
    assert execute(Record(child).train, elsewhere).rows == rows


def test_numbers_are_carried_to_the_last_bit() -> None:
    W = torch.randn(5, 3, dtype=torch.float64)
    for one in (W, W.float(), W[0].float()):
        event = Patch(step=0, matrix="W_O2", source="x", of=0, **carried(one))
        assert torch.equal(event.values, one)
        assert event.values.dtype == one.dtype
    assert torch.equal(Patch(step=0, matrix="W", source="x", **carried(W.half())).values, W.half().float())
    with pytest.raises(EngramError, match="too many to carry in a Spec"):
        carried(torch.zeros(MOST_NUMBERS + 1))


def test_a_patch_of_another_shape_is_refused_in_words(home: Path, tiny: Tiny) -> None:
    wide = execute(tiny(seed=7).model_copy(update={"model": Simplified(d=24)}), home)
    with pytest.raises(EngramError, match=f"matrix: W_O2 is 24×24 in run {wide.id}, and 16×16 here"):
        steered(tiny(), patch(home, source=wide.id, of=4, step=2))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"source": "nobody-s0-0123456789"}, "source: run: no run 'nobody"),
        ({"source": "../../etc"}, "source: run: '../../etc' is no name of a run"),
        ({"of": 5}, r"of: run .* has no stored weights of step 5; the nearest that it has: [46]"),
        ({"matrix": "W_X"}, "matrix: run .* has no W_X"),
        ({"of": "x"}, "of: must be an integer"),
        ({"content": "?", "shape": (4, 4)}, None),
    ],
)
def test_what_cannot_be_patched_is_refused(fields: dict[str, Any], why: str | None, home: Path, tiny: Tiny) -> None:
    source = execute(tiny(seed=7), home).id
    made = {"source": source, "of": 4, "step": 2} | fields
    if why is None:  # what a form says of the numbers is overwritten by those of the run
        assert patch(home, **made).shape == (16, 16)
        return
    with pytest.raises(EngramError, match=why):
        patch(home, **made)


def test_broken_numbers_are_refused(tiny: Tiny) -> None:
    whole = carried(torch.zeros(16, 16))
    for broken, why in (
        ({"content": "?"}, "content: is no base64"),
        ({"content": "AAAA"}, "content: 3 bytes are no matrix"),
        (carried(torch.full((16, 16), float("nan"))), "entries that are no numbers"),
    ):
        with pytest.raises(EngramError, match=why):
            steered(tiny(), Patch(step=2, matrix="W_O2", source="x", **(whole | broken)))


def test_a_form_asks_for_a_run_and_a_step(tiny: Tiny) -> None:
    forms = {one["kind"]: [field["name"] for field in one["fields"]] for one in interventions(tiny())}
    assert forms["rescale"] == ["matrix", "factor"]
    assert forms["rescalehead"] == ["layer", "head", "factor"]
    assert forms["patch"] == ["matrix", "source", "of"]
    assert "rewrite" not in forms


def test_the_lab_patches_from_another_run(lab: Served, page: Page) -> None:
    other = page.start(**{"plan.steps": 10})
    page.finish(other)
    run = page.start(**{"plan.steps": 30})
    page.finish(run)
    answer = page.ask("intervene", run=run, kind="patch", at=8, fields={"matrix": "W_O2", "source": other, "of": 4})
    assert answer["ok"], answer
    page.until(answer["run"], 12)
    child = Record(lab.home / answer["run"])
    assert torch.equal(child.snapshot(8)["W_O2"], Record(lab.home / other).snapshot(4)["W_O2"])
    assert (initial_weights(child.train)["W_O2"] != child.snapshot(8)["W_O2"]).any()
    refused = page.ask("intervene", run=run, kind="patch", at=8, fields={"matrix": "W_O2", "source": other, "of": 50})
    assert refused["field"] == "of"
    settings = {one["name"]: one for one in page.about[answer["run"]]["settings"]}
    assert len(json.dumps(settings["events.0.content"])) < 300
