"""What is said where words of a command are missing, or left over."""

from collections.abc import Iterator
from inspect import Parameter, signature

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from engram.errors import did_you_mean

EXAMPLES = {
    "show": "birth.joint",
    "run": "birth.joint",
    "fields": "birth.joint",
    "predict zipf": "2",
    "sweep": "birth.joint --set model.d=16,32",
    "runs diff": "last 3f2a",
    "runs import": "their-runs",
    "runs note": "last what I saw",
    "runs tag": "last good",
    "fact learn": "countries.csv",
    "fact see": "last France capital",
    "fact edit": "last France capital Rome",
}
NUMBERS: dict[type | None, str] = {int: "a whole number", float: "a number"}


def in_words(error: CycloptsError, app: App) -> str:
    """A mistake in one line; cyclopts calls everything that is missing an option, also what has no name."""
    if isinstance(error, MissingArgumentError) and error.keyword is None and error.argument and error.target:
        return _missing(error, app)
    if isinstance(error, UnusedCliTokensError) and error.target and error.unused_tokens:
        wanted = " ".join(_asked_for(error)) or "options"
        return f"engram {_command(error)} takes only {wanted}; left over: {' '.join(map(repr, error.unused_tokens))}"
    if isinstance(error, MissingArgumentError) and error.keyword:
        return f"{error.keyword} needs a value; `engram {_command(error)} --help` says which"
    if isinstance(error, CoercionError) and error.token and error.target_type in NUMBERS:
        return f"{_called(error)}: must be {NUMBERS[error.target_type]}; got {error.token.value!r:.80}"
    if isinstance(error, CoercionError) and error.token and not error.token.keyword and error.msg:
        return f"{_called(error)}: {error.msg}"
    if isinstance(error, UnknownOptionError):
        return _unknown(error)
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        return _unknown_command(error, app)
    return " ".join(str(error).split()).removeprefix("Invalid value for ")


def _called(error: CoercionError) -> str:
    """An option as it is written, what has none by its place."""
    assert error.token
    return error.token.keyword or (error.argument.field_info.name.upper() if error.argument else "a value")


def _unknown(error: UnknownOptionError) -> str:
    """The nearest option; --seed 7 is told apart from --seeds 7, which would take the first seven."""
    given = (error.token.keyword or error.token.value).split("=")[0]
    options = [name for argument in error.argument_collection for name in argument.names]
    command = f"engram {_command(error)}".strip()
    hint = did_you_mean(given, options) or f"`{command} --help` lists what there is"
    if given == "--seed" and "--seeds" in options:
        hint = "a single seed is --seeds 7-7, the first eight are --seeds 8"
    return f"{command} has no option {given}; {hint.strip()}"


def _unknown_command(error: UnknownCommandError, app: App) -> str:
    """The nearest command; the help has all of them, a cut list would hide some."""
    assert error.unused_tokens
    given, group = error.unused_tokens[0], _command(error).split()
    for word in group:
        app = app[word]
    listed = f"`{' '.join(['engram', *group, '--help'])}` lists them"
    return f"no command {given!r:.80}; {did_you_mean(given, [name for name in app if name[0] != '-'])}{listed}"


def _missing(error: CycloptsError, app: App) -> str:
    assert error.argument
    command, names, first = _command(error), _asked_for(error), error.argument.field_info.name
    by_place = first.upper() in names  # else an option that must be given
    needed = " ".join(names[names.index(first.upper()) :]) if by_place else error.argument.names[0]
    example = f"engram {command} {EXAMPLES.get(command, 'last')}"
    about = f"{_about(command, first, app)}; for example: {example}{_namesake(command, app)}"
    return f"engram {command} needs {needed}: {about}"


def _about(command: str, name: str, app: App) -> str:
    """As the help says it."""
    for word in command.split():
        app = app[word]
    found = app.assemble_argument_collection(parse_docstring=True)
    about = next(one.parameter.help or "" for one in found if one.field_info.name == name)
    return (about[:1].lower() + about[1:]).strip().rstrip(".")


def _command(error: CycloptsError) -> str:
    return " ".join(error.command_chain or ())


def _asked_for(error: CycloptsError) -> list[str]:
    """What stands behind a command without a name of its own, as its usage shows it; what may be left out is not."""
    assert error.target
    asked = signature(error.target).parameters.values()
    return [one.name.upper() for one in asked if one.kind is Parameter.POSITIONAL_OR_KEYWORD]


def _namesake(command: str, app: App) -> str:
    """Where the last word is also that of another command: engram show, engram runs show."""
    last = command.split()[-1]
    others = [other for other in commands_of(app) if other.split()[-1] == last and other != command]
    return f" (did you mean engram {' or engram '.join(others)}?)" if others else ""


def commands_of(of: App, way: tuple[str, ...] = ()) -> Iterator[str]:
    for name in of:
        if not name.startswith("-"):
            here = (*way, name)
            yield from commands_of(of[name], here) if of[name].default_command is None else [" ".join(here)]
