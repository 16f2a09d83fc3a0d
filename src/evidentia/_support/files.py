"""Files that are written whole or not at all, and that can run no code when they are read.

One file holds tensors (safetensors) and, in its header, a JSON manifest: format version, kind, content and a
SHA-256 digest over everything. One file rather than a pair, because only a single rename is atomic.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia._version import __version__

FORMAT_VERSION = 1
_MANIFEST_KEY = "evidentia"


class Manifest(BaseModel):
    """The JSON that travels in the header of every evidentia file."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["evidentia"] = "evidentia"
    format_version: int
    kind: str
    evidentia_version: str
    content: dict[str, Any]
    sha256: str


def write_atomically(path: str | Path, write: Callable[[Path], None]) -> None:
    """Call `write` with a temporary path beside `path`, then rename it into place.

    A crash, a full disk or an exception leaves whatever stood at `path` before untouched. A link goes on leading to
    its file, and a device or a pipe, such as /dev/null, is written to and stays what it is.
    """
    path = Path(path)
    _check_no_folder(path)
    if _is_device(path):
        _write_to_device(path, write)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name may be as long as the system allows, and leaves no room for all of it and more.
    part = path.with_name(f".{path.name[:32]}.{secrets.token_hex(4)}.part")
    # Made as an ordinary write makes files, for the permissions that this one is to have.
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        mode = (path if path.exists() else part).stat().st_mode
        write(part)
        # safetensors and matplotlib replace or reopen the file, so sync by path rather than by handle.
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(stat.S_IMODE(mode))
        part.replace(path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
        # Of a disk that is full, the system does not say which file is meant.
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise


def _write_to_device(path: Path, write: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part"
        write(part)
        with part.open("rb") as whole, path.open("wb") as device:
            shutil.copyfileobj(whole, device)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all."""

    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8")

    write_atomically(path, write)


def check_writable(path: str | Path) -> None:
    """See that a file could be written, before the work whose result it is to hold; no trace is left.

    Raises:
        EvidentiaError: if a folder has that name, or no file can be made where it is to stand.
    """
    path = Path(path)
    try:
        _check_no_folder(path)
        if _is_device(path):
            return
        path = Path(os.path.realpath(path))
        place = next(folder for folder in path.absolute().parents if folder.exists())
        # Permissions do not tell: the superuser has them all, even where the file system takes no files.
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise EvidentiaError(f"{path} cannot be written ({error.strerror}); give a file in another folder") from error


def _is_device(path: Path) -> bool:
    """Whether a path is of a device or a pipe, in whose place a renamed file would stand for good."""
    return path.exists() and not path.is_file()


def _check_no_folder(path: Path) -> None:
    if path.is_dir():
        raise EvidentiaError(f"a file is to be written, but {path} is a folder; give the name of a file in it")


def save_tensors(path: str | Path, kind: str, tensors: Mapping[str, Tensor], content: dict[str, Any]) -> None:
    """Save tensors and JSON-able `content` as an evidentia file of the given `kind`."""
    # Tensors may share memory or be strided views, neither of which safetensors stores.
    stored = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}
    try:
        # What will be read back, with tuples as lists and keys as strings.
        content = json.loads(json.dumps(content, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise EvidentiaError(f"the description of a {kind} must be plain JSON: {error}") from error
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        kind=kind,
        evidentia_version=__version__,
        content=content,
        sha256=_digest(__version__, kind, content, stored),
    )
    metadata = {_MANIFEST_KEY: manifest.model_dump_json()}

    def write(part: Path) -> None:
        try:
            save_file(stored, part, metadata=metadata)
        except SafetensorError as error:
            raise OSError(f"{path} cannot be written: {error}") from error

    write_atomically(path, write)


def load_tensors(path: str | Path, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Load what `save_tensors` wrote: tensors on the CPU, and the content.

    Raises:
        FileFormatError: if the file is truncated, tampered with, of another kind or of another version.
        FileNotFoundError: if there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise FileFormatError(
            f"{path} is not a readable safetensors file ({error}); it may be truncated: save or copy it again"
        ) from error
    manifest = _read_manifest(path, metadata)
    if manifest.kind != kind:
        raise FileFormatError(f"{path} is of another kind: needed is {kind!r}, got {manifest.kind!r}")
    if manifest.sha256 != _digest(manifest.evidentia_version, kind, manifest.content, tensors):
        raise FileFormatError(f"{path} does not match its checksum: it was changed after it was saved")
    return tensors, manifest.content


def _read_manifest(path: Path, metadata: Mapping[str, str]) -> Manifest:
    if _MANIFEST_KEY not in metadata:
        raise FileFormatError(f"{path} is a safetensors file, but evidentia did not write it (no manifest)")
    try:
        raw = json.loads(metadata[_MANIFEST_KEY])
        version = raw["format_version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileFormatError(f"the manifest of {path} is damaged: {error!r}") from error
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has format version {version!r}; evidentia {__version__} reads version {FORMAT_VERSION}: "
            "use the release that wrote it, or save it again with this one"
        )
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        raise FileFormatError(f"the manifest of {path} is damaged: {error}") from error


def _digest(version: str, kind: str, content: dict[str, Any], tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps([version, kind, content], sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        if tensor.numel():  # an empty tensor may have strides that cannot be viewed
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
