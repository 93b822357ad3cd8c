"""A disk whose power can be cut: ext4 on a loop device, shut down without writing what lies in memory."""

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHUTDOWN, WITHOUT_A_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN and EXT4_GOING_FLAGS_NOLOGFLUSH of linux/fs
TOOLS = ("mkfs.ext4", "mount", "umount")


class Disk:
    """`path` is its root; after `cut` it holds what would have been there after a power cut."""

    def __init__(self, image: Path, path: Path):
        self.image, self.path = image, path

    def mount(self) -> None:
        _call("mount", "-o", "loop,commit=300", str(self.image), str(self.path))  # nothing is written by chance

    def cut(self) -> None:
        root = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(root, SHUTDOWN, struct.pack("I", WITHOUT_A_FLUSH))
        os.close(root)
        _call("umount", str(self.path))
        self.mount()


@contextmanager
def disk(folder: Path) -> Iterator[Disk | None]:
    """None where this machine allows no loop devices, or we are not root."""
    made = Disk(folder / "disk.img", folder / "disk")
    made.path.mkdir()
    try:
        _make(made)
    except (OSError, subprocess.CalledProcessError):
        yield None
        return
    try:
        yield made
    finally:
        _call("umount", "-l", str(made.path))


def _make(made: Disk) -> None:
    if os.geteuid() != 0 or not all(map(shutil.which, TOOLS)):
        raise OSError
    with made.image.open("wb") as image:
        image.truncate(48 << 20)
    _call("mkfs.ext4", "-q", str(made.image))
    made.mount()


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)
