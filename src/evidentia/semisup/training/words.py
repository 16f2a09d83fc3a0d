"""Methods in words: what a broken-off run is known by, and what a saved classifier is restored from."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from evidentia._support.errors import EvidentiaError
from evidentia.semisup.augmentation import Augmentation, Distortion, Noise, Shift
from evidentia.semisup.objectives import OBJECTIVES
from evidentia.semisup.regulariser import WeightRegulariser
from evidentia.semisup.robust import ROBUST
from evidentia.semisup.training.own_code import code_of, is_ours, module_code, shown, without_addresses
from evidentia.semisup.uncertainty import UNCERTAINTIES


def words(part: object) -> str:
    """How a method shows itself, the same in every run: without addresses in memory.

    Where there is something of the user's own in it, a hash follows, by which `from_words` knows it too: of a
    function's code, its defaults, and the values and tensors that it closes over; of the methods of a class and of the
    attributes of the object. What these look up elsewhere, as global variables and other functions, is not seen; and
    another version of Python has other code.

    Not counted is what a method learns or is watched by: attributes whose names end in an underscore, fields with
    `repr=False`, and functions that are told of progress.

    Example:
        >>> words(Augmentation(Noise(0.1)))
        'Augmentation(weak=Noise(std=0.1), strong=Noise(std=0.1))'
        >>> words(Augmentation(lambda x: x)) == words(Augmentation(lambda x: -x))
        False
    """
    # The state of a network is known by a hash of its own.
    code = [*(module_code(part) if isinstance(part, nn.Module) else code_of(part))]
    text = shown(part)
    return f"{text} {hashlib.sha256(repr(code).encode()).hexdigest()}" if code else text


def brief(part: object) -> str:
    """A method as one would write it: its name, and the settings that differ from the usual ones.

    Example:
        >>> from evidentia.semisup import Meta
        >>> brief(Meta(scope="full")), brief(OBJECTIVES["fixmatch"]()), brief(nn.Linear(2, 3)), brief("lenet")
        ("Meta(scope='full')", 'FixMatch()', 'Linear(...)', "'lenet'")
    """
    if isinstance(part, nn.Module):
        return f"{type(part).__name__}(...)"
    if isinstance(part, Path):
        return repr(str(part))
    if not is_dataclass(part) or isinstance(part, Augmentation):
        return shown(part) if isinstance(part, np.generic) else without_addresses(part)
    settings = []
    for entry in fields(part):
        value = getattr(part, entry.name)
        usual = entry.default if entry.default_factory is MISSING else entry.default_factory()
        # By their words, as methods do not compare.
        if entry.init and entry.repr and repr(value) != repr(usual):
            settings.append(f"{entry.name}={brief(value)}")
    return f"{type(part).__name__}({', '.join(settings)})"


def from_words(text: str) -> Any:
    """The method that `words` tells of, made anew; None if it is not one of evidentia's, or holds a function.

    Nothing is run but the constructors of methods that are registered, with the plain values that are written there.

    Example:
        >>> from_words("Noise(std=0.1)"), from_words("open(file='x')")
        (Noise(std=0.1), None)
    """
    try:
        return _built(ast.parse(text, mode="eval").body)
    # A damaged file may hold any text, also one that is nested too deeply to be read.
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, EvidentiaError):
        return None


def _built(node: ast.expr) -> Any:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return ast.literal_eval(node)
    kind = _kinds().get(node.func.id)
    if kind is None:
        raise EvidentiaError(f"there is no method {node.func.id}")
    # A method also shows what it does not take, such as how all of its kind apply weights.
    taken = inspect.signature(kind).parameters
    return kind(**{str(entry.arg): _built(entry.value) for entry in node.keywords if entry.arg in taken})


def _kinds() -> dict[str, Callable[..., Any]]:
    found: list[Any] = [*OBJECTIVES.values(), *ROBUST.values(), *UNCERTAINTIES.values()]
    known = (*found, WeightRegulariser, Augmentation, Noise, Shift, Distortion)
    # One of the user's own may be registered, and have the name of one of ours.
    return {kind.__name__: kind for kind in known if is_ours(kind)}
