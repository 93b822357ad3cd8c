"""The Ray engine on a cluster of two nodes of this machine: what comes home is what would be made here."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from threading import Thread
from typing import Any, TextIO, cast

import pytest

from engram.engines import distant
from engram.engines.build import build
from engram.engines.local import Local
from engram.engines.ray_cluster import Ray, WithoutRay
from engram.errors import EngramError
from engram.models.stores import OneHead
from engram.records import Record
from engram.specs import Check, Search, Spec, Train
from engram.specs.spec import run_id
from engram.tasks.planted import PlantedToken
from own_ray import Nodes, own_ray

pytest.importorskip("ray", reason="Ray is not installed: pip install 'engram[ray]'")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]
Tiny = Callable[..., Train]
DETACHED = {"start_new_session": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with own_ray() as found:
        yield found


def content(record: Record) -> dict[str, bytes]:
    clocks = ("env.json", "timing.jsonl", "lock", "about.json")
    paths = [path for path in record.folder.rglob("*") if path.is_file() and path.name not in clocks]
    return {str(path.relative_to(record.folder)): path.read_bytes() for path in paths}


def here(specs: list[Spec], home: Path) -> list[dict[str, bytes]]:
    return [content(record) for record in Local(home, threads=1).run(specs, lambda spec, row: None).records]


def test_records_are_those_of_this_machine(tiny: Tiny, tmp_path: Path, nodes: Nodes) -> None:
    search = Search(task=PlantedToken(N=32, T=16), model=OneHead(), target=0.9, bracket=(2, 128), tolerance=0.3)
    check = Check(law="lemmas.closed_forms", draws=3, sizes={"A": 5, "M": 5, "d": 8})
    diverges = tiny(seed=9, steps=60, lr=1e9)
    specs = [tiny(seed=1), tiny(seed=2, steps=40), search, check]
    seen: Counter[tuple[str, int]] = Counter()
    engine = Ray(tmp_path / "ray", address=nodes.with_second().address)
    outcome = engine.run([*specs, diverges, specs[0]], lambda spec, row: seen.update([(run_id(spec), row["step"])]))
    assert [record.id for record in outcome.records] == [run_id(spec) for spec in specs]
    assert set(seen.values()) == {1}
    assert "not finite" in str(outcome.failed[run_id(diverges)])
    assert [content(record) for record in outcome.records] == here(specs, tmp_path / "here")
    again = engine.run([*specs, diverges], lambda spec, row: None)  # all are over: they are only read
    assert set(again.failed) == {run_id(diverges)}


def test_ray_has_no_word_in_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    with redirect_stdout(cast(TextIO, WithoutRay(sys.stdout))):
        for name in ("ray_listen_error_messages", "of a user"):
            thread = Thread(target=print, args=(f"said by {name}",), name=name)
            thread.start()
            thread.join()
        print("the answer")
    assert capsys.readouterr().out == "said by of a user\nthe answer\n"


def test_a_node_that_is_killed_costs_nothing(
    tiny: Tiny, tmp_path: Path, nodes: Nodes, capsys: pytest.CaptureFixture[str]
) -> None:
    specs: list[Spec] = [tiny(seed=seed, steps=4000) for seed in range(4)]
    seen: Counter[tuple[str, int]] = Counter()
    begun: set[str] = set()

    def see(spec: Spec, row: dict[str, Any]) -> None:
        seen.update([(run_id(spec), row["step"])])
        begun.add(run_id(spec))
        if len(begun) == 2 and nodes.second is not None:
            nodes.kill_second()

    outcome = Ray(tmp_path / "ray", address=nodes.with_second().address).run(specs, see)
    assert not outcome.failed
    assert nodes.second is None, "no node was killed"
    assert set(seen.values()) == {1}
    assert len(seen) == 4 * 4001
    assert [content(record) for record in outcome.records] == here(specs, tmp_path / "here")
    assert not capsys.readouterr().out


def test_a_worker_with_another_version_is_refused_by_name(
    tiny: Tiny, tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    other = replace(build(), engram="0.1.9")
    monkeypatch.setattr(distant, "build", lambda: other)
    told: list[str] = []
    with pytest.raises(EngramError, match=r"no node of the cluster can be used: node .* has engram .* \(here 0\.1"):
        Ray(tmp_path, address=nodes.address, tell=told.append).run([tiny()], lambda spec, row: None)
    assert told


def test_a_plan_counts_the_nodes(nodes: Nodes) -> None:
    address = nodes.with_second().address
    assert Ray(address=address).side_by_side() == 2
    assert Ray(address=address, workers=1).side_by_side() == 1
    assert Ray(address=address).wall([3.0, 3.0, 2.0]) == 4.0
    with pytest.raises(EngramError, match=r"node .* does not have what a run needs \(2 CPU;"):
        Ray(address=address, threads=2).side_by_side()


def test_what_no_node_has_is_said(tiny: Tiny, tmp_path: Path, nodes: Nodes) -> None:
    with pytest.raises(EngramError, match=r"node .* does not have what a run needs \(64 CPU;"):
        Ray(tmp_path, address=nodes.address, threads=64).run([tiny()], lambda spec, row: None)


def test_ctrl_c_saves_everywhere_and_the_same_command_goes_on(tiny: Tiny, tmp_path: Path, nodes: Nodes) -> None:
    settings = ("--set", "plan.steps=3000", "--set", "plan.batch=4", "--set", "task.T=24", "--set", "model.d=16")
    command = [sys.executable, "-m", "engram", "run", "birth.joint", "--seeds", "2", *settings, "--json"]
    where = ["--engine", "ray", "--address", nodes.with_second().address]
    home = tmp_path / "runs"
    process = subprocess.Popen([*command, *where], env=os.environ | {"ENGRAM_HOME": str(home)}, **DETACHED)
    while len([*home.glob("*/rows.jsonl")]) != 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    assert [*home.glob("*/state.safetensors")]
    again = subprocess.run([*command, *where], env=os.environ | {"ENGRAM_HOME": str(home)}, check=False)
    assert again.returncode == 0
    local = tmp_path / "local"
    subprocess.run([*command, "--threads", "1"], env=os.environ | {"ENGRAM_HOME": str(local)}, check=True)
    found = [{r.name: content(Record(r)) for r in sorted(h.glob("bigram-*")) if r.is_dir()} for h in (home, local)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:1", "no Ray cluster answers there"),
        ("auto", "write HOST:PORT"),  # none is looked for
        ("ray://127.0.0.1:10001", "no Ray cluster answers there"),
        ("127.0.0.1:99999", "no Ray cluster answers there"),
    ],
)
def test_no_cluster_at_an_address(tiny: Tiny, tmp_path: Path, address: str, why: str) -> None:
    with pytest.raises(EngramError, match=why):
        Ray(tmp_path, address=address).run([tiny()], lambda spec, row: None)
