"""`engram register`: write down what is claimed, before the records are made that decide it."""

import json as text
from datetime import date

from engram.cli.output import answer, tell


def register(*, check: bool = False, json: bool = False) -> int:
    """Write the form of every claim as data/registration.toml states it into the history, with today's date.

    From then on new records carry the digest of this version of the file. Claims whose form has changed are exploratory
    until they are decided on the registered seeds.

    Parameters
    ----------
    check
        Write nothing; exit code 1 if the file differs from the version that was registered last.
    """
    from engram import registered
    from engram.claims.registration import forms_at

    versions, now = registered.history(), _forms()
    before = forms_at(versions[-1]["file"]) if versions else {}
    changed = {name: forms for name, forms in now.items() if before.get(name) != forms}
    scales = {
        name: [one for one in forms if before.get(name, {}).get(one) != forms[one]] for name, forms in changed.items()
    }
    file = registered.in_force()["file"]
    known = bool(versions) and versions[-1]["file"] == file and not changed
    if not known and not check:
        line = {"date": date.today().isoformat(), "file": file, "forms": changed}
        with registered.HISTORY.open("a") as history:
            history.write(text.dumps(line, sort_keys=True) + "\n")
    if json:
        answer({"file": file, "registered": known or not check, "changed": sorted(changed)})
    else:
        tell(*_in_words(known, check, [f"{name} ({', '.join(scales[name])})" for name in sorted(changed)]))
    return 1 if check and not known else 0


def _forms() -> dict[str, dict[str, str]]:
    """The form of every claim by scale, as the file and the experiments state it today."""
    from engram import experiments
    from engram.claims.experiment import Scale
    from engram.claims.registration import registration
    from engram.specs.spec import run_id

    scales: list[Scale] = ["quick", "paper"]
    found: dict[str, dict[str, str]] = {}
    for name, entry in registration().items():
        experiment = experiments.find(name)
        for scale in scales:
            seeds = entry.seeds(scale)
            runs = [run_id(spec) for spec in experiment.specs(scale, seeds)] if seeds else []
            for id, form in entry.forms(scale, runs).items() if seeds else ():
                found.setdefault(id, {})[scale] = form
    return found


def _in_words(known: bool, check: bool, changed: list[str]) -> list[str]:
    if known:
        return ["nothing has changed since it was registered"]
    if not changed:
        return ["not registered yet; no form has changed" if check else "registered; no form has changed"]
    head = (
        "not registered yet:"
        if check
        else "registered; at these scales claims are exploratory until their seeds are run:"
    )
    return [head, *(f"  {name}" for name in changed)]
