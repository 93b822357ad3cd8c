"""`engram completion`: a script that lets the shell complete commands, options, experiments and runs."""

from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from engram.cli.output import JSON, tell
from engram.errors import EngramError

SHELLS: dict[str, Literal["bash", "zsh", "fish", "powershell"]] = {
    "bash": "bash",
    "zsh": "zsh",
    "fish": "fish",
    "powershell": "powershell",
}
A_RUN = "A run: its name, a part of it that no other has, `last`, or its folder."


def experiments_to_complete(context: Any) -> list[str]:
    """Their names, without loading one."""
    here = Path(__file__).parents[1] / "experiments"
    files = (file.relative_to(here).with_suffix("") for file in here.glob("*/*.py") if file.stem != "__init__")
    return sorted(".".join(path.parts).replace("_", "-") for path in files)


def runs_to_complete(context: Any) -> list[str]:
    from engram.records.files import home

    return sorted(folder.parent.name for folder in home().glob("*/spec.json"))


Name = Annotated[str, Parameter(completer=experiments_to_complete)]
SAID = {
    "json": JSON,
    **dict.fromkeys(("run", "record", "a", "b"), A_RUN),
    "names": "Runs: their names, or `last`.",
    "name": "An experiment, as `engram list` shows it, or your own file (./file.py).",
    "scale": "smoke, quick or paper.",
    "seeds": "How many, from 0 on (8 means 0-7), or which (10000-10007; a single one: 7-7).",
    "seed": "Of data and initial weights.",
    "steps": "Number of training steps.",
    "file": "A CSV file with the columns subject, relation, answer.",
    "subject": "The subject of the fact, as in the file.",
    "relation": "The relation of the fact, as in the file.",
    "answer": "Another answer that the file has.",
    "into": "The folder to write to.",
    "folder": "A folder of records.",
    "weights": "With the final weights, in float16.",
}  # of a parameter whose command says nothing else


def share_parameters(app: App) -> None:
    """What --json and RUN mean is the same in all commands, and said once; names of runs are completed."""
    for name in app:
        if name.startswith("-"):
            continue
        if app[name].default_command is None:
            share_parameters(app[name])
        else:
            _share(app[name].default_command)


def _share(command: Any) -> None:
    for name in SAID.keys() & signature(command).parameters.keys():
        if f"\n    {name}\n" not in (command.__doc__ or ""):
            _annotate(command, name, Parameter(help=SAID[name]))
        if SAID[name] == A_RUN:
            _annotate(command, name, Parameter(completer=runs_to_complete))


def _annotate(command: Any, name: str, told: Parameter) -> None:
    command.__annotations__[name] = Annotated[command.__annotations__[name], told]


def completion(shell: str = "bash") -> None:
    """Print a script that completes commands, options, experiments and runs.

    For bash: engram completion bash > ~/.local/share/bash-completion/completions/engram

    Parameters
    ----------
    shell
        bash, zsh, fish or powershell.
    """
    from engram.cli.main import app

    if shell not in SHELLS:
        raise EngramError(f"completion: unknown shell {shell!r}; allowed: {', '.join(SHELLS)}")
    tell(*app.generate_completion(prog_name="engram", shell=SHELLS[shell]).removesuffix("\n").split("\n"))
