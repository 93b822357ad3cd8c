"""Models on the Hugging Face hub: "org/name", or "org/name@revision".

Only settings, weights and tokenizers are fetched, by the library huggingface-hub, with its own cache and settings
(HF_HOME, HF_HUB_OFFLINE).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.errors import EngramError

NAME = re.compile(r"(?P<repo>\w[\w.-]{0,95}/\w[\w.-]{0,95})(?:@(?P<revision>\w[\w./-]{0,199}))?")
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
FILES = ["config.json", *WEIGHTS, "model-*.safetensors", "tokenizer.json", "tokenizer_config.json"]


@dataclass(frozen=True)
class HubName:
    """A repository, and a branch, tag or commit of it."""

    repo: str
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}" if self.revision else self.repo


def hub_name(where: str | Path) -> HubName | None:
    """What this means on the hub; None for a path, which anything is that exists here."""
    found = NAME.fullmatch(where) if isinstance(where, str) else None
    is_path = Path(where).exists() or Path(where).suffix == ".gguf"
    return HubName(found["repo"], found["revision"]) if found and not is_path else None


def on_this_computer(name: HubName) -> Path | None:
    """The folder in the cache of the library, if the model was fetched before with its weights."""
    _refuse_missing(name)
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(_fetch(name, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    return folder if any((folder / file).exists() for file in WEIGHTS) else None


def fetched(name: HubName, consent: bool = False) -> Path:
    """A folder with the files of a model, downloaded first if the user agrees."""
    if consent:
        _refuse_missing(name)
        return Path(_asked(name, lambda: _fetch(name)))
    if (folder := on_this_computer(name)) is None:
        raise EngramError(
            f"{name}: no such folder, and no model of the hub that is on this computer; agree to a download with "
            "--yes, in Python with consent=True"
        )
    return folder


def fetch_into(folder: Path, name: HubName) -> None:
    """The files of a model in a folder of our own, without a trace in the cache of the library."""
    _refuse_missing(name)
    _asked(name, lambda: _fetch(name, local_dir=folder))


def branches(name: HubName) -> list[str]:
    """The revisions that a repository names; training checkpoints are published as branches."""
    _refuse_missing(name)
    import huggingface_hub

    refs: Any = _asked(name, lambda: huggingface_hub.list_repo_refs(name.repo))
    return [branch.name for branch in refs.branches]


def _fetch(name: HubName, **how: Any) -> str:
    import huggingface_hub

    return str(huggingface_hub.snapshot_download(name.repo, revision=name.revision, allow_patterns=FILES, **how))


def _asked(name: HubName, ask: Callable[[], Any]) -> Any:
    """What the hub answers; it can fail in many ways, and says which."""
    try:
        return ask()
    except Exception as error:
        why = " ".join(str(error).split())
        raise EngramError(f"{name}: the Hugging Face hub gave nothing ({type(error).__name__}: {why:.200})") from None


def _refuse_missing(name: HubName) -> None:
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise EngramError(f"{name}: models of the hub need the extra hf: pip install 'engram[hf]'") from None
