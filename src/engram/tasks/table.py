"""Tables of facts as people keep them: CSV with commas, semicolons or tabs. All mistakes are told at once, by line."""

import csv
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.errors import EngramError, did_you_mean
from engram.plain import read_plain

Fact = tuple[str, str, str]
Cells = list[str]
Columns = tuple[str, ...]
COLUMNS = ("subject", "relation", "answer")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
COUNT = {2: "two", 3: "three"}
MOST_TOLD = 20  # mistakes: a file that was not meant as a table has one on every line


class BadTable(EngramError):
    """A table with mistakes, each of which `mistakes` tells in one line; `guess` says how its columns were read."""

    def __init__(self, path: Path, mistakes: Sequence[str], guess: str = ""):
        super().__init__(f"{path}: " + "; ".join([*([guess] if guess else []), *told(mistakes)]))
        self.path, self.mistakes, self.guess = path, tuple(mistakes), guess


def told(mistakes: Sequence[str]) -> list[str]:
    """The first of them, and how many more there are."""
    more = len(mistakes) - MOST_TOLD
    return [*mistakes[:MOST_TOLD], *([f"… and {more} more"] if more > 0 else [])]


def read_facts(path: Path, most: int, skip_bad: bool = False) -> tuple[Fact, ...]:
    """The facts of a file of at most so many bytes; BadTable if there is any mistake in it.

    A warning says which column was taken for which, where the first line does not; with skip_bad another one says
    which lines were left out.
    """
    table = _read(path, most, COLUMNS)
    senseless = mistakes_in(table.facts, lambda i: f"line {table.lines[i]}")
    by_line = sorted([*table.mistakes, *((table.lines[i], why) for i, why in senseless)], key=lambda found: found[0])
    bad = {line for line, _ in by_line} if skip_bad else set[int]()
    facts = tuple(fact for line, fact in zip(table.lines, table.facts, strict=True) if line not in bad)
    mistakes = [why for line, why in by_line if line not in bad or not facts] or too_few(facts)
    if mistakes:
        raise BadTable(path, mistakes, table.guess)
    if table.guess:
        warnings.warn(f"{path}: {table.guess}", stacklevel=3)
    if bad:
        warnings.warn("\n".join([*told([why for _, why in by_line]), _left_out(path, len(bad))]), stacklevel=3)
    return facts


def _left_out(path: Path, n: int) -> str:
    return f"{path}: {n} line{'s' * (n != 1)} left out, as listed above"


def read_columns(path: Path, most: int, needed: Columns, also: Columns = ()) -> list[tuple[int, dict[str, str]]]:
    """The rows of a file as dicts, each with its line; columns in `also` may be missing, other ones are ignored."""
    table = _read(path, most, needed, also)
    empty = [
        (line, f"line {line} ({_shown(row)}): {name} is empty")
        for line, row in zip(table.lines, table.facts, strict=True)
        for name, cell in zip(needed, row, strict=False)
        if not cell
    ]
    if mistakes := [why for _, why in sorted([*table.mistakes, *empty])]:
        raise BadTable(path, mistakes)
    rows = (dict(zip((*needed, *also), row, strict=True)) for row in table.facts)
    return list(zip(table.lines, rows, strict=True))


def _read(path: Path, most: int, needed: Columns, also: Columns = ()) -> "Table":
    try:
        text = read_plain(path, most, follow=True).decode("utf-8-sig")  # the user named it: it may be a link
        return _parsed(text, needed, also)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        remedy = "save it as UTF-8" if isinstance(error, UnicodeDecodeError) else "give a text file"
        raise EngramError(
            f"{path}: cannot be read as CSV ({why}); {remedy}, with the columns {', '.join(needed)}"
        ) from None


@dataclass(frozen=True)
class Table:
    """The facts that could be read, the line on which each begins, what is wrong with other lines, and what was guessed
    of the first."""

    facts: tuple[Any, ...] = ()
    lines: tuple[int, ...] = ()
    mistakes: tuple[tuple[int, str], ...] = ()
    guess: str = ""


