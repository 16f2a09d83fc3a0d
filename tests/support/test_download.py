"""Downloads come whole and checked or not at all; the server is on this machine, so no network is needed."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

import evidentia as ev
from evidentia._support import download
from evidentia._support.download import cache_folder, fetch


@pytest.fixture
def server(serve: Callable[..., str]) -> str:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/missing":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", "100" if self.path == "/short" else "5")
            self.end_headers()
            self.wfile.write(b"hello")

    return serve(Handler)


def accept(payload: bytes) -> None:
    assert payload == b"hello"


def test_a_file_is_fetched_and_kept(server: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    assert fetch(f"{server}/file", path, accept) == b"hello"
    assert path.read_bytes() == b"hello"
    assert [child.name for child in path.parent.iterdir()] == ["file"]


def test_what_fails_its_check_is_not_kept(server: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def refuse(payload: bytes) -> None:
        raise ev.FileFormatError("wrong")

    with pytest.raises(ev.FileFormatError, match="wrong"):
        fetch(f"{server}/file", path, refuse)
    assert path.read_bytes() == b"before"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["missing", "short"])
def test_refusals_and_broken_replies_are_told(server: str, tmp_path: Path, name: str) -> None:
    with pytest.raises(ev.EvidentiaError, match=rf"{name} could not be downloaded .* data_root"):
        fetch(f"{server}/{name}", tmp_path / "file", lambda _: pytest.fail("nothing whole arrived"))
    assert not list(tmp_path.iterdir())


def test_offline_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/file"
        with pytest.raises(ev.EvidentiaError, match="could not be downloaded"):
            fetch(url, tmp_path / "file", accept)


def test_a_silent_server_is_given_up(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # takes the connection and never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/file"
        with pytest.raises(ev.EvidentiaError, match=r"could not be downloaded \(.*timed out"):
            fetch(url, tmp_path / "file", accept, timeout=0.05)


def test_a_file_that_is_too_large_is_not_kept(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LARGEST", 4)
    with pytest.raises(ev.EvidentiaError, match="larger than"):
        fetch(f"{server}/file", tmp_path / "file", accept)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_told(server: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder is needed")
    with pytest.raises(ev.EvidentiaError, match="EVIDENTIA_CACHE"):
        fetch(f"{server}/file", tmp_path / "taken" / "file", accept)


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("EVIDENTIA_CACHE")
    assert cache_folder() == tmp_path / "shared" / "evidentia"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the XDG rules say to ignore
    assert cache_folder() == tmp_path / "home" / ".cache" / "evidentia"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / "home" / ".cache" / "evidentia"
