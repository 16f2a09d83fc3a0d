"""Files fetched from a data set's own home: checked before they are kept, written whole or not at all."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from collections.abc import Callable
from pathlib import Path

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._support.files import write_atomically
from evidentia._version import __version__

TIMEOUT = 30.0
LARGEST = 512 * 2**20


def cache_folder() -> Path:
    """Where downloads are kept: `$EVIDENTIA_CACHE`, else `$XDG_CACHE_HOME/evidentia`, else `~/.cache/evidentia`."""
    if named := os.environ.get("EVIDENTIA_CACHE"):
        return Path(named).expanduser()
    if (shared := os.environ.get("XDG_CACHE_HOME")) and Path(shared).is_absolute():
        return Path(shared) / "evidentia"
    return Path.home() / ".cache" / "evidentia"


def fetch(url: str, path: Path, check: Callable[[bytes], None], *, timeout: float = TIMEOUT) -> bytes:
    """Download `url` to `path` and return what it holds, after `check` has passed on it.

    Args:
        url: where the file is.
        path: where to keep it; nothing is written unless everything arrived and passed.
        check: called with the bytes; raises if they are not what is wanted.
        timeout: seconds to wait for the server, each time that it is silent.

    Raises:
        EvidentiaError: if the server cannot be reached or refuses, the file is too large, or it cannot be written.
    """
    payload = _get(url, timeout)
    check(payload)

    def write(part: Path) -> None:
        part.write_bytes(payload)

    try:
        write_atomically(path, write)
    except OSError as error:
        raise EvidentiaError(
            f"{url} was downloaded, but cannot be kept as {path} ({error}); "
            "set the environment variable EVIDENTIA_CACHE to a folder that can be written"
        ) from error
    return payload


def _get(url: str, timeout: float) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": f"evidentia/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            # One byte more than is allowed tells a file that is too large from one that just fits.
            payload: bytes = response.read(LARGEST + 1)
            if response.length and len(payload) <= LARGEST:
                raise http.client.IncompleteRead(payload, response.length)
    # urllib's own errors and time-outs are OSErrors; a reply that is not HTTP is not.
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise EvidentiaError(
            f"{url} could not be downloaded ({reason}); if this machine is offline, fetch the file elsewhere and "
            "give its folder as data_root"
        ) from error
    if len(payload) > LARGEST:
        raise EvidentiaError(f"{url} is larger than {LARGEST // 2**20} MiB, which no data set here is: not kept")
    return payload


def sha256(payload: bytes) -> str:
    """The digest that a file is known by, unless something in it says more."""
    return hashlib.sha256(payload).hexdigest()


def kept_or_fetched(url: str, path: Path, digest: str, digest_of: Callable[[bytes], str] = sha256) -> bytes:
    """What `path` holds if it has that digest, else what `fetch` brings, which must have it."""

    def check(payload: bytes) -> None:
        if (found := digest_of(payload)) != digest:
            raise FileFormatError(
                f"what {url} holds does not match its checksum (SHA-256 {found}, but {digest} is right): it was "
                "changed, or cut short on the way; nothing was kept"
            )

    if path.is_file():
        payload = path.read_bytes()
        try:
            check(payload)
        except FileFormatError:
            pass
        else:
            return payload
    return fetch(url, path, check)
