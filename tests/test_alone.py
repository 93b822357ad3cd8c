"""A report in a browser, from file:// and offline: what it draws, what it does not offer, what it never runs."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import engram
from engram.errors import EngramError
from engram.lab.whole import page, whole_report
from engram.learning import SGD, Adam, Plan
from engram.models import Layer, Transformer
from engram.models.factual import Factual
from engram.pages import write_report
from engram.records import Record
from engram.records.about import change, with_note, with_tags
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.events import Freeze
from engram.tasks import Bigram
from engram.tasks.facts import OwnFacts
from pages import PATIENCE, lab_of, wait

HOSTILE = "</script><script>window.foreign = 1</script><img src=x onerror='window.foreign = 2'>"
MOVE = "(slider, step) => { slider.value = String(step); slider.dispatchEvent(new Event('input', {bubbles: true})) }"
OWN_MODEL = Path(__file__).parent.parent / "examples" / "own_model.py"
AS_ENDED = "<!--<script>"  # would swallow the end of the data


@contextmanager
def alone(browser: Browser, html: str, folder: Path, **more: Any) -> Iterator[Page]:
    """The file in a browser without a network; whatever it asks for, and every complaint, fails the test."""
    (folder / "r.html").write_text(html, encoding="utf-8")
    options: dict[str, Any] = {"offline": True, "viewport": {"width": 1400, "height": 1000}} | more
    context = browser.new_context(**options)
    shown = context.new_page()
    shown.set_default_timeout(1000 * PATIENCE)
    wrong: list[str] = []
    shown.on("request", lambda request: wrong.append(request.url))
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.on("console", lambda line: wrong.append(line.text))
    shown.goto((folder / "r.html").as_uri())
    yield shown
    context.close()
    assert [line for line in wrong if not line.startswith(("data:", "blob:"))] == [(folder / "r.html").as_uri()]


@pytest.fixture
def record(home: Path, tiny: Callable[..., Train]) -> Record:
    return execute(tiny(steps=20), home)


def test_a_report_is_the_page_of_the_lab(browser: Browser, home: Path, record: Record, tmp_path: Path) -> None:
    """Every stored step on its slider, the panels of the lab, nothing that needs one; figures below."""
    path = write_report(tmp_path / "x.html", "A <b>title</b> & more", [record], page=whole_report)
    with alone(browser, path.read_text(encoding="utf-8"), tmp_path) as shown:
        assert shown.locator("h1").inner_text() == "A <b>title</b> & more"
        assert shown.title() == "A <b>title</b> & more"
        wait(lambda: lab_of(shown, "drawn('memory:W_O2')") and lab_of(shown, "drawn('attention:2.1')"))
        for step in record.snapshot_steps[::3]:
            shown.get_by_test_id("scrubber").evaluate(MOVE, step)
            wait(lambda step=step: lab_of(shown, "drawn('memory:W_O2')")["step"] == step)
            wait(lambda step=step: lab_of(shown, "drawn('attention:1.1')")["step"] == step)
            exact = record.model(step).memories["W_O2"].scores()
            assert lab_of(shown, "drawn('memory:W_O2')")["hi"] == pytest.approx(float(exact.max()), rel=0.02)
        rows = lab_of(shown, f"rows('{record.id}')")
        np.testing.assert_array_equal(np.array(rows["loss"], dtype=float), record.column("loss"))
        for needs in ("new-run", "pause", "go-on", "follow-live", "sequence-input", "intervention-apply", "ablate-1.1"):
            assert shown.get_by_test_id(needs).count() == 0
        for key in "nfs l":
            shown.keyboard.press(key if key != " " else "Space")
        assert shown.locator("dialog[open]").count() == 0
        assert f"engram lab {record.id}" in shown.locator("#panel-interventions").inner_text()
        shown.get_by_test_id("to-report").click()
        assert shown.locator(".report img").count() == 3
        for image in shown.locator(".report img").all():
            assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 500
        shown.locator(".report summary").first.click()
        assert "task.K" in shown.locator(".report").inner_text()
        allowed = shown.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content") or ""
        assert "default-src 'none'" in allowed
        assert re.search(r"script-src 'sha256-[^' ]+'(?!.*unsafe-eval)", allowed)
        assert "connect-src" not in allowed


def test_a_step_between_stored_ones_says_what_it_needs(browser: Browser, record: Record, tmp_path: Path) -> None:
    between = next(step for step in range(20) if step not in record.snapshot_steps)
    with alone(browser, page("A", [record]), tmp_path) as shown:
        wait(lambda: lab_of(shown, "drawn('memory:W_O2')"))
        shown.goto((tmp_path / "r.html").as_uri() + f"#run={record.id}&step={between}")
        expect(shown.get_by_test_id("not-computed")).to_contain_text("needs a running lab")
        before = max(step for step in record.snapshot_steps if step < between)
        wait(lambda: lab_of(shown, "drawn('memory:W_O2')")["step"] == before)
        shown.evaluate("history.replaceState(null, '', location.pathname)")  # what follows is not another file


def test_a_difference_and_a_cell_are_within_what_is_said(browser: Browser, record: Record, tmp_path: Path) -> None:
    with alone(browser, page("A", [record]), tmp_path) as shown:
        wait(lambda: lab_of(shown, "drawn('memory:W_O2')"))
        exact = record.model(20).memories["W_O2"].scores().numpy()
        canvas = shown.get_by_test_id("memory:W_O2")
        canvas.focus()
        for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
            canvas.press(key)
        tip = shown.get_by_test_id("matrix-tooltip")
        expect(tip).to_contain_text("±")
        said = (tip.locator("dd").first.inner_text()).replace("−", "-")
        score, within = (float(part) for part in said.split("±"))
        row, column = 0, 2  # the first key begins in the corner
        assert abs(score - exact[row, column]) <= within + 0.005 * abs(score) + 1e-9
        shown.get_by_test_id("shows-less").first.click()
        wait(lambda: "− step 0" in shown.locator(".memory .atstep").first.inner_text())
        change_of = exact - record.model(0).memories["W_O2"].scores().numpy()
        assert lab_of(shown, "drawn('memory:W_O2')")["hi"] == pytest.approx(float(change_of.max()), rel=0.05)


def test_branches_are_drawn_together(browser: Browser, home: Path, tiny: Callable[..., Train], tmp_path: Path) -> None:
    whole = tiny(steps=12)
    frozen = whole.model_copy(update={"events": (Freeze(step=6, matrix="W_O2"),)})
    records = [execute(spec, home) for spec in (whole, frozen)]
    with alone(browser, whole_report("A", [(record, []) for record in records], []), tmp_path) as shown:
        wait(lambda: all(lab_of(shown, f"rows('{record.id}')") for record in records))
        expect(shown.get_by_test_id("branches").locator("li")).to_have_count(2)
        shown.get_by_test_id(f"branch-{records[0].id}").click()
        wait(lambda: lab_of(shown, "view()")["run"] == records[0].id)
        wait(lambda: lab_of(shown, "view()")["also"] == [records[1].id])


def test_of_many_heads_all_are_drawn(browser: Browser, home: Path, tmp_path: Path) -> None:
    """In a lab they are measured first, and the strongest are drawn; a file has what was stored."""
    model = Transformer(d=16, hidden=16, layers=(Layer(heads=4, feed_forward="mlp"),) * 2, norm="pre")
    plan = Plan(optimiser=SGD(lr=0.2), steps=2, batch=4, trained=model.names, loss="all")
    record = execute(Train(task=Bigram(K=3, T=24), model=model, plan=plan), home)
    heard: list[str] = []
    with alone(browser, page("A", [record], tell=heard.append), tmp_path) as shown:
        wait(lambda: lab_of(shown, "view()"))
        expect(shown.get_by_test_id("maps").locator("canvas")).to_have_count(8)
        assert heard[0] in shown.get_by_test_id("told").inner_text()
    assert len(heard) == 1
    assert f"`engram lab {record.id}`" in heard[0]


def test_without_weights_there_are_curves(browser: Browser, record: Record, tmp_path: Path) -> None:
    shutil.rmtree(record.folder / "snapshots")
    with alone(browser, page("A", [Record(record.folder)]), tmp_path) as shown:
        wait(lambda: lab_of(shown, f"rows('{record.id}')"))
        assert "no weights are stored" in shown.get_by_test_id("told").inner_text()
        assert "This file has no matrices" in shown.locator("#panel-wall").inner_text()
        assert "This file has no attention" in shown.locator("#panel-attention").inner_text()


def test_of_code_that_is_not_here_there_are_curves(browser: Browser, home: Path, tmp_path: Path) -> None:
    (record,) = engram.run(str(OWN_MODEL), scale="smoke").records
    shutil.rmtree(record.folder / "code")
    (record.folder / "digest.json").unlink()
    with alone(browser, page("A", [Record(record.folder)]), tmp_path) as shown:
        wait(lambda: lab_of(shown, f"rows('{record.id}')"))
        expect(shown.get_by_test_id("told")).to_contain_text("is unknown here")
        expect(shown.get_by_test_id("timeline-losses").locator("canvas").first).to_be_visible()


def hostile_facts(home: Path) -> Record:
    """Names, note and tags that would be scripts if a page took them for HTML."""
    facts = tuple((f"{HOSTILE}{i}", AS_ENDED, f"<b onmouseover=window.foreign=3>{i % 2}") for i in range(4))
    model = Factual(d=8, heads=2, d_h=4, m=8, answers=2)
    plan = Plan(optimiser=Adam(lr=3e-3), steps=4, batch=8, trained=model.trainable, loss="answer")
    record = execute(Train(task=OwnFacts(facts=facts, T=8), model=model, plan=plan), home)
    change(record.folder, lambda about: with_tags(with_note(about, HOSTILE), ["<i>tag</i>"]))
    return Record(record.folder)


def test_what_a_record_says_is_never_a_script(browser: Browser, home: Path, tmp_path: Path) -> None:
    record = hostile_facts(home)
    html = whole_report(HOSTILE, [(record, [])], [])
    assert html.count("<script") == 2, "the data and the page"
    with alone(browser, html, tmp_path) as shown:
        wait(lambda: (lab_of(shown, "view()") or {}).get("pictures"))
        names = lab_of(shown, "view()")["pictures"]
        wait(lambda: all(lab_of(shown, f"drawn('{name}')") for name in names))
        assert HOSTILE in shown.get_by_test_id("settings").inner_text()
        assert shown.locator("h1").inner_text() == HOSTILE
        for button in shown.locator(".data").all():
            button.click()
        shown.locator(".report summary").first.click()
        shown.mouse.move(300, 400)
        assert shown.evaluate("window.foreign ?? null") is None
        assert shown.locator("img[src=x], b[onmouseover], i:text('tag')").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_it_fits_every_window(browser: Browser, record: Record, tmp_path: Path, scheme: str, width: int) -> None:
    html = whole_report("A", [(record, [])], [])
    with alone(browser, html, tmp_path, viewport={"width": width, "height": 800}, color_scheme=scheme) as shown:
        wait(lambda: lab_of(shown, "view()"))
        shown.get_by_test_id("data-timeline").click()
        assert shown.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_cell_of_a_notebook_is_the_same_page(browser: Browser, record: Record, tmp_path: Path) -> None:
    """In a frame that can reach nothing: neither storage nor address, neither notebook nor network."""
    cell = engram.show_lab(record, height=500)
    assert cell.told == ()
    (tmp_path / "nb.html").write_text(f"<!doctype html><body>{cell._repr_html_()}", encoding="ascii")
    shown, wrong = browser.new_page(), list[str]()
    shown.on("console", lambda line: wrong.append(line.text))
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    shown.goto((tmp_path / "nb.html").as_uri())
    inside = shown.frames[1]
    wait(lambda: inside.evaluate("window.engramLab?.drawn('memory:W_O2')"))
    inside.get_by_test_id("log-steps").click()  # taste is kept where there is a place for it
    inside.get_by_test_id("data-timeline").click()
    inside.get_by_test_id("python").first.click()
    assert "record.frame()" in inside.get_by_test_id("code").inner_text()
    shown.wait_for_timeout(400)
    assert wrong == []
    shown.close()
    with pytest.raises(EngramError, match="name at least one run"):
        engram.show_lab()
    with pytest.raises(EngramError, match="no training with rows"):
        engram.show_lab(engram.run("birth.levels", scale="smoke", seeds=1).records[0])
