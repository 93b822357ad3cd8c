"""What is asked of single runs: facts that they learned, and what is left of their model when a matrix is truncated."""

from pathlib import Path
from zlib import crc32

from engram.api import Watch, load, run_specs, save_figures, unwatched
from engram.engines.choosing import Where
from engram.errors import EngramError
from engram.facts.ask import Asked, history
from engram.facts.cut import Truncated
from engram.facts.edit import FactEdit, edit
from engram.facts.learn import spec_of_file
from engram.models.network import Provenance
from engram.probes.facts import Belief
from engram.probes.truncation import Map, sorted_map
from engram.records import Record
from engram.records.about import Purpose
from engram.records.files import home
from engram.records.fork import fork, steered
from engram.records.kept import Kept
from engram.records.places import places
from engram.specs import Train
from engram.specs.spec import run_id

ON_CPU = Where(device="cpu")


def learn_facts(
    path: Path, steps: int = 2000, seed: int = 0, watch: Watch = unwatched, skip_bad: bool = False, **size: int | None
) -> Record:
    """Train on the facts of a CSV file; width, heads and units are by default those that the calculator proposes.

    skip_bad    leave out lines with mistakes, with a warning
    """
    return train_on(path, spec_of_file(path, steps, seed, skip_bad=skip_bad, **size), watch, **size)


def train_on(path: Path, spec: Train, watch: Watch, **size: int | None) -> Record:
    """Train what was read from a file, as a run that says so; `size` is what was said of the model."""
    said = {name: value for name, value in {"steps": spec.steps, **size}.items() if value is not None}
    purpose = Purpose(experiment="fact learn", label=path.name, settings=said)
    return run_specs([spec], ON_CPU, watch, purposes={run_id(spec): purpose})[0]


def load_facts(run: str) -> Record:
    """A run about facts; `last` is the last of those, whatever else has been run since."""
    own = [place for place in places(home()) if run == "last" and isinstance(place, Path) and _is_of_facts(Kept(place))]
    return load(own[-1].name if own else run)


def _is_of_facts(kept: Kept) -> bool:
    try:
        return str(kept.spec_json["task"]["class"]).startswith("tasks.facts.")
    except (EngramError, KeyError, TypeError):
        return False


def see_fact(run: str, subject: str, relation: str) -> tuple[Asked, list[tuple[int, Belief]], list[Path]]:
    """What a run believed of a fact at its stored steps, and the figure of it."""
    from engram.show.facts import one_fact

    asked = Asked.of(load_facts(run), subject, relation)
    beliefs = history(asked)
    name = f"{asked.record.id}-{crc32(f'{subject}/{relation}'.encode()):08x}"
    figures = save_figures({name: one_fact(beliefs, f"({subject}, {relation}) → {asked.answer}")})
    return asked, beliefs, figures


def edit_fact(run: str, subject: str, relation: str, answer: str) -> tuple[Asked, FactEdit]:
    """Rewrite one fact of a trained model, and see what else moved; the record stays as it is."""
    asked = Asked.of(load_facts(run), subject, relation)
    return asked, edit(asked, answer)


def keep_edit(asked: Asked, found: FactEdit) -> Record:
    """The edited model as a run of its own: the same training, and at its end the rewritten fact."""
    spec = steered(asked.record.train, found.change)
    if not asked.record.finished:
        raise EngramError(f"run {asked.record.id} is not finished; `engram runs resume {asked.record.id}` first")
    if asked.record.folder.parent == home():
        fork(asked.record, spec)  # otherwise it is trained again
    return run_specs([spec], ON_CPU)[0]


def truncation_map(run: str, group: str = "in_context", sequences: int = 512) -> tuple[Record, Map, list[Path]]:
    """What the final model of a run says with each of its matrices truncated, and the figure of it."""
    from engram.show.subtitles import describe
    from engram.show.truncation import truncation_figure

    if sequences < 1:
        raise EngramError(f"sequences: at least one is needed; got {sequences}")
    record = load(run)
    spec = record.train
    found = sorted_map(spec.task, spec.model, record.model().weights, spec.seed, group, sequences)
    if not found.positions:
        raise EngramError(f"group: none of {sequences} sequences has a position {group}; ask for more sequences")
    about = f"One matrix truncated, positions {group}; black mark: the full model. {describe([record])}"
    figure = truncation_figure(found, about)
    return record, found, save_figures({f"{record.id}-truncation-{group}": figure})


def laser_figure(provenance: Provenance, name: str, done: Truncated) -> list[Path]:
    """The map of all cuts of a language model."""
    from engram.show.laser import laser_map

    found = done.found
    metric = "lead" if "lead" in found.full else "log_p"
    about = (
        f"{provenance}, {len(found.chosen_on)} prompts of {name} that choose; framed: the best by mean log p(answer)"
    )
    figure = laser_map(found.table(), metric, found.chosen_full[metric], vars(found.cut), about)
    return save_figures({f"{provenance.name}-laser-{name}": figure})
