"""Which code a job runs: results of other code are other results.

A job's code is the module that it stands in and every module of evidentia that this one imports, directly or not. So a
change to the graphs' code leaves the results on dirty pools standing.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia._version import __version__

_PACKAGE = "evidentia"
_FOLDER = Path(__file__).parents[1]

# Python 3.11 cannot parse in two threads at once: one of them fails with a SystemError.
_PARSING = threading.Lock()


def code_version(function: Callable[..., Any], source: str | None = None) -> str:
    """The version of evidentia and a digest of the code behind a function.

    Args:
        function: the job.
        source: the text of the file in which it is defined, if that is not a module.

    Raises:
        EvidentiaError: if the source of the function is not to be had.

    Example:
        >>> from evidentia.experiments.jobs import JOBS
        >>> code_version(JOBS["graph"]) == code_version(JOBS["semisup"])
        False
    """
    if source is None:
        try:
            file = inspect.getsourcefile(function)
            source = Path(file).read_text(encoding="utf-8") if file and Path(file).exists() else None
            source = source or inspect.getsource(function)
        except (OSError, TypeError) as error:
            name = getattr(function, "__name__", repr(function))
            raise EvidentiaError(f"the source of the job {name} is not to be had; define it in a file") from error
    return f"{__version__}+{_digest(source)}"


@lru_cache(maxsize=64)
def _digest(source: str) -> str:
    found: dict[str, str] = {}
    waiting = list(_imports(source))
    while waiting:
        module = waiting.pop()
        file = _file(module)
        if module not in found and file is not None:
            found[module] = file.read_text(encoding="utf-8")
            waiting += _imports(found[module])
    digest = hashlib.sha256(source.encode())
    for module in sorted(found):
        digest.update(f"\0{module}\0{found[module]}".encode())
    return digest.hexdigest()[:12]


# Jobs share most of what they import.
@lru_cache(maxsize=1024)
def _imports(source: str) -> tuple[str, ...]:
    found: list[str] = []
    with _PARSING:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # A name that is imported may be a module.
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(found)


def _file(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != _PACKAGE:
        return None
    place = _FOLDER.joinpath(*rest)
    return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()), None)
