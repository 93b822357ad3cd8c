"""The compiled kernel is loaded only if it is whole, ours, and what was compiled here."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engram import folders, native

COMPILER = "/usr/bin/env"  # never called: what it would have written is written by `compiled`


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every library that was compiled."""
    made: list[Path] = []

    def compile_(compiler: str, library: Path) -> None:
        made.append(library)
        library.write_bytes(b"a library")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(native, "_compile", compile_)
    return made


def test_a_library_is_compiled_once(compiled: list[Path]) -> None:
    first, again = native.build_kernel(COMPILER), native.build_kernel(COMPILER)
    assert first == again
    assert first.read_bytes() == b"a library"
    assert len(compiled) == 1
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    assert [file.name for file in first.parent.iterdir() if file.is_dir()] == []


def link_elsewhere(library: Path) -> None:
    library.rename(library.with_suffix(".elsewhere"))
    library.symlink_to(library.with_suffix(".elsewhere"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda library: os.truncate(library, 3),
    "empty": lambda library: library.write_bytes(b""),
    "flipped": lambda library: library.write_bytes(b"a librarx"),
    "gone": lambda library: library.unlink(),
    "a link": link_elsewhere,
    "a folder": lambda library: (library.unlink(), library.mkdir(), (library / "x").touch()),
    "others may write": lambda library: library.chmod(0o666),
    "digest lost": lambda library: library.with_suffix(".sha256").unlink(),
    "digest cut": lambda library: os.truncate(library.with_suffix(".sha256"), 10),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_was_damaged_is_compiled_again(compiled: list[Path], damage: Callable[[Path], object]) -> None:
    library = native.build_kernel(COMPILER)
    damage(library)
    assert native.build_kernel(COMPILER) == library
    assert (library.read_bytes(), library.is_symlink(), len(compiled)) == (b"a library", False, 2)
    assert native.build_kernel(COMPILER) == library
    assert len(compiled) == 2


def test_a_folder_of_ours_is_made_private(compiled: list[Path]) -> None:
    library = native.build_kernel(COMPILER)
    library.parent.chmod(0o777)
    native.build_kernel(COMPILER)
    assert stat.S_IMODE(library.parent.stat().st_mode) == 0o700


def test_a_folder_of_somebody_else_is_not_trusted(compiled: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    native.build_kernel(COMPILER)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(RuntimeError, match="belongs to another user"):
        native.build_kernel(COMPILER)


def test_a_kernel_that_was_cut_does_not_kill_the_process(tmp_path: Path) -> None:
    """A library cut in half used to end the process with SIGBUS."""
    if native.kernel() is None:
        pytest.skip("no C++ compiler on PATH")
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", "from engram.native import kernel; print(kernel() is not None)"]
    shutil.copytree(folders.cache() / "kernel", tmp_path / "engram" / "kernel")
    for library in tmp_path.rglob("*.so"):
        os.truncate(library, library.stat().st_size // 2)
    again = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
    assert (again.returncode, again.stdout.strip()) == (0, "True")
