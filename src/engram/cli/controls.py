"""`engram verify --controls`: every claim on planted alternatives, on which it must not agree."""

from typing import Any

from engram.cli.output import answer, console, say, tell


def verify_controls(names: tuple[str, ...], json: bool, markdown: bool) -> int:
    """Prints claims × alternatives; 1 if a claim agrees on one of its own. Reads records, writes and trains nothing."""
    from engram.show.controls import markdown as as_markdown
    from engram.show.controls import summary, table_rows
    from engram.show.tables import print_rows

    tested, missing = _tested(names, committed=markdown)
    if json:
        answer({"claims": tested, "missing": missing})
    elif markdown:
        tell(*as_markdown(tested, missing).removesuffix("\n").split("\n"))
    else:
        print_rows(console(), table_rows(tested))
        tell("", *summary(tested))
    say(*(f"{name} has no records, so that its controls cannot be tested: engram run {name}" for name in missing))
    return 1 if any(claim["vacuous"] for claim in tested) else 0


def _tested(names: tuple[str, ...], committed: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """The claims that are named, and experiments without records."""
    from engram import controls
    from engram.claims.controls import put_to_the_test
    from engram.claims.ledger import Index, best_runs
    from engram.experiments import matching
    from engram.records.files import COMMITTED, home

    tested, missing = [], []
    index = Index.of([COMMITTED] if committed else [home(), COMMITTED])
    for experiment in matching(names):
        say(f"testing {experiment.name}")
        best = best_runs(experiment, index)
        wanted = names if not experiment.name.startswith(names) else ()
        if best is None:
            missing.append(experiment.name)
        else:
            tested += [one.to_json() for one in put_to_the_test(experiment, best[0], controls.of(experiment), wanted)]
    return tested, missing
