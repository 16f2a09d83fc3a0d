"""A headless Chromium for tests of pages: driven by the DevTools protocol over a pipe, so that nothing is installed.

Debian has it as the package `chromium`, which the continuous integration installs; `EVIDENTIA_CHROMIUM` may name
another one. Without a browser these tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--no-first-run", "--hide-scrollbars"),
    *("--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"),
)
# The browser reads from 3 and writes to 4; copies are made first, as one of the two may be in the way.
START = """
import fcntl, os, sys
copies = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, copy in zip((3, 4), copies):
    os.dup2(copy, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """One page of a browser: what it says, what went wrong in it, and what it asked the network for."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._buffer = 0, b""
        self.events: list[dict[str, Any]] = []
        target = self._send("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._send(method, parameters, self._session)

    def open(self, file: Path, *, width: int = 1200, dark: bool = False) -> None:
        """Show a file, and wait until it is loaded with all its pictures."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.send("Page.navigate", url=file.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._note(self._read())

    def run(self, script: str) -> Any:
        """The value of an expression; promises are waited for."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    @property
    def problems(self) -> list[str]:
        """What the console says of errors and warnings."""
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                found.append(json.dumps(parameters["args"]))
        return found

    @property
    def requests(self) -> list[str]:
        """What was asked for beyond the page itself and what it holds."""
        asked = [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [address for address in asked if not address.startswith(("data:", "file:"))]

    def _send(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {} if session is None else {"sessionId": session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self.events.append(message)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has closed its pipe"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a headless Chromium."""
    program = os.environ.get("EVIDENTIA_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium to open pages in; install one (Debian: apt-get install chromium)")
    to_browser, from_browser = os.pipe(), os.pipe()
    command = [program, *ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]
    ends = to_browser[0], from_browser[1]
    process = subprocess.Popen(
        [sys.executable, "-c", START, *map(str, ends), *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=ends,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Page(to_browser[1], from_browser[0])
    finally:
        process.terminate()
        process.wait(30)
        os.close(to_browser[1])
        os.close(from_browser[0])
