"""A study that is a Python file of the user's: its text goes to the workers, wherever they are."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.jobs import JobFunction


@dataclass(frozen=True)
class StudySource:
    """The text of a Python file that sets `study`.

    Attributes:
        path: where it was read, for messages.
        text: what stands there.
    """

    path: str
    text: str

    def study(self) -> Any:
        """Run the text, once a process, and return its `study`.

        Raises:
            EvidentiaError: if it does not run, or sets no `study`.
        """
        module = _run(self)
        if not hasattr(module, "study"):
            raise EvidentiaError(f"{self.path} sets no `study`; end it with: study = Study(...)")
        return module.study

    def job(self) -> JobFunction:
        """The function of its study's job."""
        function: JobFunction = self.study().function
        return function


@lru_cache(maxsize=16)
def _run(source: StudySource) -> ModuleType:
    module = ModuleType(f"evidentia_study_{abs(hash(source.path)):x}")
    module.__file__ = source.path
    # Dataclasses and pydantic look the module up by its name.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source.text, source.path, "exec"), module.__dict__)
    except Exception as error:
        line = _line_in(error, source.path)
        raise EvidentiaError(f"{source.path}{line} does not run: {type(error).__name__}: {error}") from error
    return module


def _line_in(error: Exception, path: str) -> str:
    if isinstance(error, SyntaxError):
        return f", line {error.lineno},"
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f", line {line},"
