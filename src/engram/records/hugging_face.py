"""Runs for tools that read Hugging Face folders: one folder for each stored step."""

from collections.abc import Iterator
from pathlib import Path

from engram.adapters.export import gpt2_files
from engram.errors import EngramError
from engram.records.files import replace, writing_to
from engram.records.record import Record


def export_hugging_face(record: Record, into: Path) -> list[Path]:
    """The stored steps of a run as GPT-2 folders, `ID/step100`, …: `engram.adapters.revisions` reads them."""
    if not record.snapshot_steps:
        raise EngramError(f"record {record.id} has no weights stored; run it with --snapshots 100, or another number")
    return list(_written(record, into / record.id))


def _written(record: Record, into: Path) -> Iterator[Path]:
    for step in record.snapshot_steps:
        folder = into / f"step{step}"
        files = gpt2_files(record.model(step))
        with writing_to(folder):
            for name, content in files.items():
                replace(folder / name, content)
        yield folder
