"""Studies of one's own: a small TOML or Python file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia.experiments.study import Study
from evidentia.experiments.study_source import StudySource

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def load_study(path: str | Path) -> Study:
    r"""Read a study from a file.

    A `.toml` file has the arguments of `Study` by name. A `.py` file ends with `study = Study(...)`, and may define the
    job's function; it is run, here and by every worker.

    Args:
        path: of the file.

    Raises:
        EvidentiaError: if it is not there, cannot be read, or is no study.

    Example:
        >>> import tempfile
        >>> text = 'name = "mine"\ntitle = "Mine"\njob = "graph"\nmetrics = ["accuracy"]\naxes.data = ["cora"]'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = (Path(folder) / "mine.toml").write_text(text)
        ...     load_study(Path(folder) / "mine.toml").cells()[0].configuration
        {'data': 'cora'}
    """
    path = Path(path)
    if path.suffix not in (".toml", ".py"):
        raise EvidentiaError(f"a study is a .toml or a .py file, got {path}")
    if not path.is_file():
        raise EvidentiaError(f"there is no file {path}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise EvidentiaError(f"{path} is no text in UTF-8: {error}") from error
    study = _from_toml(path, text) if path.suffix == ".toml" else _from_python(path, text)
    return study.model_copy(update={"file": str(path)})


def _from_toml(path: Path, text: str) -> Study:
    try:
        settings: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise EvidentiaError(f"{path} is no TOML: {error}") from error
    for name in ("source", "file"):
        if name in settings:
            raise EvidentiaError(f"{path}: there is no setting {name!r} in a study")
    try:
        return Study(**settings)
    except EvidentiaError as error:
        raise EvidentiaError(f"{path}: {error}") from error


def _from_python(path: Path, text: str) -> Study:
    source = StudySource(str(path), text)
    study = source.study()
    if not isinstance(study, Study):
        raise EvidentiaError(f"`study` in {path} must be a Study, got {type(study).__name__}")
    # A job that evidentia knows by name needs nothing of the file.
    return study if isinstance(study.job, str) else study.model_copy(update={"source": source})
