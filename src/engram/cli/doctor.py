"""What Engram finds on this machine."""

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("engram", "torch", "numpy", "scipy", "pydantic", "matplotlib", "safetensors")
OPTIONAL = {"hf": "transformers", "ray": "ray", "tl": "transformer_lens"}
NEEDED = {"transformers": "only engram bench step.hops needs it"}


def findings() -> list[dict[str, str]]:
    """What was looked for and what was found, with what to do if something is amiss."""
    from engram.engines.local import choose_device, cores
    from engram.native import kernel
    from engram.records.files import home

    device, why = choose_device("auto")
    found = {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}
    found["system"] = f"{platform.system()} {platform.machine()}"
    found |= {"cores": str(cores()), "device": f"{device} ({why})"}
    found["fast path"] = "compiled kernel" if kernel() else "no kernel (no C++ compiler on PATH): runs use torch alone"
    found |= {"runs": f"{home().resolve()} ({_writable(home())})", "disk free": _free(home())}
    found |= {f"extra [{extra}]": _optional(module) for extra, module in OPTIONAL.items()}
    found["browser"] = next(
        (b for b in ("chromium-headless-shell", "chromium", "google-chrome") if shutil.which(b)),
        "none (only tests need one)",
    )
    return [{"what": name, "found": value} for name, value in found.items()]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing; pip install -c constraints.txt ."


def _optional(module: str) -> str:
    return (
        "installed" if find_spec(module) else f"not installed; {NEEDED.get(module, 'no part of this version needs it')}"
    )


def _nearest(path: Path) -> Path:
    """The path itself, or the first folder above it that exists."""
    return next(folder for folder in (path.resolve(), *path.resolve().parents) if folder.exists())


def _writable(path: Path) -> str:
    return "writable" if os.access(_nearest(path), os.W_OK) else "not writable; set ENGRAM_HOME to another folder"


def _free(path: Path) -> str:
    return f"{shutil.disk_usage(_nearest(path)).free / 1e9:.1f} GB"
