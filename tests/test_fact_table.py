"""Tables of facts as people keep them: what is plainly meant is read, and all mistakes are told at once, by line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.errors import EngramError
from engram.tasks.facts import OwnFacts
from engram.tasks.table import MOST_TOLD, BadTable, mistakes_in, too_few

ROWS = (("France", "capital", "Paris"), ("Japan", "capital", "Tokyo"), ("France", "currency", "euro"))
BODY = "France,capital,Paris\nJapan,capital,Tokyo\nFrance,currency,euro\n"
MEANT = {
    "commas": f"subject,relation,answer\n{BODY}",
    "header in capitals": f"SUBJECT,Relation,Answer\n{BODY}".rstrip(),
    "spaces": " Subject , relation,\tanswer \nFrance , capital, Paris\n Japan,capital,Tokyo\nFrance,currency,euro \n",
    "semicolons": f"Subject;Relation;Answer\n{BODY}".replace(",", ";"),
    "tabs": f"subject,relation,answer\n{BODY}".replace(",", "\t"),
    "other columns": 'answer,note,subject,relation\nParis,"a, b",France,capital\n'
    "Tokyo,,Japan,capital\neuro,,France,currency",
    "blank lines": f"\nsubject,relation,answer\n\n,,\n{BODY}\n  \n\n",
    "a spreadsheet": f"\ufeffsubject,relation,answer\n{BODY}".replace(",", ";").replace("\n", ";\r\n"),
    "quotation marks": f'"subject","relation","answer"\n{BODY}'.replace("capital", '"capital"'),
}


def table(folder: Path, text: str) -> Path:
    path = folder / "facts.csv"
    path.write_bytes(text.encode())
    return path


def mistakes(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(BadTable) as told:
        OwnFacts.read(table(folder, text))
    assert all(mistake in str(told.value) for mistake in told.value.mistakes[:MOST_TOLD])
    return told.value.mistakes


@pytest.mark.parametrize("text", MEANT.values(), ids=MEANT)
def test_what_is_plainly_meant_is_read(text: str, tmp_path: Path) -> None:
    assert OwnFacts.read(table(tmp_path, text), T=8) == OwnFacts(facts=ROWS, T=8)


def test_a_separator_inside_of_a_name_is_part_of_it(tmp_path: Path) -> None:
    rows = "subject;relation;answer\nUlm;motto;In Ulm, um Ulm\nRom;motto;veni, vidi\n"
    assert [fact[2] for fact in OwnFacts.read(table(tmp_path, rows)).facts] == ["In Ulm, um Ulm", "veni, vidi"]


GUESSED = {
    "another answer": ("subject,relation,object\n", "its columns (subject, relation, object) are read as subject, rel"),
    "another language": ("sujet;relation;réponse;\n", "its columns (sujet, relation, réponse) are read as subject, re"),
    "no word known": ("S\tP\tO\n", "its columns (S, P, O) are read as subject, relation, answer"),
    "no header": (
        "",
        "it has no header; its first line (France, capital, Paris) is a fact, and its columns are ",
    ),
}


@pytest.mark.parametrize(("head", "says"), GUESSED.values(), ids=GUESSED)
def test_three_columns_are_guessed_and_told(head: str, says: str, tmp_path: Path) -> None:
    separator = next((sign for sign in ";\t" if sign in head), ",")
    with pytest.warns(UserWarning, match=re.escape(says)):
        assert OwnFacts.read(table(tmp_path, head + BODY.replace(",", separator))).facts == ROWS


def test_known_columns_stay_where_they_are(tmp_path: Path) -> None:
    rows = "\n".join(f"{r},{s},{a}" for s, r, a in ROWS)
    with pytest.warns(UserWarning, match="are read as relation, subject, answer"):
        assert OwnFacts.read(table(tmp_path, f"relation,subject,object\n{rows}")).facts == ROWS


def test_the_command_tells_what_it_guessed(tmp_path: Path, said: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = said("fact", "learn", str(table(tmp_path, f"a,b,c\n{BODY}Peru,capital\n")))
    assert code == 2
    assert err.startswith("its columns (a, b, c) are read as subject, relation, answer\nline 5 (Peru, capital): three")


def test_a_guess_is_no_mistake(tmp_path: Path, said: Callable[..., tuple[int, str, str]]) -> None:
    _, _, err = said("fact", "learn", str(table(tmp_path, f"a,b,c\n{BODY}Peru,capital\n")))
    assert "facts.csv: 1 mistake, listed above; fix it and run" in err


WIDE = "country,capital,currency\nFrance,Paris,Euro\nSpain,Madrid,Euro\nPeru,Lima,Sol\n"


@pytest.mark.parametrize("head", ["country,capital,currency", "subject,capital,currency"])
def test_a_column_for_each_relation_is_not_read_as_facts(head: str, tmp_path: Path) -> None:
    """Of so many relations as lines nothing can be learned: they are answers."""
    (why,) = mistakes(tmp_path, WIDE.replace("country,capital,currency", head))
    assert f"write a line for each fact instead: {head.split(',')[0]}, capital, its value" in why


BAD_LINES = f"subject,relation,answer\n{BODY}Peru,,Lima\nJapan,capital,Kyoto\nSpain,capital\n"


def test_lines_with_mistakes_are_left_out_where_this_is_wanted(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"line 6 .*contradicts line 3(.|\n)*: 3 lines left out, as listed above"):
        assert OwnFacts.read(table(tmp_path, BAD_LINES), skip_bad=True).facts == ROWS
    with pytest.raises(BadTable, match="nothing below"):
        OwnFacts.read(table(tmp_path, "subject,relation,answer\n"), skip_bad=True)


def test_the_command_says_which_lines_it_left_out(tmp_path: Path, said: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = said("fact", "learn", str(table(tmp_path, BAD_LINES)), "--skip-bad", "--steps", "1")
    assert code == 0
    assert "facts.csv: 3 lines left out, as listed above\n" in err


def test_all_mistakes_are_told_at_once_by_line(tmp_path: Path) -> None:
    text = """Subject,Relation,Answer
