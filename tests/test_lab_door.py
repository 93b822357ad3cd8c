"""Who comes into the lab: its token is in no process list and can be changed; it answers to its own address only."""

import json
import socket
import stat
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from playwright.sync_api import Browser
from websockets.exceptions import ConnectionClosed

import pages
from engram.cli.main import main
from engram.lab import browser as way_in
from engram.lab.mailbox import Mailbox
from engram.lab.server import FORBIDDEN
from lab import Served, served

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def status(lab: Served, path: str, **headers: str) -> int:
    with closing(HTTPConnection(lab.host, lab.port, timeout=60)) as connection:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status


def engram_lab(monkeypatch: pytest.MonkeyPatch, *words: str, meanwhile: Callable[[], Any] = lambda: None) -> int:
    """`engram lab` whose server only does something meanwhile; the exit code."""
    monkeypatch.setattr("engram.lab.server.serve", lambda *_: meanwhile())
    with pytest.raises(SystemExit) as end:
        main(["lab", *words])
    return int(end.value.code or 0)


def test_the_browser_is_given_a_private_file_and_never_the_token(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[str] = []
    found: list[tuple[int, int, str]] = []

    def look(address: str) -> bool:
        path = Path(unquote(urlparse(address).path))
        file, folder = (stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent))
        found.append((file, folder, path.read_text()))
        given.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", look)
    assert engram_lab(monkeypatch, meanwhile=lambda: pages.wait(lambda: given)) == 0
    token, url = Mailbox(home).token(), capsys.readouterr().out.split()[1]
    assert token in url, "a person can still copy it"
    assert given[0].startswith("file://")
    assert token not in given[0]
    assert found[0][:2] == (0o600, 0o700)
    assert url in found[0][2]
    assert not Path(unquote(urlparse(given[0]).path)).parent.exists(), "nothing stays when the lab ends"


def test_the_file_for_the_browser_goes_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way_in, "SECONDS_TO_OPEN", 0.2)
    given: list[str] = []
    monkeypatch.setattr(webbrowser, "open", given.append)
    with way_in.opened("http://127.0.0.1:1/?token=secret", tmp_path):
        pages.wait(lambda: given)
        pages.wait(lambda: not list(tmp_path.iterdir()))


def test_the_file_leads_a_browser_to_the_page(lab: Served, browser: Browser, tmp_path: Path) -> None:
    with way_in.redirect(f"{lab.url}#run=a&b", tmp_path) as file:
        tab = browser.new_page()
        tab.goto(file.as_uri())
        tab.wait_for_url("http://127.0.0.1*/**")
        assert tab.url.startswith(lab.url)
        assert tab.evaluate("document.referrer") == ""
        tab.close()


def test_a_new_token_shuts_out_old_pages_at_once(tmp_path: Path) -> None:
    with served(tmp_path / "runs") as lab, lab.page() as page:
        old = lab.token
        new = Mailbox(lab.home).new_token()
        with pytest.raises(ConnectionClosed) as closed:
            page.hear("nothing", timeout=60)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == FORBIDDEN == 4403
        assert status(lab, f"/?token={old}") == 403
        assert lab.token == new != old
        assert status(lab, f"/?token={new}") == 200
        with lab.page() as again:
            assert again.runs()["runs"] == []
        assert stat.S_IMODE((lab.home / "lab" / "token").stat().st_mode) == 0o600


def test_without_a_token_nobody_comes_in(tmp_path: Path) -> None:
    with served(tmp_path / "runs") as lab:
        old = lab.token
        for content in (None, "", "short"):
            (lab.home / "lab" / "token").unlink(missing_ok=True)
            if content is not None:
                (lab.home / "lab" / "token").write_text(content)
            for given in ("", "short", old):
                assert status(lab, f"/?token={given}") == 403


