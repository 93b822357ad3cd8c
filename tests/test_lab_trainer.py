"""A trainer that leaves: by a signal, while an order reaches it, and without the folder of its run."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from engram.lab.backend import Backend, spec_order
from engram.lab.mailbox import Mailbox
from engram.lab.trainer import Trainer
from engram.records import Record
from engram.records.shelf import being_written
from engram.records.state import State
from engram.specs import Train
from engram.specs.spec import run_id
from lab import Page, Served, leave

Tiny = Callable[..., Train]


def wait_for(done: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    found = Mailbox(tmp_path / "runs")
    found.token()  # makes the folder
    found.clear()
    return found


@pytest.mark.parametrize("late", ["start", "resume"])
def test_an_order_after_quit_is_refused_and_changes_nothing(mailbox: Mailbox, tiny: Tiny, late: str) -> None:
    spec = tiny()
    order = spec_order(spec) if late == "start" else {"op": "resume"}
    mailbox.write("orders", {"id": 1, "op": "quit"})
    mailbox.write("orders", order | {"id": 2})
    Trainer(mailbox, os.getppid()).work()
    (quits, refused), _ = mailbox.read("answers", 0)
    assert quits["ok"]
    assert (refused["id"], refused["ok"]) == (2, False)
    assert "the trainer has left; ask again" in refused["error"]
    assert not (mailbox.home / run_id(spec)).exists()


def test_an_order_that_comes_with_the_last_look_is_refused(mailbox: Mailbox, tiny: Tiny) -> None:
    """The trainer is idle and its server has gone: it leaves without having looked at what came last."""
    mailbox.write("orders", spec_order(tiny()) | {"id": 1})
    Trainer(mailbox, server=-1).work()
    (refused,), _ = mailbox.read("answers", 0)
    assert (refused["ok"], "the trainer has left" in refused["error"]) == (False, True)


@pytest.mark.parametrize("says_so", [True, False])
def test_a_start_that_reaches_a_leaving_trainer_is_taken_by_the_next(tmp_path: Path, tiny: Tiny, says_so: bool) -> None:
    spec, backend = tiny(), Backend(tmp_path / "runs")
    leaving = FileLock(backend.mailbox.folder / "trainer.lock")
    leaving.acquire()
    backend.mailbox.set_status({"state": "idle"})

    async def ask() -> dict[str, object]:
        asked = asyncio.create_task(backend.order(spec_order(spec)))
        while not (orders := backend.mailbox.read("orders", 0)[0]):
            await asyncio.sleep(0.01)
        if says_so:
            backend.mailbox.write("answers", {"id": orders[0]["id"], "ok": False, "left": True, "error": "it has left"})
        leaving.release()
        return await asked

    try:
        assert asyncio.run(ask()) == {"ok": True, "run": run_id(spec), "step": 0}
        wait_for(lambda: Record(backend.mailbox.home / run_id(spec)).finished)
    finally:
        leave(backend)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_saves_and_ends_it(mailbox: Mailbox, tiny: Tiny, number: int) -> None:
    spec = tiny(steps=30000)
    command = [sys.executable, "-m", "engram.lab.trainer", str(mailbox.home)]
    trainer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(lambda: mailbox.status()["state"] == "idle")
    mailbox.write("orders", spec_order(spec) | {"id": 1})
    wait_for(lambda: (mailbox.home / run_id(spec) / "rows.jsonl").exists() and len(_rows(mailbox, spec)) > 5)
    trainer.send_signal(number)
    _, said = trainer.communicate(timeout=60)
    assert trainer.returncode == 128 + number, said
    assert said.splitlines()[-1].endswith(f"saved; resume with: engram runs resume {run_id(spec)}")
    assert State.read(mailbox.home / run_id(spec)).step == len(_rows(mailbox, spec))


def _rows(mailbox: Mailbox, spec: Train) -> list[dict[str, object]]:
    return Record(mailbox.home / run_id(spec)).rows


def test_the_page_hears_that_the_folder_was_removed(lab: Served, page: Page) -> None:
    run = page.start(**{"plan.steps": 30000})
    page.until(run, 3)
    (lab.home / run).rename(lab.home / "elsewhere")
    while not (page.state.get("trainer") or {}).get("error"):
        page.hear("state")
    assert f"the folder of run {run} was removed" in page.state["trainer"]["error"]
    assert not (lab.home / run).exists()


def test_a_run_that_was_removed_while_it_rested_does_not_begin_again(lab: Served, page: Page) -> None:
    run = page.start(**{"plan.steps": 30000})
    page.until(run, 3)
    assert page.ask("control", op="pause")["ok"]
    wait_for(lambda: not being_written(Record(lab.home / run)))  # it has saved
    shutil.rmtree(lab.home / run)
    page.ask("control", op="resume")
    wait_for(lambda: lab.backend.mailbox.status()["error"])
    assert f"the folder of run {run} was removed" in lab.backend.mailbox.status()["error"]
    assert not (lab.home / run).exists()
