"""The compiled kernel: built once in a few seconds by the machine's own C++ compiler, kept, and loaded.

Without a compiler there is none, and everything runs on the torch path; `engram doctor` says which it is.
"""

import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from filelock import FileLock

from engram.folders import cache, private

HERE = Path(__file__).parent
HEADERS = ("matrix.h", "adam.h")
SOURCES = ("transformer.cpp", "layers.cpp", "stores.cpp", "facts.cpp", "online.cpp", "rows.cpp")
COMPILERS = ("c++", "g++", "clang++")
# Fast arithmetic is for this file alone: given to the linker, it would change rounding in the whole process.
COMPILE = ("-std=c++17", "-O3", "-ffast-math", "-fPIC", "-c")
EXACT = {"rows.cpp": ("-fno-fast-math",)}  # numbers are read to the last bit
NATIVE = ("-march=native", "-mcpu=native", "")  # the first that the compiler knows
LINK = ("-shared", "-pthread")
REAL = {4: "float", 8: "double"}  # how functions for numbers of so many bytes end


@lru_cache(maxsize=1)
def kernel() -> ctypes.CDLL | None:
    """The kernel, or None where it cannot be built."""
    if os.environ.get("ENGRAM_NATIVE", "").lower() in ("off", "0", "false", "no"):
        return None
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return None
    try:
        return ctypes.CDLL(str(build_kernel(compiler)))
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", None) or str(error).encode()
        last = why.decode(errors="replace").strip().splitlines()[-1:]
        print(f"the fast path is not available ({' '.join(last)}); continuing with torch alone", file=sys.stderr)
        return None


def call(function: str, arguments: Sequence[np.ndarray | float | None]) -> int:
    """Calls a function of the kernel: arrays go by address, whole numbers as int, others as double, None as null.

    Arrays that it writes to must be contiguous; of others it is given a contiguous copy where they are not.
    """
    library = kernel()
    assert library is not None, "ask kernel() first"
    kept = [np.ascontiguousarray(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
    return getattr(library, function)(*map(_passed, kept))


def _passed(argument: np.ndarray | float | None) -> ctypes.c_void_p | ctypes.c_double | int | None:
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_double(argument) if isinstance(argument, float) else argument


def build_kernel(compiler: str) -> Path:
    """The library, compiled now unless this source has been compiled here before and lies there unchanged."""
    folder = private(cache() / "kernel")
    library = folder / f"{_identity(compiler)}.so"
    with FileLock(folder / "lock"):  # two processes may begin at the same moment
        if not _is_intact(library):
            print("compiling the fast path (once, a few seconds)", file=sys.stderr)
            _place(compiler, library)
    return library


def _is_intact(library: Path) -> bool:
    """Whether this is the very file that was compiled: whole, ours, and not for others to change."""
    try:
        about = library.lstat()
        ours = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o022
        return ours and _digest_file(library).read_text() == _sha256(library)
    except (OSError, UnicodeDecodeError):
        return False


def _place(compiler: str, library: Path) -> None:
    """Compiles in a folder of its own; the digest comes last, so a library without one is never loaded."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        _compile(compiler, made)
        made.chmod(0o600)
        _digest_file(made).write_text(_sha256(made))
        _remove(library)
        made.replace(library)
        _digest_file(made).replace(_digest_file(library))


def _digest_file(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _remove(path: Path) -> None:
    """Whatever it is: what was damaged may be a folder now."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _identity(compiler: str) -> str:
    """The same source, flags, compiler and processor give the same library."""
    about_it = Path(compiler).stat()
    about = [
        *COMPILE,
        str(EXACT),
        *NATIVE,
        *LINK,
        compiler,
        f"{about_it.st_mtime_ns} {about_it.st_size}",
        platform.machine(),
        _processor(),
    ]
    source = b"".join((HERE / name).read_bytes() for name in (*HEADERS, *SOURCES))
    return hashlib.sha256(source + "\0".join(about).encode()).hexdigest()[:16]


def _processor() -> str:
    """What compiling for this processor depends on, where the system says it (x86 and ARM use different words)."""
    keys = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "".join(next((line for line in lines if line.startswith(key)), "") for key in keys)


def _compile(compiler: str, library: Path) -> None:
    parts = [library.with_name(f"{name}.o") for name in SOURCES]
    for source, part in zip(SOURCES, parts, strict=True):
        _compile_one(compiler, HERE / source, part)
    _call([compiler, *LINK, *map(str, parts), "-o", str(library)], check=True)


def _compile_one(compiler: str, source: Path, part: Path) -> None:
    for native in NATIVE:
        flags = [*COMPILE, *EXACT.get(source.name, ()), *([native] if native else []), str(source), "-o", str(part)]
        if _call([compiler, *flags], check=not native) == 0:
            return


def _call(command: list[str], check: bool) -> int:
    """In a session of its own: stopped by Ctrl-C at the terminal, it would leave a run to the other path for good."""
    return subprocess.run(command, check=check, capture_output=True, start_new_session=True).returncode
