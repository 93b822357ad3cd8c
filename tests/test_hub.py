"""Models on the hub and in several files: what is fetched, what is refused, and that nothing stays behind."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors.numpy import save_file

from engram.adapters import read_model, read_network, revisions
from engram.adapters.hub import HubName, hub_name
from engram.adapters.opening import wanted
from engram.errors import EngramError
from llamas import LLAMA, llama_by_hand, llama_tensors
from networks import write_folder

TOKENS = np.array([[1, 4, 7, 1, 10, 0]])
INDEX = "model.safetensors.index.json"


class Hub:
    """A hub in a folder, one subfolder for each revision; what was asked of it is kept."""

    def __init__(self, folder: Path):
        self.folder, self.cached, self.asked = folder, set[str](), list[dict[str, Any]]()

    def snapshot_download(self, repo: str, revision: str | None = None, **how: Any) -> str:
        self.asked.append({"repo": repo, "revision": revision} | how)
        found = self.folder / (revision or "main")
        if not found.exists() or (how.get("local_files_only") and found.name not in self.cached):
            raise LocalEntryNotFoundError("no such\nrevision")
        if target := how.get("local_dir"):
            shutil.copytree(found, target, dirs_exist_ok=True)
        return str(target or found)

    def list_repo_refs(self, repo: str) -> Any:
        return SimpleNamespace(branches=[SimpleNamespace(name=path.name) for path in sorted(self.folder.iterdir())])


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    for seed, name in enumerate(("main", "step2", "step10")):
        write_folder(tmp_path / "hub" / name, LLAMA, llama_tensors(LLAMA, seed))
    hub = Hub(tmp_path / "hub")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", hub.snapshot_download)
    monkeypatch.setattr(huggingface_hub, "list_repo_refs", hub.list_repo_refs)
    monkeypatch.chdir(tmp_path)
    return hub


def test_names_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here/model").mkdir(parents=True)
    assert hub_name("org/name") == HubName("org/name")
    assert hub_name("org/na.me-1@step3/a") == HubName("org/na.me-1", "step3/a")
    for path in ("here/model", "./org/name", "/org/name", "name", "a/b/c", "org/name.gguf", "../x", Path("org/name")):
        assert hub_name(path) is None


def test_nothing_is_downloaded_without_consent(hub: Hub) -> None:
    with pytest.raises(EngramError, match=r"org/name: no such folder, and no model of the hub .* with --yes"):
        read_network("org/name")
    assert wanted("org/name") == "org/name from the Hugging Face hub"
    assert all(asked["local_files_only"] for asked in hub.asked)
    hub.cached.add("main")
    assert read_network("org/name").provenance.name == "org/name"
    assert wanted("org/name") is None


def test_a_revision_is_read(hub: Hub) -> None:
    network = read_model("org/name@step10", consent=True).network
    assert np.allclose(network.stream(TOKENS).numpy(), llama_by_hand(LLAMA, llama_tensors(LLAMA, 2), TOKENS), atol=1e-3)
    assert network.provenance.name == "org/name@step10"
    assert not [pattern for pattern in hub.asked[0]["allow_patterns"] if pattern.endswith((".bin", ".py", "*"))]


def test_revisions_are_streamed(hub: Hub) -> None:
    """In the order of their numbers; the files of each are gone when it is there."""
    found = [(name, model.network.provenance.name) for name, model in revisions("org/name", consent=True)]
    assert found == [(name, f"org/name@{name}") for name in ("main", "step2", "step10")]
    folders = [Path(asked["local_dir"]) for asked in hub.asked]
    assert len(set(folders)) == 3
    assert not any(folder.exists() for folder in folders)
    assert [name for name, _ in revisions("org/name", ["step10"], consent=True)] == ["step10"]
    with pytest.raises(EngramError, match="revisions are downloaded; agree with --yes"):
        next(revisions("org/name"))


def test_revisions_of_a_folder(hub: Hub) -> None:
    assert [name for name, _ in revisions(hub.folder)] == ["main", "step2", "step10"]
    with pytest.raises(EngramError, match="there is no 'step3'; there are main, step2, step10"):
        list(revisions(hub.folder, ["step3"]))
    with pytest.raises(EngramError, match="no folder with models in it"):
        list(revisions(hub.folder / "main"))


def test_the_hub_gives_nothing(hub: Hub) -> None:
    with pytest.raises(
        EngramError, match=r"org/name@x: the Hugging Face hub gave nothing \(LocalEntryNot.*no such rev"
    ):
        read_network("org/name@x", consent=True)


def test_no_library(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for ask in (lambda: read_network("org/name"), lambda: read_network("org/name", consent=True)):
        with pytest.raises(EngramError, match=r"models of the hub need the extra hf: pip install 'engram\[hf\]'"):
            ask()


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A model whose weights are in two files."""
    folder, tensors = write_folder(tmp_path / "parts", LLAMA, {}), llama_tensors(LLAMA)
    (folder / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(tensors)}
    for file in set(places.values()):
        save_file({name: tensors[name] for name, place in places.items() if place == file}, folder / file)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return folder


def test_weights_in_several_files(parts: Path) -> None:
    network = read_network(parts)
    assert np.allclose(network.stream(TOKENS).numpy(), llama_by_hand(LLAMA, llama_tensors(LLAMA), TOKENS), atol=1e-3)
    assert len(network.provenance.sha256) == 64


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weight_map": {}}, "index.json: weight_map is missing"),
        ({"weight_map": [1]}, "index.json: weight_map is missing"),
        (
            {"weight_map": {"a": "../../secret.safetensors"}},
            "'../../secret.safetensors' is no name of a file of weights",
        ),
        ({"weight_map": {"a": 3}}, "3 is no name of a file of weights"),
        ({"weight_map": {"a": "model-9.safetensors"}}, "it has no model-9.safetensors"),
        ({"weight_map": {"a": "model-00001-of-00002.safetensors"}}, "it does not say what model-00001-of-00002.safet"),
    ],
)
def test_an_index_is_not_believed(parts: Path, change: dict[str, Any], says: str) -> None:
    (parts / INDEX).write_text(json.dumps(change))
    with pytest.raises(EngramError, match=says):
        read_network(parts)


def test_one_of_several_files_is_missing_or_cut_off(parts: Path) -> None:
    (parts / "model-00002-of-00002.safetensors").write_bytes(b"\x00" * 50)
    with pytest.raises(EngramError, match=r"parts/model-00002-of-00002.safetensors: it is cut off"):
        read_network(parts)
    (parts / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(EngramError, match=r"it has no model-00002-of-00002\.safetensors"):
        read_network(parts)
