"""Methods in words: what a broken-off run is known by, and what a saved classifier is restored from."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

from torch import Tensor, nn

from evidentia._support.errors import EvidentiaError
from evidentia.learning.checkpoint import digest
from evidentia.semisup.augmentation import Augmentation, Distortion, Noise, Shift
from evidentia.semisup.objectives import OBJECTIVES
from evidentia.semisup.regulariser import WeightRegulariser
from evidentia.semisup.robust import ROBUST
from evidentia.semisup.uncertainty import UNCERTAINTIES


def words(part: object) -> str:
    """How a method shows itself, the same in every run: without addresses in memory.

    A user's own functions in an augmentation are followed by a hash of their code, of the plain values and tensors that
    they close over, and of their defaults. What they look up elsewhere, as global variables and other functions, is
    not seen; and another version of Python has other code. Classes of one's own are known by their `repr` alone, or by
    their `__call__` and attributes if they have none.

    Example:
        >>> words(Augmentation(Noise(0.1)))
        'Augmentation(weak=Noise(std=0.1), strong=Noise(std=0.1))'
        >>> words(Augmentation(lambda x: x)) == words(Augmentation(lambda x: -x))
        False
    """
    shown = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part))
    code = [line for change in part.changes for line in _code(change)] if isinstance(part, Augmentation) else []
    return f"{shown} {hashlib.sha256(repr(code).encode()).hexdigest()}" if code else shown


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
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part))
    shown = []
    for entry in fields(part):
        value = getattr(part, entry.name)
        usual = entry.default if entry.default_factory is MISSING else entry.default_factory()
        # By their words, as methods do not compare.
        if entry.init and entry.repr and repr(value) != repr(usual):
            shown.append(f"{entry.name}={brief(value)}")
    return f"{type(part).__name__}({', '.join(shown)})"


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
    return {kind.__name__: kind for kind in (*found, WeightRegulariser, Augmentation, Noise, Shift, Distortion)}


def _code(change: object, seen: frozenset[int] = frozenset()) -> Iterator[object]:
    """What a user's function does, as far as it can be read; nothing where its `repr` says it all.

    Args:
        change: a function, or anything else.
        seen: what is being read already, as a function may close over itself.
    """
    if id(change) in seen:
        return
    seen |= {id(change)}
    if isinstance(change, FunctionType):
        # Ours are known by their names.
        if change.__module__ != Augmentation.__module__:
            yield change.__qualname__
            yield from _instructions(change.__code__)
            closed = inspect.getclosurevars(change).nonlocals
            yield [_value(each, seen) for each in (closed, change.__defaults__, change.__kwdefaults__)]
    elif isinstance(change, partial):
        yield from _code(change.func, seen)
    elif isinstance(change, MethodType):
        yield from _code(change.__func__, seen)
        yield _value(getattr(change.__self__, "__dict__", None), seen)
    elif isinstance(change, nn.Module):
        yield digest(change.state_dict().values())
    elif type(change).__repr__ is object.__repr__ and hasattr(change, "__dict__"):
        yield from _code(type(change).__call__, seen)
        yield _value(vars(change), seen)


def _instructions(code: CodeType) -> Iterator[object]:
    yield code.co_code
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)
        else:
            # The order of a set differs from run to run.
            yield sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)


def _value(value: object, seen: frozenset[int]) -> object:
    """A value as far as it is plain; of anything else the kind, as its `repr` may differ from run to run."""
    if isinstance(value, str | bytes | int | float | None):
        return repr(value)
    if isinstance(value, tuple | list):
        return [_value(each, seen) for each in value]
    if isinstance(value, dict):
        return [(str(key), _value(each, seen)) for key, each in value.items()]
    if isinstance(value, Tensor):
        return digest([value])
    return [type(value).__qualname__, *_code(value, seen)]
