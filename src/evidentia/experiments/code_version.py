"""Which code a job runs: results of other code are other results.

A job's code is the module that it stands in and every module of evidentia that this one imports, directly or not. So a
change to the graphs' code leaves the results on dirty pools standing. Comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from evidentia._support.errors import EvidentiaError
from evidentia._version import __version__

_PACKAGE = "evidentia"
_FOLDER = Path(__file__).parents[1]
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

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
    own = _parsed(source)
    found: dict[str, str] = {}
    waiting = list(own.imports)
    while waiting:
        module = waiting.pop()
        file = _file(module)
        if module not in found and file is not None:
            parsed = _parsed(file.read_text(encoding="utf-8"))
            found[module] = parsed.statements
            waiting += parsed.imports
    digest = hashlib.sha256(own.statements.encode())
    for module in sorted(found):
        digest.update(f"\0{module}\0{found[module]}".encode())
    return digest.hexdigest()[:12]


class _Parsed(NamedTuple):
    """What of a source decides what it does."""

    statements: str
    imports: tuple[str, ...]


# Jobs share most of what they import.
@lru_cache(maxsize=1024)
def _parsed(source: str) -> _Parsed:
    imports: list[str] = []
    with _PARSING:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # A name that is imported may be a module.
            imports += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return _Parsed(ast.dump(tree), tuple(imports))


def _file(module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != _PACKAGE:
        return None
    place = _FOLDER.joinpath(*rest)
    return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()), None)
