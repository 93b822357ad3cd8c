"""How a command ends by a signal: one line that says what was kept and how to go on; exit code 128 + its number."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from engram.errors import Interrupted

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WAKE = signal.SIGURG  # means nothing here, and is ignored by default
SECONDS_BETWEEN_WAKES = 0.05
KEPT = "what was saved is kept; the same command goes on from there"


class Stopped(KeyboardInterrupt):
    """A signal ended what was being done, at once."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number
        self.kept: str | None = None
        self.told = False

    def __str__(self) -> str:
        return f"stopped at once; {self.kept or KEPT}"


_raised: list[Stopped] = []  # by the first signal of this command that nobody waited for


def listen() -> None:
    """From here on signals end this process in one line. Those that are ignored stay ignored, as under nohup."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    _wake_main_thread()
    sys.excepthook, sys.unraisablehook = _explain_last, _explain_unraisable


def _wake_main_thread() -> None:
    """The system may give a signal to a thread of torch: Python notes it there, but its main thread, which must act,
    may wait on. A thread that hears of every signal wakes it with a harmless one."""
    if signal.getsignal(WAKE) != signal.SIG_DFL:
        return  # there is such a thread
    awake: list[int] = []
    signal.signal(WAKE, lambda number, frame: awake.append(number))
    hear, tell_of = os.pipe()
    os.set_blocking(tell_of, False)
    signal.set_wakeup_fd(tell_of, warn_on_full_buffer=False)
    threading.Thread(target=_wake_for_each, args=(hear, threading.get_ident(), awake), daemon=True).start()


def _wake_for_each(hear: int, main: int, awake: list[int]) -> None:
    """Until it is awake: it may have been about to fall asleep."""
    while True:
        if any(number != WAKE for number in os.read(hear, 64)):
            awake.clear()
            while not awake:
                signal.pthread_kill(main, WAKE)
                time.sleep(SECONDS_BETWEEN_WAKES)


def stop_listening() -> None:
    """All is done and said: while Python closes down there is nothing left to stop."""
    for number in ENDING:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)


def _stop(number: int, frame: Any) -> None:
    """The first unwinds what is being done, so that files are closed and workers end; the next waits for nothing."""
    _leave_closed_terminal()
    if _raised:
        _leave(_raised[0])
    _raised.append(Stopped(number))
    raise _raised[0]


def report_stop(stop: Interrupted | KeyboardInterrupt) -> int:
    """Says in one line what was kept, and returns the exit code."""
    known = stop if isinstance(stop, Stopped | Interrupted) else Stopped(signal.SIGINT)
    with suppress(OSError, ValueError):  # the terminal may be gone
        print(f"engram: {known}", file=sys.stderr, flush=True)
    if isinstance(known, Stopped):
        known.told = True
    return 128 + known.number


def raised_before() -> Stopped | None:
    """The signal that whatever goes wrong from now on is a consequence of, if one came."""
    return _raised[0] if _raised else None


def _leave(stop: Stopped) -> None:
    if not stop.told:
        report_stop(stop)
    os._exit(128 + stop.number)


def _explain_last(kind: Any, error: BaseException, trace: Any) -> None:
    """What nobody caught: a signal while the command was being loaded, or while it was saying its last words."""
    stop = raised_before()
    if stop is not None:
        _leave(stop)
    sys.__excepthook__(kind, error, trace)


def _explain_unraisable(lost: Any) -> None:
    """Where nothing can be raised, as in __del__, Python would forget the signal and go on."""
    if isinstance(lost.exc_value, Stopped):
        _leave(lost.exc_value)
    sys.__unraisablehook__(lost)


def _leave_closed_terminal() -> None:
    """What is said to a terminal that was closed would be an error, and end a run before it is saved."""
    for stream in (1, 2):
        try:
            os.write(stream, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream)
            os.close(nowhere)


@contextmanager
def keeping(kept: Callable[[], str]) -> Iterator[None]:
    """Says of what is stopped inside what was kept; whoever is nearest knows best."""
    try:
        yield
    except Stopped as stop:
        stop.kept = stop.kept or kept()
        raise


@contextmanager
def waiting_for_signals() -> Iterator[Callable[[], bool]]:
    """First signal: ask the run to stop after its step. Second: stop at once; what was saved stays valid.

    Ctrl-C always; the other signals if this process listens to them. One that came too late to stop a run, since all
    had ended, stops what follows.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield lambda: False
        return

    def handler(number: int, frame: Any) -> None:
        asked.append(number)
        _leave_closed_terminal()
        if len(asked) > 1:
            _pass_on(before[number], number)

    before: dict[int, Any] = {
        n: signal.getsignal(n) for n in ENDING if n == signal.SIGINT or signal.getsignal(n) is _stop
    }
    before = {number: handler for number, handler in before.items() if handler != signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    try:
        yield lambda: bool(asked)
    except Interrupted as stop:
        stop.number = asked[0]
        raise
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
    if asked:
        _pass_on(before[asked[0]], asked[0])


def _pass_on(handler: Any, number: int) -> None:
    """To whoever took this signal before."""
    handler(number, None) if callable(handler) else signal.default_int_handler(number, None)
