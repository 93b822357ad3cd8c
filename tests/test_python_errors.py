"""What a person types wrongly in Python is told in one sentence, as on the command line."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import engram
from engram.runner.execute import execute
from engram.specs import Train

CALLS = {
    "engram.sweep(r.spec, {'model.d': 32})": "model.d: give a list of values, as in [16, 32]",
    "engram.sweep(r.spec, {'model.d': '32'})": "model.d: give a list of values",
    "engram.sweep(r.spec, {'plan.optimiser': engram.SGD(lr=1)})": "plan.optimiser: give a list",
    "engram.sweep(r.spec, None)": '{"task.K": [1, 3, 5]}',
    "engram.sweep(r.spec, ['model.d'])": "sweep: name at least one field",
    "engram.sweep(None, {'model.d': [8]})": "sweep: give an experiment's name or a Spec",
    "engram.sweep(r.spec, {'model.d': [8]}, seeds=0)": "seeds: at least one",
    "engram.sweep(r.spec, {'model.d': [8]}, metrics='loss')": 'as in ["loss"]',
    "engram.run('memory.margin', seeds=None)": "seeds: say how many, or which",
    "engram.run('memory.margin', seeds=1.5)": "seeds: say how many, or which",
    "engram.run('memory.margin', seeds='3')": "seeds: say how many, or which",
    "engram.run(r.spec, settings='model.d=3')": 'as in {"task.K": 3}',
    "engram.run(r.spec, settings={3: 3})": 'as in {"task.K": 3}',
    "engram.run(r.spec, snapshots=-1)": "snapshots: must be a whole number of at least 1",
    "engram.load(3)": "load: give a run's id, a part of it, or 'last'; got 3",
    "engram.read_model(3)": "read_model: give a folder, a file or a name",
    "engram.predict(None)": "memory: unknown None",
    "engram.predict('hebb', pairs='x')": "pairs: must be a number; got 'x'",
    "engram.probe(5)": "probe: give a folder, a name, a run or a Network; got 5",
    "engram.probe(r.model())": "engram.network_of(model)",
    "engram.probe(r, 'heads', seeds='x')": "seeds: say how many, or which",
    "engram.probe(r, 3)": "probe: no part 3; allowed: heads",
    "engram.probe(r, 'heads', prompt=3)": "prompt: must be a text; got 3",
    "engram.probe(r, 'heads', start='999')": "start: must be one token",
    "engram.patch(r.model(), 'hello', 'head')": 'as in [("head", 1)]',
    "engram.patch(r.model(), 'hello', ('head', 1))": 'as in [("head", 1)]',
    "engram.patch(r.model(), 'hello', [('head', '1')])": "places: ",
    "engram.patch(r.model(), 'hello', [('heads', 1)])": "no part 'heads' in layer 1; did you mean head?",
    "engram.patch(None, 'hello', [('head', 1)])": "a Model, such as record.model",
    "engram.patch(r.model(), 'a b', [('head', 1)], source=3)": "a Model, such as record.model",
    "engram.patch(r.model(), 'hello', [('head', 1)], source_tokens='he')": "equally many tokens",
    "r.model('x')": "step: must be a whole number; got 'x'",
    "r.model(1.5)": "step: must be a whole number; got 1.5",
    "r.memories('x')": "step: must be a whole number; got 'x'",
    "r.column(3)": "has no column 3",
    "r.encode(3)": "text: must be a text; got 3",
    "r.decode([999])": "tokens: 999 is not in the vocabulary, which has 65",
    "r.decode([-1])": "tokens: -1 is not in the vocabulary",
    "engram.figure(None)": "figure: give the name of an experiment",
    "engram.figure('memory.margin', 3)": "output: must be a path; got 3",
    "engram.figure('memory.margin', width='wide')": "width 'wide': write 2in to 20in",
    "engram.network_of(3)": "a Model, such as record.model",
    "engram.show_lab(3)": "load: give a run's id",
    "r.model().without(3)": "3: no such matrix",
    "r.model()('hello').top('x')": "k: must be a whole number of at least 1",
}
FINE = {  # what people write, too
    "engram.sweep(r.spec, {'model.d': np.array([16])}).table[0]['seeds']": "1",
    "engram.sweep(r.spec, {'model.d': range(16, 17)}).table[0]['seeds']": "1",
    "engram.load(r.folder).id == r.id": "True",
    "engram.probe(r, 'heads', seeds=1, report='heads.html') and Path('heads.html').exists()": "True",
}
ASKED = """
import json, sys
from pathlib import Path
import numpy as np
import engram

def told(call):
    try:
        return str(eval(call))
    except engram.EngramError as error:
        return f"EngramError {error}"
    except Exception as error:
        return f"{type(error).__name__} {error}"

r = engram.load("last")
print(json.dumps({call: told(call) for call in json.loads(sys.argv[1])}))
"""


def test_what_is_wrong_is_told_in_one_sentence(tiny: Callable[..., Train], home: Path, tmp_path: Path) -> None:
    """In a Python of its own: here types are checked at every call, which nobody's notebook does."""
    execute(tiny(steps=2), home)
    asked = [sys.executable, "-c", ASKED, json.dumps([*CALLS, *FINE])]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path)
    told = json.loads(answer.stdout.splitlines()[-1])
    for call, says in CALLS.items():
        assert told[call].startswith("EngramError "), (call, told[call])
        assert says in told[call], (call, told[call])
        assert "\n" not in told[call]
    assert {call: told[call] for call in FINE} == FINE


def test_a_name_that_engram_lacks_has_a_nearest_one() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Trian'; did you mean Train\?"):
        _ = engram.Trian  # type: ignore[attr-defined]
