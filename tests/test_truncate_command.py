"""`engram truncate RUN`: the map of a stored run as tables, as JSON and as a figure; what it cannot do in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engram.learning import Adam, Plan
from engram.models import Layer, Transformer
from engram.models.factual import Factual
from engram.probes.truncation import sweep
from engram.records.bundle import pack
from engram.runner.execute import execute
from engram.show.save import drawn_data
from engram.show.truncation import truncation_figure
from engram.specs import Train
from engram.tasks import Bigram
from engram.tasks.facts import Facts

MODEL = Transformer(d=8, hidden=16, layers=(Layer(queries="identity"), Layer(queries="identity", feed_forward="mlp")))
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(home: Path, tiny: Callable[..., Train]) -> Any:
    return execute(tiny(steps=2).model_copy(update={"model": MODEL}), home)


def test_the_map_of_a_run_is_printed_and_drawn(run: Any, home: Path, said: Said) -> None:
    code, out, err = said("truncate", run.id, "--sequences", "8")
    assert (code, err) == (0, "")
    for words in (
        "accuracy · full model",
        "p_correct · full model",
        "W_I2",
        "100%",
        "takes 88",
        "of 8 unseen sequences",
    ):
        assert words in out
    assert (home / "figures" / f"{run.id}-truncation-in_context.png").exists()
    code, out, _ = said("truncate", run.id, "--sequences", "8", "--group", "global", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"run", "group", "full", "map", "positions", "passes", "plain_passes", "figures"}
    assert len(found["map"]) == found["plain_passes"] == 88
    assert found["map"][10] == {"matrix": "W_K1", "share": 1.0, "rank": 8} | found["full"]
    assert 0 < found["passes"] < 88


def test_what_cannot_be_mapped_is_told_in_one_line(run: Any, home: Path, said: Said, tmp_path: Path) -> None:
    bare = pack(run, tmp_path / "packed", weights=False)
    plan = Plan(optimiser=Adam(lr=0.01), steps=1, batch=2, trained=("W_O",), loss="answer")
    task = Facts(S=4, R=3, D=2, T=8)
    facts = execute(Train(task=task, model=Factual(d=8, heads=2, d_h=4, m=6, answers=task.answers), plan=plan), home)
    for words, says in [
        (("nothing",), "nothing"),
        ((str(bare),), "has no weights"),
        ((facts.id,), "model: a Transformer or Simplified is needed; got Factual"),
        ((run.id, "--group", "incontext"), "group: unknown 'incontext'; did you mean in_context?"),
        ((run.id, "--sequences", "0"), "sequences: at least one is needed; got 0"),
    ]:
        code, out, err = said("truncate", *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert says in err


def test_the_figure_shows_every_number() -> None:
    task, model = Bigram(K=3, T=16), Transformer(d=8, hidden=16)
    found = sweep(model, model.init(task.N, task.T, 0), task.sample(0, 0, 8), noise=2)
    panels = drawn_data(truncation_figure(found, "a map"))["panels"]
    assert [panel["title"].split(";")[0] for panel in panels] == [
        "accuracy",
        "loss (nats)",
        "probability of the right token",
        "probability of the noise token",
    ]
    assert all(panel["x"] == "singular values kept" for panel in panels)
    shown = np.array(panels[1]["images"][0])
    expected = [[found.at(name, share)["loss"] for share in found.shares] for name in found.matrices]
    assert np.allclose(shown, expected, rtol=1e-4)