def _parsed(text: str, needed: Columns, also: Columns = ()) -> Table:
    """The separator is the one with which the first line has most of the columns, or as many of any name, or most."""
    tables = {separator: list(_rows(text, separator)) for separator in SEPARATORS}
    heads = {separator: rows[0][1] if rows else [] for separator, rows in tables.items()}
    known = {separator: len(set(_names(head)) & set(needed)) for separator, head in heads.items()}
    sizes = {separator: len(_filled(head)) for separator, head in heads.items()}
    separator = max(heads, key=lambda one: (known[one], sizes[one] == len(needed), sizes[one]))
    rows, wrong = tables[separator], _wrong_head(heads[separator], needed)
    guess = _guessed(rows, needed) if wrong else Guess(_names(heads[separator]), rows[1:])
    if guess is None:
        return Table(mistakes=tuple((1, why) for why in wrong))
    names, facts, lines, mistakes = guess.names, [], [], []
    for line, cells in guess.rows:
        why = _wrong_cells(cells, names, separator, needed)
        if why:
            mistakes.append((line, f"line {line} ({_shown(cells)}): {why}"))
        else:
            there = dict(zip(names, cells, strict=False))
            facts.append(tuple(there.get(column, "") for column in (*needed, *also)))
            lines.append(line)
    if not facts and not mistakes:
        mistakes.append((1, "has nothing below its first line"))
    return Table(tuple(facts), tuple(lines), tuple(mistakes), guess.words)


@dataclass(frozen=True)
class Guess:
    """How the columns are called, the rows with facts, and what to tell of it."""

    names: Cells
    rows: Sequence[tuple[int, Cells]]
    words: str = ""


def _guessed(rows: Sequence[tuple[int, Cells]], needed: Columns) -> Guess | None:
    """As many columns of other names: known ones stay, the rest comes in order; None where this says nothing.

    Only facts are guessed. A first line without a known name is one if its second word comes again below: relations do,
    headers do not.
    """
    head = _filled(rows[0][1]) if rows else []
    known = [name for name in _names(head) if name in needed]
    if needed != COLUMNS or len(head) != len(needed) or len(set(known)) < len(known):
        return None
    left = iter(column for column in needed if column not in known)
    names = [name if name in known else next(left) for name in _names(head)]
    order, first = ", ".join(names), _shown(head)
    if not known and any(cells[1:2] == head[1:2] for _, cells in rows[1:]):
        return Guess(names, rows, f"it has no header; its first line ({first}) is a fact, and its columns are {order}")
    if _is_wide(rows[1:], names):
        return None
    return Guess(names, rows[1:], f"its columns ({first}) are read as {order}")


def _is_wide(rows: Sequence[tuple[int, Cells]], names: Cells) -> bool:
    """Whether what was taken for relations are answers: a line for each subject, and hardly a relation comes again."""
    full = [cells for _, cells in rows if len(cells) >= len(names)]
    subjects, relations = ([cells[names.index(name)] for cells in full] for name in COLUMNS[:2])
    return len(full) > 1 and len(set(subjects)) == len(full) and 2 * len(set(relations)) > len(full)


def _filled(cells: Cells) -> Cells:
    """Without the empty ones that spreadsheets leave at the end."""
    return cells if not cells or cells[-1] else _filled(cells[:-1])