France,capital,Paris

France,capital,Lyon
Japan,capital
Spain,capital,Madrid,a town
Spain,currency,Paris
Peru,,Lima
France,capital,Paris
capital,currency,sol
"""
    shared = "relations may not share answers: rename one, as in 'Paris (currency)'"
    assert mistakes(tmp_path, text) == (
        "line 4 (France, capital, Lyon): contradicts line 2; keep one",
        "line 5 (Japan, capital): three values are needed: subject, relation, answer",
        "line 6 (Spain, capital, Madrid, a town): 4 values for 3 columns; "
        "put a name that has a comma in quotation marks",
        f"line 7 (Spain, currency, Paris): 'Paris' answers another relation in line 2; {shared}",
        "line 8 (Peru, , Lima): its relation is empty; fill it in, or remove the line",
        "line 9 (France, capital, Paris): repeats line 2; keep one",
        "line 10 (capital, currency, sol): 'capital' is a subject here and a relation in line 2; rename one of them",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty; its first line must be: subject, relation, answer"),
        ("subject,relation,answer\n", "has nothing below its first line"),
        ("subject,relation,answer\na,r,x\nb,r,x\n", "all facts have the same answer; add one with another answer"),
        ("subject,answer\na,b\n", "no column relation; its first line has: subject, answer"),
        ("Subjekt;relation;answer;x\na;b;c;d\n", "no column subject (did you mean Subjekt?); its first line has"),
        (
            "a,b\nc,d\n",
            "name them subject, relation, answer, in any order, or give exactly three columns",
        ),
        (
            "Land;Hauptstadt;Währung;Sprache\nPeru;Lima;Sol;\n",
            "with a column for each relation, write a line for each fact instead: Land, Hauptstadt, its value",
        ),
        ("subject,Subject,relation,answer\na,b,c,d\n", "two columns are called subject"),
        ('subject,relation,answer\na,r,"x\nb,r,y\n', "line 2 (a, r, x b,r,y): a quotation mark is not closed"),
    ],
)
def test_a_table_that_is_none_says_why(text: str, says: str, tmp_path: Path) -> None:
    assert any(says in mistake for mistake in mistakes(tmp_path, text)), mistakes(tmp_path, text)


def test_other_letters_than_utf8_are_told_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_bytes("subject,relation,answer\nPerú,capital,Lima\n".encode("latin-1"))
    with pytest.raises(EngramError, match=r"cannot be read as CSV .*save it as UTF-8"):
        OwnFacts.read(tmp_path / "old.csv")


NAMES = st.text("abcXYZ ,;\"'é", min_size=1, max_size=6).map(str.strip).filter(bool)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=6), st.sampled_from(",;\t"))
def test_python_and_the_table_find_the_same_mistakes(
    tmp_path_factory: pytest.TempPathFactory, facts: list[tuple[str, str, str]], separator: str
) -> None:
    """Whatever the names are, once they are quoted: the same facts, or the same mistakes under the numbers of lines."""
    quoted = [separator.join('"' + name.replace('"', '""') + '"' for name in fact) for fact in facts]
    head = separator.join(("subject", "relation", "answer"))
    path = table(tmp_path_factory.getbasetemp(), "\n".join([head, *quoted]))
    senseless = mistakes_in(facts, lambda i: f"line {i + 2}")
    expected = [why for _, why in senseless] or too_few(facts)
    if expected:
        assert list(mistakes(path.parent, path.read_text())) == expected
        with pytest.raises(EngramError):
            OwnFacts(facts=tuple(facts))
    else:
        assert OwnFacts.read(path) == OwnFacts(facts=tuple(facts))


def test_the_command_tells_each_mistake_on_a_line_of_its_own(
    tmp_path: Path, said: Callable[..., tuple[int, str, str]]
) -> None:
    path = table(tmp_path, "subject,relation,answer\n" + "".join(f"s{i},r\n" for i in range(MOST_TOLD + 5)))
    code, out, err = said("fact", "learn", str(path))
    *lines, last = err.splitlines()
    assert (code, out, len(lines)) == (2, "", MOST_TOLD + 1)
    assert lines[0] == "line 2 (s0, r): three values are needed: subject, relation, answer"
    assert lines[-1] == "… and 5 more"
    again = "fix them and run the same command again, or leave these lines out with --skip-bad"
    assert last == f"engram: {path}: 25 mistakes, listed above; {again}"


def test_a_run_on_a_table_says_what_it_was_made_for(
    home: Path, tmp_path: Path, said: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, err = said("fact", "learn", str(table(tmp_path, BODY)), "--steps", "2")
    assert code == 0, err
    assert "facts.csv: it has no header; its first line (France, capital, Paris) is a fact" in err
    listed = said("runs", "ls")[1]
    assert "fact learn · facts.csv  steps=2" in listed
    assert "accuracy " in listed
    said("run", "birth.joint", "--scale", "smoke")  # another `last`, but not one on facts
    assert "need more than half of the way from chance" in said("fact", "see", "last", "France", "capital")[1]
