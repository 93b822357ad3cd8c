"""Files that are what they seem: a pipe would wait forever, a device never end, a link lead elsewhere."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

NOT_PLAIN = "it is not a plain file"
ANYTHING_ELSE_FAILS = os.O_NONBLOCK | os.O_CLOEXEC  # what was swapped since the look does not make us wait


def open_plain(path: Path, follow: bool = False) -> BinaryIO:
    """A plain file to be read. Links are followed only if `follow` says so: for what a person named himself."""
    _refuse(path.stat() if follow else path.lstat(), path)
    try:
        handle = os.open(path, os.O_RDONLY | ANYTHING_ELSE_FAILS | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        raise _not_plain(path) if error.errno in (errno.ELOOP, errno.ENXIO) else error from None
    return _checked(handle, path, "rb")


def read_plain(path: Path, most: int, follow: bool = False) -> bytes:
    """All of a plain file, if it has at most so many bytes."""
    with open_plain(path, follow) as file:
        content = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    if content is None or len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MB", str(path))
    return content


def open_to_append(path: Path) -> BinaryIO:
    """A plain file to be added to, made if there is none; one with another name elsewhere would change there, too."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        handle = os.open(path, flags | ANYTHING_ELSE_FAILS, 0o666)
    except OSError as error:
        raise _not_plain(path) if error.errno in (errno.ELOOP, errno.ENXIO) else error from None
    return _checked(handle, path, "ab", names=1)


def create(path: Path) -> BinaryIO:
    """A new file; whatever bears its name, also a link, is removed first and not followed."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    return os.fdopen(handle, "wb")


def _checked(handle: int, path: Path, mode: str, names: int | None = None) -> BinaryIO:
    """The open file, once it is known to be plain and to have so many names."""
    try:
        _refuse(os.fstat(handle), path, names)
        return os.fdopen(handle, mode)  # type: ignore[return-value]  # a binary mode
    except BaseException:
        os.close(handle)
        raise


def _refuse(about: os.stat_result, path: Path, names: int | None = None) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise _not_plain(path)
    if names is not None and about.st_nlink != names:
        raise OSError(errno.EMLINK, f"it has {about.st_nlink} names", str(path))


def _not_plain(path: Path) -> OSError:
    return OSError(errno.EINVAL, NOT_PLAIN, str(path))
