"""The report opens from file:// in a real browser, asks the network for nothing, and shows what it should."""

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

from engram import api
from engram.claims.verdicts import committed_verdicts
from engram.errors import Interrupted
from engram.experiments import find
from engram.learning import SGD, Plan
from engram.models import Layer, Transformer
from engram.pages import write_report
from engram.probes.columns import axis, column
from engram.records import Record
from engram.records.shelf import all_records
from engram.runner.execute import execute
from engram.show.curves import curves
from engram.show.gallery import NAMES, gallery
from engram.show.preliminary import sentence
from engram.show.report import report
from engram.show.subtitles import describe
from engram.specs import Train
from engram.tasks import Bigram


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_report_opens_offline(home: Path, browser: Browser, scheme: str, width: int) -> None:
    result = api.run("birth.joint", scale="smoke", seeds=1)
    path = write_report(home / "r.html", "A <b>title</b> & more", result.records, result.claims)
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert problems == []
    assert page.locator("h1").inner_text() == "A <b>title</b> & more"
    assert page.locator("img").count() == 3
    for image in page.locator("img").all():
        assert image.evaluate("image => image.naturalWidth") > 500
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    text = page.locator("main").inner_text()
    assert all(claim["id"] in text for claim in result.claims)
    allowed = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content") or ""
    assert "default-src 'none'" in allowed
    assert "script-src 'none'" in allowed
    assert page.evaluate("fetch('data:,x').then(() => 'fetched', () => 'refused')") == "refused"
    problems.clear()
    page.locator("summary").first.click()
    assert "task.K" in page.locator("main").inner_text()
    page.close()


def test_report_of_checks_and_of_unfinished_runs(home: Path) -> None:
    result = api.run("birth.levels", scale="smoke", seeds=1)
    page = report("Levels", [(record, gallery(record)) for record in result.records], result.claims)
    assert "entropy.unigram" in page
    assert "://" not in page, "nothing to fetch"
    spec = find("birth.joint").specs("smoke", [0])[0]
    steps = iter(range(100))
    for limit in (0, 3):
        with pytest.raises(Interrupted):
            execute(spec, home, stop=lambda limit=limit: next(steps) >= limit)
        (record,) = [record for record in all_records(home) if record.id.startswith("bigram")]
        page = report("Part", [(record, gallery(record))], [])
        assert "not finished" in page
        assert "-1 of" not in page


def full(layers: int, **more: Any) -> Train:
    """A training of a general transformer with two heads a layer and layer norms."""
    model = Transformer(d=16, hidden=16, layers=(Layer(heads=2, feed_forward="mlp"),) * layers, norm="pre")
    plan = Plan(optimiser=SGD(lr=0.2), steps=6, batch=4, trained=model.names, loss="all", **more)
    return Train(task=Bigram(K=3, T=24), model=model, plan=plan)


def test_maps_of_any_two_layers_show_what_the_rows_measure(home: Path) -> None:
    """The share of rows whose largest cell is on the diagonal is the recall; one layer has W_F only."""
    record = execute(full(layers=2), home)
    pictures = {picture.name: picture.figure for picture in gallery(record)}
    assert tuple(pictures) == NAMES
    maps = [np.asarray(ax.images[0].get_array()) for ax in pictures["memories"].axes[:3]]
    shown = [float((scores.argmax(axis=1) == np.arange(len(scores))).mean()) for scores in maps]
    assert shown == pytest.approx([record.last(f"recall.{name}") for name in ("W_O2", "W_K2", "W_K1")], abs=1e-6)
    assert [picture.name for picture in gallery(execute(full(layers=1), home))] == ["curves", "memories"]


def test_what_is_measured_once_stands_in_a_table_and_not_among_the_curves(home: Path) -> None:
    """Every column of a record is drawn or tabled, none is both."""
    record = execute(full(layers=2, at_end=("effects", "masses"), probe_every=2, attention_every=2), home)
    lines = {(ax.get_ylabel(), line.get_label()) for ax in curves([record]).axes for line in ax.lines}
    drawn = {name for name in record.columns if (axis(column(name).group), column(name).title) in lines}
    assert len(drawn) == len(lines)
    tabled = {name for name in record.columns if f"<code>{name}</code>" in report("A", [(record, [])], [])}
    assert {name.partition(".")[0] for name in tabled} == {"effect", "mass"}
    assert drawn | tabled == set(record.columns) - {"step", "loss"}
    assert not drawn & tabled


def test_a_headline_says_only_what_all_runs_share(home: Path, tiny: Callable[..., Train]) -> None:
    first, second = tiny(), tiny(seed=1)
    wide = second.model_copy(update={"task": second.task.model_copy(update={"K": 5})})  # type: ignore[attr-defined]
    records: list[Record] = [execute(spec, home) for spec in (first, second, wide)]
    sizes = "K = 3 triggers, T = 24 tokens, width d = 16, batches of 4"
    assert describe(records[:1]) == f"{sizes}, SGD with rate 0.2, 6 steps, seed 0"
    assert describe(records[:2]) == f"{sizes}, SGD with rate 0.2, 6 steps, 2 seeds"
    assert describe(records) == f"{sizes.partition(', ')[2]}, SGD with rate 0.2, 6 steps, 2 seeds"
    assert describe([records[0], execute(tiny(lr=0.1), home)]) == f"{sizes}, 6 steps, seed 0"


def test_one_seed_is_told_as_in_the_terminal(home: Path) -> None:
    """What it says, beside the verdict of the ledger: no verdict of its own."""
    result = api.run("birth.joint", scale="smoke", seeds=1)
    page = report("A", [], result.claims, least=5)
    for claim in result.claims:
        assert escape(sentence(claim, 5, committed_verdicts())) in page
    assert 'class="inconclusive"' not in page
    decided = [claim | {"scale": "quick"} for claim in result.claims]
    assert all(f'class="{claim["verdict"]}"' in report("A", [], decided, least=1) for claim in decided)
