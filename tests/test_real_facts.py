"""A real model asked about countries: what its laws count is right where it can be counted by hand."""

import csv
from pathlib import Path

import pytest
import torch

from engram.claims import Runs, checks
from engram.claims.planting import with_rows
from engram.experiments.real import edit, global_vs_context
from engram.laws import real_facts
from engram.laws.real_facts import stand_in, stand_in_dropped, stand_in_edits
from engram.probes.causal import without_part
from engram.probes.words import Speaker
from engram.records import Record
from engram.records.files import Row
from engram.runner.execute import execute
from engram.tasks.countries import DATA, NEW_TEMPLATES, RELATIONS, cities, sentences, templates
from engram.tasks.prose import _paragraphs
from engram.values import generator


def test_the_tables_are_what_they_say() -> None:
    assert len(cities()) == len(set(cities())) == 80
    assert len({city for city, _ in cities()}) == 80
    assert len({(one.subject, one.relation) for one in sentences()}) == len(sentences()) == 59 * 4
    assert not any("France" in one.subject for one in sentences())  # the example of the documentation is not measured
    assert all(template.count("{}") == 1 for r in RELATIONS for template in (*templates(r), *NEW_TEMPLATES))
    assert "{} is located in" not in NEW_TEMPLATES
    with (DATA / "countries.csv").open(encoding="utf-8") as file:
        assert all(all(row.values()) for row in csv.DictReader(file))


def test_prose_is_paragraphs_without_code(tmp_path: Path) -> None:
    long, code = " ".join(["word"] * 40), " ".join(["x = 1"] * 40)
    (tmp_path / "own.py").write_text(
        f'"""{long}\n\n{code}\n\nshort\n\n{long} more"""\ndef f():\n    """{long} again"""\n'
    )
    assert list(_paragraphs(tmp_path / "own.py")) == [long, f"{long} more", f"{long} again"]


def test_what_a_dropped_part_changes_is_what_the_stream_says() -> None:
    rows = list(stand_in_dropped(3, 5, first=2, last=4))
    assert [(row["template"], row["layer"]) for row in rows] == [(t, i) for t in (1, 2, 3, 4) for i in (0, 2, 3, 4)]
    rng, network = generator(5, "stand_in", 1), stand_in()
    prompts = torch.from_numpy(rng.integers(8, network.sizes.N, (3, 4)))
    right = torch.from_numpy(rng.integers(0, 6, 3))
    for row in rows[:4]:
        watch = without_part("mlp", int(row["layer"])) if row["layer"] else None
        p = network.stream(prompts, watch)[:, -1].double().softmax(1)
        own = p.gather(1, right[:, None])[:, 0]
        assert row["lead"] == pytest.approx(float((own / p[:, 7]).log().mean()), abs=1e-5)
        assert row["share"] == pytest.approx(float((own / p[:, :6].sum(1)).mean()), abs=1e-5)


def test_a_long_step_flips_every_fact_that_can_be_flipped() -> None:
    """At the last layer, nothing behind it, a step of 0 changes nothing and a long one flips what it points to."""
    none, long = (list(stand_in_edits(2, 5, layer=4, size=size, how="write", facts=0)) for size in (1e-9, 50.0))
    assert all(row["flips"] == 0 for row in none)
    assert all(row["neighbours_kept"] == row["neighbours"] and row["mates_kept"] == row["mates"] for row in none)
    assert sum(row["flips"] for row in long) > len(long) / 2
    assert all((row["neighbours"], row["mates"], row["paraphrases"]) == (2, 1, 1) for row in long)
    assert [row["fact"] for row in long] == list(range(8))


def test_seeds_share_no_city() -> None:
    class Letters:
        bos = None

        def encode(self, text: str) -> list[int]:
            return [sum(map(ord, text)) % 900]

        def decode(self, ids: list[int]) -> str:
            return ""

    speaker = Speaker(stand_in(), Letters())  # type: ignore[arg-type]
    seen = [
        real_facts.about_cities(speaker, 1, 16, seed).prompts.tokens.flatten().tolist() for seed in range(10000, 10005)
    ]
    every = sorted(token for of in seen for token in of)
    assert every == sorted(sum(map(ord, NEW_TEMPLATES[0].format(city))) % 900 for city, _ in cities())


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return execute(checks("real.stand_in_dropped", [0], first=1, last=1)[0], tmp_path)


def test_facts_of_all_seeds_count_once(record: Record) -> None:
    rows: list[Row] = [{"fact": i, "flips": i % 2, "mates": i, "mates_kept": 1} for i in range(3)]
    records = [with_rows(record, rows)] * 2
    assert list(edit.by_fact(records, "flips")) == [(0, 2), (2, 2), (0, 2)]
    assert list(edit.by_fact(records, "other facts of the subject kept")) == [(2, 2), (2, 4)]
    assert edit.share(records, "flips").n == 3


def test_the_third_largest_of_four_templates_counts(record: Record) -> None:
    changes = {0: (0, 0, 0, 0), 27: (0, 0, 0, 0), 28: (0, 0, 0, 0), 29: (5, 2, 0, 3), 30: (-4, -4, -4, -4)}
    rows: list[Row] = [
        {"template": t + 1, "layer": layer, "lead": float(by[t]), "share": 0.5}
        for t in range(4)
        for layer, by in changes.items()
    ]
    ((_, measures),) = global_vs_context.claims(Runs({"dropped": [with_rows(record, rows)] * 2}, "quick"))
    assert [one.measured for one in measures] == [2, -4, 0, 0, 0]
