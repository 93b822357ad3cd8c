"""The facts bench and the panel of theory in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from drawers import open_drawer, taken
from engram.facts.learn import spec_of_file
from engram.learning import SGD, Plan
from engram.models.factual import LinearHead
from engram.records import Record
from engram.runner.execute import execute
from engram.specs import Train
from engram.specs.spec import run_id
from engram.tasks.facts import Facts, OwnFacts
from lab import Served
from pages import look_at, opened, picked, wait

COUNTRIES = Path(__file__).parent.parent / "examples" / "countries.csv"


@pytest.fixture(scope="module")
def learned(lab: Served) -> Iterator[Record]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENGRAM_HOME", str(lab.home))
        yield execute(spec_of_file(COUNTRIES, steps=300, width=32), lab.home)


@pytest.fixture
def page(browser: Browser, lab: Served, learned: Record) -> Iterator[Page]:
    with opened(browser, f"{lab.url}#run={learned.id}") as page:
        expect(page.get_by_test_id("facts")).to_be_visible()
        yield page


def facts_of(page: Page) -> list[str]:
    return page.locator("[data-testid=facts] tr[data-fact]").all_inner_texts()


def test_the_table_is_sorted_and_searched(page: Page) -> None:
    assert len(facts_of(page)) == 84
    margins = [float(line.split("\t")[5].split()[0].replace("−", "-")) for line in facts_of(page)]
    assert margins == sorted(margins), "the smallest margin comes first"
    page.get_by_test_id("sort-subject").click()
    assert facts_of(page)[0].startswith("Argentina")
    page.get_by_test_id("sort-subject").click()
    expect(page.locator("[data-testid=facts] th").first).to_have_attribute("aria-sort", "descending")
    assert facts_of(page)[0].startswith("Vietnam")
    page.get_by_test_id("facts-search").fill("japan curr")
    assert [line.split("\t")[:3] for line in facts_of(page)] == [["Japan", "currency", "yen"]]


def test_stages_are_named_and_the_weakest_is_marked(page: Page) -> None:
    expect(page.get_by_test_id("facts-pending")).to_be_hidden()
    stages = page.get_by_test_id("facts-stages").inner_text()
    assert "right relation, wrong subject" in stages
    assert "of 84 facts at step 300" in stages
    expect(page.get_by_test_id("weakest")).to_contain_text("Nearest to breaking")
    expect(page.locator("tr.weak")).to_contain_text("breaks first")
    page.get_by_test_id("scrubber").fill("100")
    expect(page.get_by_test_id("facts-stages")).to_contain_text("at step 100")
    assert "wrong subject" in page.locator("[data-testid=facts]").inner_text()


def test_a_fact_is_rewritten_and_the_run_forks(page: Page, lab: Served, learned: Record) -> None:
    page.get_by_test_id("facts-search").fill("japan capital")
    page.get_by_role("button", name="Choose Japan, capital").press("Enter")
    page.get_by_test_id("fact-answer").fill("Lyon")
    page.get_by_test_id("fact-try").click()
    expect(page.get_by_test_id("fact-wrong")).to_contain_text("unknown 'Lyon'")
    page.get_by_test_id("fact-answer").fill("Rome")
    page.get_by_test_id("fact-try").click()
    expect(page.get_by_test_id("fact-edited")).to_contain_text("Tokyo → Rome at step 300")
    page.get_by_test_id("fact-write").click()
    fork = wait(lambda: (found := picked(page)) != learned.id and found)
    expect(page.get_by_test_id("events")).to_contain_text("rewrite (Japan, capital): Tokyo → Rome")
    assert Record(lab.home / fork).train.events


def test_facts_are_added_and_training_goes_on(page: Page, learned: Record) -> None:
    page.get_by_test_id("scrubber").fill("100")
    page.get_by_test_id("facts-rows").fill("Narnia, capital, Lyon")
    page.get_by_test_id("facts-add").click()
    expect(page.get_by_test_id("facts-add-wrong")).to_contain_text("unknown answer 'Lyon'")
    page.get_by_test_id("facts-rows").fill("Narnia, capital")
    page.get_by_test_id("facts-add").click()
    expect(page.get_by_test_id("facts-add-wrong")).to_have_text("line 1: write subject, relation, answer")
    page.get_by_test_id("facts-rows").fill("Narnia; capital; Rome\n<img src=x onerror=alert(1)>; currency; euro")
    page.get_by_test_id("facts-add").click()
    wait(lambda: picked(page) != learned.id)
    expect(page.get_by_test_id("facts-stages")).to_contain_text("of 86 facts")
    page.get_by_test_id("facts-search").fill("onerror")
    expect(page.locator("tr[data-fact]")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("[data-testid=facts] img").count() == 0


def test_a_folded_bench_asks_for_nothing(page: Page) -> None:
    asked: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda said: asked.append(str(said))))
    for name in ("Facts", "Theory"):
        page.get_by_role("button", name=name, exact=True).click()
    page.reload()
    expect(page.locator("#panel-facts")).to_be_visible()
    page.get_by_test_id("scrubber").fill("200")
    page.wait_for_timeout(500)
    assert not [said for said in asked if '"t":"facts"' in said or '"t":"theory"' in said or '"t":"predict"' in said]


def test_of_a_large_table_only_the_rows_in_sight_are_there(browser: Browser, lab: Served) -> None:
    facts = tuple((f"s{i}", f"r{j}", f"a{j}.{(7 * i + j) % 3}") for i in range(300) for j in range(3))
    task = OwnFacts(facts=facts, T=4)
    model = LinearHead(answers=task.answers, alpha=0.1)
    plan = Plan(optimiser=SGD(lr=0.1), steps=1, batch=8, trained=("w", "W"), loss="answer")
    execute(spec := Train(task=task, model=model, plan=plan), lab.home)
    with opened(browser, f"{lab.url}#run={run_id(spec)}") as page:
        expect(page.get_by_test_id("facts")).to_have_attribute("aria-rowcount", "901")
        assert len(facts_of(page)) < 100
        page.get_by_test_id("sort-subject").click()
        page.locator(".facts-scroll").evaluate("box => (box.scrollTop = box.scrollHeight)")
        expect(page.locator("tr[data-fact]").last).to_contain_text("s99")
        assert len(facts_of(page)) < 100


def to_theory(page: Page) -> None:
    """Off the screen a panel asks for nothing."""
    expect(page.locator("#panel-theory")).to_be_visible()
    page.locator("#panel-theory").scroll_into_view_if_needed()
    expect(page.get_by_test_id("theory")).to_be_visible()
    page.get_by_test_id("theory").scroll_into_view_if_needed()


def test_what_double_the_width_would_do(page: Page) -> None:
    to_theory(page)
    table = page.get_by_test_id("capacity-facts")
    expect(table).to_contain_text("d = 32 holds")
    page.get_by_test_id("theory-double").click()
    expect(table).to_contain_text("d = 64 holds")
    expect(table).to_contain_text("d = 128 holds")
    expect(page.locator("#panel-theory code")).to_contain_text("engram predict facts 84 --width 64")
    page.get_by_test_id("theory-store").fill("100000")
    page.get_by_test_id("theory-store").press("Enter")
    expect(table).to_contain_text("it does not fit")
    page.get_by_test_id("theory-reset").click()
    expect(table).to_contain_text("d = 32 holds")
    expect(page.get_by_test_id("theory-silence")).to_contain_text("not of Factual")


def test_stages_and_the_first_step_beside_what_was_measured(browser: Browser, lab: Served, tiny: object) -> None:
    task = Facts(S=8, R=2, D=4, T=8, noise=8, dictionary="structured")
    plan = Plan(optimiser=SGD(lr=0.1, momentum=0.0), steps=400, batch=64, trained=("w", "W"), loss="answer")
    spec = Train(task=task, model=LinearHead(answers=task.answers, alpha=1e-2), plan=plan)
    execute(spec, lab.home)
    birth = tiny(seed=5, steps=3)  # type: ignore[operator]
    execute(birth, lab.home)
    with opened(browser, f"{lab.url}#run={run_id(spec)}") as page:
        to_theory(page)
        expect(page.get_by_test_id("theory-stages")).to_contain_text("relation")
        step = page.get_by_test_id("theory-stages").locator("tr td").nth(2)
        before = int(step.inner_text().replace(",", ""))
        page.get_by_test_id("theory-lr").fill("0.2")
        page.get_by_test_id("theory-lr").press("Enter")
        wait(lambda: abs(int(step.inner_text().replace(",", "")) - before / 2) <= 1)
        look_at(page, lab, run_id(birth))
        to_theory(page)
        expect(page.get_by_test_id("first-exact")).to_contain_text("1.000")
        expect(page.get_by_test_id("theory-levels")).to_contain_text("blind guess, ln N")
        page.get_by_test_id("theory-range-K").press("ArrowRight")
        page.get_by_test_id("theory-K").fill("2")
        page.get_by_test_id("theory-K").press("Enter")
        expect(page.get_by_test_id("theory-levels")).to_contain_text("K = 2")


def test_the_table_is_the_same_in_python(
    page: Page, lab: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_HOME", str(lab.home))
    open_drawer(page, "facts")
    ((_, cells, values),) = taken(page, "facts", tmp_path)
    first = cells[0].index("p")
    assert cells[0][first : first + 4] == ["p", "margin", "own", "interference"]
    for row, told in zip(cells[1:], values, strict=True):
        assert [float(cell) for cell in row[first : first + 4]] == pytest.approx(told, rel=1e-3, abs=1e-3)