def test_the_command_makes_a_new_token(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = Mailbox(home).token()
    assert engram_lab(monkeypatch, "--no-browser") == 0
    assert old in capsys.readouterr().out
    assert engram_lab(monkeypatch, "--no-browser", "--new-token") == 0
    told = capsys.readouterr().out
    assert old not in told
    assert Mailbox(home).token() in told
    assert engram_lab(monkeypatch, "--stop", "--new-token") == 2
    assert "--new-token" in capsys.readouterr().err


def test_another_host_is_refused(lab: Served) -> None:
    """A name of a stranger that leads here (DNS rebinding) is not the lab's, whatever the token."""
    path = f"?token={lab.token}"
    own = [f"127.0.0.1:{lab.port}", f"localhost:{lab.port}", f"LOCALHOST:{lab.port}", f"[::1]:{lab.port}"]
    foreign = [
        f"evil.example:{lab.port}",
        "127.0.0.1",
        "localhost",
        f"127.0.0.1:{lab.port + 1}",
        "",
        "[",
        "::1",
        "\xff",
    ]
    foreign += [f"127.0.0.1:{lab.port}@evil.example", f"localhost.evil.example:{lab.port}", f"evil.example#:{lab.port}"]
    assert [status(lab, f"/{path}", Host=host) for host in own] == [200] * len(own)
    assert [status(lab, f"/ws{path}", Host=host, **UPGRADE) for host in own] == [101] * len(own)
    for address in (f"/{path}", "/", "/nowhere"):
        assert {host: status(lab, address, Host=host) for host in foreign} == dict.fromkeys(foreign, 403)
    assert {host: status(lab, f"/ws{path}", Host=host, **UPGRADE) for host in foreign} == dict.fromkeys(foreign, 403)


def test_another_origin_is_refused(lab: Served) -> None:
    path, here = f"/ws?token={lab.token}", f"127.0.0.1:{lab.port}"
    for origin in ("null", "http://evil.example", f"https://{here}", f"http://localhost:{lab.port}", "http://[", ""):
        assert status(lab, path, Origin=origin, **UPGRADE) == 403, origin
    assert status(lab, path, Origin=f"http://{here}", **UPGRADE) == 101


@contextmanager
def ipv6() -> Iterator[None]:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 on this machine")
    yield


def test_an_address_of_ipv6_is_served(tmp_path: Path) -> None:
    with ipv6(), served(tmp_path / "runs", host="::1") as lab:
        assert lab.url.startswith(f"http://[::1]:{lab.port}/?token=")
        assert status(lab, f"/?token={lab.token}") == 200
        assert status(lab, f"/?token={lab.token}", Host=f"evil.example:{lab.port}") == 403
        assert status(lab, f"/ws?token={lab.token}", Origin="http://[::2]", **UPGRADE) == 403
        with lab.page(Origin=f"http://[::1]:{lab.port}") as page:
            assert page.runs()["runs"] == []


def test_any_address_of_this_machine_is_served_where_all_are_asked_for(tmp_path: Path) -> None:
    with served(tmp_path / "runs", host="0.0.0.0") as lab:
        path = f"/?token={lab.token}"
        assert status(lab, path) == status(lab, path, Host=f"127.0.0.1:{lab.port}") == 200
        assert (
            status(lab, path, Host=f"evil.example:{lab.port}") == status(lab, path, Host=f"8.8.8.8:{lab.port}") == 403
        )


@pytest.mark.parametrize("host", ["::1", "[::1]", "localhost"])
def test_the_url_names_the_host(
    host: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ipv6():
        assert engram_lab(monkeypatch, "--no-browser", "--json", "--host", host) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["url"].startswith(f"http://{'[::1]' if ':' in host else host}:")
    assert told.err == "", "this machine alone: no warning"


BAD = [("--port", port, "1 to 65535") for port in ("0", "65536", "99999", "9" * 30)]
BAD += [("--port", "-5", "whole number"), ("--host", "nonsense", "127.0.0.1"), ("--host", "a..b", "127.0.0.1")]
BAD += [("--host", "192.0.2.1", "127.0.0.1"), ("--host", " ", "127.0.0.1"), ("--host", "::1::2", "127.0.0.1")]


@pytest.mark.parametrize(("option", "value", "allowed"), BAD)
def test_ports_and_hosts_that_cannot_be(
    option: str,
    value: str,
    allowed: str,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert engram_lab(monkeypatch, "--no-browser", option, value) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("engram: ")
    assert option in err
    assert allowed in err
    assert "unexpected" not in err


def test_a_port_that_is_taken(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert engram_lab(monkeypatch, "--no-browser", "--port", str(port)) == 2
    assert f"--port {port}" in capsys.readouterr().err
