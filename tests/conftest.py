"""Every annotation of the package is checked while tests run: shapes by jaxtyping, types by beartype."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from engram.folders import cache

if "ENGRAM_TESTS" not in os.environ:  # the first process: the others, which run the tests, share its folder
    SHARED = tempfile.TemporaryDirectory(prefix="engram-tests-")
    os.environ["ENGRAM_TESTS"] = SHARED.name
    if (cache() / "kernel").is_dir():  # compiled once
        shutil.copytree(cache() / "kernel", Path(SHARED.name) / "engram" / "kernel")
    if (cache() / "models").is_dir():  # downloaded once
        shutil.copytree(cache() / "models", Path(SHARED.name) / "engram" / "models", copy_function=os.symlink)
for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):  # what tests trust and remember is forgotten with them
    os.environ[name] = os.environ["ENGRAM_TESTS"]
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # tests run side by side: threads that wait must not spin
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # those of numpy always do, and QR takes fifty times as long
import typecheck  # noqa: E402

typecheck.check_package("engram")

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from filelock import FileLock  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from engram.adapters import Pretrained, read_model  # noqa: E402
from engram.adapters.known import to_download  # noqa: E402
from engram.cli.main import main  # noqa: E402
from engram.learning import SGD, Plan  # noqa: E402
from engram.models import Simplified  # noqa: E402
from engram.specs import Train  # noqa: E402
from engram.tasks import Bigram  # noqa: E402
from lab import Page, Served, served  # noqa: E402

hypothesis.settings.register_profile("engram", deadline=None)  # a busy machine is no counterexample
hypothesis.settings.load_profile("engram")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """The number of threads can change the last digit: every test begins with one."""
    torch.set_num_threads(1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for runs; the working directory is empty too."""
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser that asks the network for nothing of its own accord."""
    found = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("no browser in CI: `make test` should have installed one")
        pytest.skip("no chromium on this machine")
    quiet = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=quiet)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def smollm2() -> Pretrained:
    """A real language model; in CI it is downloaded, once for all processes."""
    with FileLock(Path(os.environ["ENGRAM_TESTS"]) / "smollm2.lock"):
        if to_download("smollm2") and not os.environ.get("CI"):
            pytest.skip("smollm2 is not on this computer (94 MB)")
        return read_model("smollm2", consent=True)


@pytest.fixture
def tiny() -> Callable[..., Train]:
    """A training that takes a fraction of a second."""

    def make(seed: int = 0, steps: int = 6, lr: float = 0.2, **plan: object) -> Train:
        optimiser = SGD(lr=lr, momentum=0.9, weight_decay=1e-4)
        chosen = Plan.model_validate({"optimiser": optimiser, "steps": steps, "batch": 4} | plan)
        return Train(task=Bigram(K=3, T=24), model=Simplified(d=16), plan=chosen, seed=seed)

    return make


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One lab and one trainer for all tests of a file: each starts runs of its own."""
    with served(tmp_path_factory.mktemp("lab") / "runs") as found:
        yield found


@pytest.fixture
def page(lab: Served) -> Iterator[Page]:
    with lab.page() as found:
        yield found


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command line: its exit code, and what it prints on stdout and stderr."""

    def engram(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(list(words))
        out, err = capsys.readouterr()
        return int(stop.value.code or 0), out, err

    return engram
