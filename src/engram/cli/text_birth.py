"""`engram birth --text`: an induction head is born in a transformer that is trained from nothing on real text."""

from pathlib import Path
from typing import Any

from engram.cli.output import answer, near, say, tell, watched, whole_page

SNAPSHOTS = 100  # steps between stored weights: a series that can be scrubbed, forked and probed
WORDS = {"previous": "previous-token head", "induction": "induction head"}


def text_birth(text: str, fresh: bool, live: bool, device: str, path: str, json: bool) -> None:
    """What copying pays is said first: where it pays little there is little to be born for."""
    corpus = _corpus(text)
    pays = _say_payoff(corpus)
    (spec,) = _specs(corpus, fresh)
    if live:
        from engram.cli.lab import open_lab
        from engram.lab.backend import spec_order
        from engram.specs.spec import run_id

        open_lab(run_id(spec), None, "127.0.0.1", browser=True, json=json, first=spec_order(spec))
        return
    result, report = _run(spec, device, path)
    births = _births(result.records[0])
    if json:
        told = {WORDS[kind]: {f"{level:g}": step} for kind, (level, step) in births.items()}
        answer(result.to_json() | {"report": str(report), "births": told, "payoff": pays})
    else:
        tell(*_summary(result.records[0], births))
        tell("", *(f"figure  {near(one)}" for one in result.figures if one.suffix == ".png"), f"report  {near(report)}")


def _corpus(text: str) -> Any:
    from engram.tasks.sources import NAMED, Folder

    return text if text in NAMED else Folder.at(text)


def _say_payoff(corpus: Any) -> float:
    from engram.probes.copying import WINDOWS, bigrams_of
    from engram.tasks.batch import UNSEEN
    from engram.tasks.windows import Windows
    from engram.theory.copying import LITTLE, payoff

    task = Windows(corpus=corpus)
    unseen = task.sample(0, UNSEEN, WINDOWS)
    pays = payoff(bigrams_of(corpus, task.N), unseen.tokens, unseen.targets, unseen.groups["late"])
    size = f"{len(task.text.train):,} tokens of {task.N} pieces, {len(task.text.held_out):,} held out"
    say(f"{size}; copying what followed last time pays {pays:.2f} nats a token")
    if pays < LITTLE:
        say(f"that is little (below {LITTLE:g}, as in prose): an induction head may not be born; code is a better text")
    return pays


def _specs(corpus: Any, fresh: bool) -> list[Any]:
    from engram.api import begun_last
    from engram.experiments.real.birth import training

    return begun_last(lambda seeds: [training("quick", seed, corpus=corpus) for seed in seeds], fresh)


def _run(spec: Any, device: str, path: str) -> tuple[Any, Path]:
    """The run, its figure and its report; claims are about the text that is registered."""
    import time

    from engram import api
    from engram.claims.experiment import Runs
    from engram.claims.ledger import entries_of
    from engram.engines.choosing import Where
    from engram.engines.purposes import purposes_of
    from engram.experiments import find
    from engram.experiments.real.birth import THREE
    from engram.pages import write_report
    from engram.records.files import home

    began, experiment = time.monotonic(), find("real.birth")
    purposes = purposes_of(experiment.name, "quick", {THREE: [spec]}, {})
    where = Where(device=device, path=path)
    watch = watched("a birth on real text", where)
    (record,) = records = api.run_specs([spec], where, watch, purposes, SNAPSHOTS)
    runs = Runs({THREE: records}, "quick", [record.spec.seed])
    claims = [entry.to_json() for entry in entries_of(experiment, runs)] if spec.task.corpus == "code" else []
    figures = api.save_figures({f"{record.id}-birth": experiment.figure(runs)})
    path_of = home() / "reports" / f"{record.id}.html"
    report = write_report(path_of, "A birth on real text", records, claims, whole_page())
    return api.Result(experiment, "quick", time.monotonic() - began, claims, records, figures), report


def _births(record: Any) -> dict[str, tuple[float, int | None]]:
    """Of each kind of head its level, and the step at which one passes it."""
    from engram.experiments.real.birth import BORN, born

    steps = {kind: born(record, kind) for kind in BORN}
    return {kind: (level, int(steps[kind]) if steps[kind] > 0 else None) for kind, level in BORN.items()}


def _summary(record: Any, births: dict[str, tuple[float, int | None]]) -> list[str]:
    from engram.experiments.real.birth import best_head, tokens_of

    lines = []
    for kind, (level, step) in births.items():
        when = "not born" if step is None else f"step {step:>5}, {tokens_of(record, step):.1f} M tokens"
        lines.append(
            f"{WORDS[kind]:<20} {when}  (score above {level:g}; at the end the best is {best_head(record, kind)})"
        )
    first, second = record.last("repeat.first"), record.last("repeat.second")
    twice = f"what comes twice: loss {first:.2f} the first time, {second:.2f} the second"
    return [*lines, "", f"in-context score {record.last('context.score'):+.3f} nats (late minus early loss); {twice}"]