def _rows(text: str, separator: str) -> Iterator[tuple[int, Cells]]:
    """Rows that are not blank, each with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    begin = 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield begin, [cell.strip() for cell in cells]
        begin = reader.line_num + 1


def _names(head: Cells) -> Cells:
    return [name.casefold() for name in head]


def _wrong_head(head: Cells, needed: Columns) -> list[str]:
    if not head:
        return [f"is empty; its first line must be: {', '.join(needed)}"]
    found, has = Counter(_names(head)), f"; its first line has: {', '.join(filter(None, head))}"
    others = [name for name in head if name.casefold() not in needed]
    hints = {column: did_you_mean(column, others).strip() for column in needed}
    missing = [f"{name} ({hints[name]})" if hints[name] else name for name in needed if not found[name]]
    twice = [f"two columns are called {name}{has}" for name in needed if found[name] > 1]
    order = ", or give exactly three columns in this order" if needed == COLUMNS else ""
    if order and len(missing) > 1 and len(head) >= 3:
        order += (
            f"; with a column for each relation, write a line for each fact instead: {head[0]}, {head[1]}, its value"
        )
    wanted = f"; name them {', '.join(needed)}, in any order{order}"
    return [f"no column {', '.join(missing)}{has}{wanted}", *twice] if missing else twice


def _wrong_cells(cells: Cells, names: Cells, separator: str, needed: Columns) -> str | None:
    if any("\n" in cell or "\r" in cell for cell in cells):
        return "a quotation mark is not closed, or a name has a line break"
    if len(cells) <= max(names.index(column) for column in needed):
        return f"{COUNT.get(len(needed), len(needed))} values are needed: {', '.join(needed)}"
    if any(cells[len(names) :]):
        kind = SEPARATORS[separator]
        return f"{len(cells)} values for {len(names)} columns; put a name that has a {kind} in quotation marks"
    return None


def _shown(cells: Sequence[str]) -> str:
    """In one line, not too long."""
    text = " ".join(", ".join(cells).split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def mistakes_in(facts: Sequence[Fact], where: Callable[[int], str], D: int | None = None) -> list[tuple[int, str]]:
    """What makes no sense in facts: which fact, and a sentence in which `where` says how its place is called.

    D    most answers that a relation may have
    """
    seen = _Seen(facts, where, D)
    return [(i, f"{where(i)} ({_shown(fact)}): {why}") for i, fact in enumerate(facts) for why in seen.wrong(i)]


class _Seen:
    """Facts up to one of them: where each name, each question and each answer came first."""

    def __init__(self, facts: Sequence[Fact], where: Callable[[int], str], D: int | None):
        self.facts, self.where, self.D = facts, where, D
        self.role: dict[str, tuple[str, int]] = {}
        self.asked: dict[tuple[str, str], int] = {}
        self.owner: dict[str, int] = {}
        self.answers: Counter[str] = Counter()  # by relation

    def wrong(self, i: int) -> Iterator[str]:
        """What is wrong with this fact, given those before."""
        s, r, a = self.facts[i]
        if not all((s, r, a)):
            empty = [part for part, name in zip(COLUMNS, self.facts[i], strict=True) if not name]
            are = "is" if len(empty) == 1 else "are"
            yield f"its {' and '.join(empty)} {are} empty; fill it in, or remove the line"
            return
        for name, role in ((s, "subject"), (r, "relation")):
            was, first = self.role.setdefault(name, (role, i))
            if was != role:
                yield f"{name!r} is a {role} here and a {was} in {self.where(first)}; rename one of them"
        before = self.asked.setdefault((s, r), i)
        if before != i:
            same = self.facts[before][2] == a
            yield f"{'repeats' if same else 'contradicts'} {self.where(before)}; keep one"
        else:
            yield from self._wrong_answer(i, r, a)

    def _wrong_answer(self, i: int, r: str, a: str) -> Iterator[str]:
        first = self.owner.setdefault(a, i)
        self.answers[r] += first == i
        if self.facts[first][1] != r:
            rule = f"relations may not share answers: rename one, as in {f'{a} ({r})'!r}"
            yield f"{a!r} answers another relation in {self.where(first)}; {rule}"
        elif first == i and self.D is not None and self.answers[r] > self.D:
            yield f"{a!r} is one answer too many for {r!r}, which has D={self.D}; raise D"


def too_few(facts: Sequence[Fact]) -> list[str]:
    """Whether there is nothing to learn."""
    alike = len({a for _, _, a in facts}) < 2
    return ["all facts have the same answer; add one with another answer"] if alike else []
