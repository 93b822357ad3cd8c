"""`engram runs export` and `engram runs import`: tables for other programs, runs for other machines."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from engram.cli.output import answer, near, tell
from engram.cli.runs import runs
from engram.errors import EngramError


@runs.command
def export(
    *names: str,
    into: Annotated[Path, Parameter(name=["--into", "--output", "-o"])] = Path("exported"),
    format: Literal["folder", "csv", "parquet", "hf"] = "folder",
    json: bool = False,
) -> None:
    """Write runs for other programs or machines, and runs.csv, which says what each of them is.

    Parameters
    ----------
    into
        The folder into which they are written.
    format
        folder: whole copies, which `engram runs import` takes in elsewhere; csv or parquet: the rows of each run;
        hf: every stored step as a GPT-2 folder of Hugging Face, where the model is one (norm = pre).
    """
    from engram.api import load
    from engram.records.faces import face_of
    from engram.records.files import replace, writing_to
    from engram.records.hugging_face import export_hugging_face
    from engram.records.moving import export_folder, faces_bytes, parquet_bytes, table_bytes

    if not names:
        raise EngramError("runs export: name at least one run; `engram runs ls` lists them")
    records, target = [load(name) for name in names], into.resolve()
    if format == "folder":
        written = [export_folder(record, target) for record in records]
    elif format == "hf":
        written = [path for record in records for path in export_hugging_face(record, target)]
    else:
        tables = {record.id: (table_bytes if format == "csv" else parquet_bytes)(record) for record in records}
        written = [target / f"{id}.{format}" for id in tables]
        with writing_to(target):
            for path, content in zip(written, tables.values(), strict=True):
                replace(path, content)
    with writing_to(target):
        replace(target / "runs.csv", faces_bytes([face_of(record) for record in records]))
    written.append(target / "runs.csv")
    answer({"exported": [str(path) for path in written]}) if json else tell(*(f"wrote   {near(p)}" for p in written))


@runs.command(name="import")
def import_(source: Path, *, json: bool = False) -> None:
    """Take in runs that were exported elsewhere, or those of a bundle; each is checked first, and it is all or none.

    Code that a run carries does not run before you trust it.

    Parameters
    ----------
    source
        A folder that `engram runs export` wrote, or a bundle.
    """
    from engram.records.files import home
    from engram.records.moving import import_runs

    taken, here = import_runs(source.resolve(), home())
    if json:
        answer({"imported": taken, "here": here})
        return
    tell(*(f"imported {id}" for id in taken), *(f"here already {id}" for id in here))
