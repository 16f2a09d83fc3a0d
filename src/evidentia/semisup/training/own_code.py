"""What functions and classes of the user's own do, as far as it can be read: their code and what they hold.

A broken-off run must not go on with another method, and the `repr` of a function, or of a class that inherits it, is
the same for different ones. Our own classes are told by their `repr` alone.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from evidentia.learning.checkpoint import digest, module_digest

UNCOUNTED: Mapping[str, bool] = {"uncounted": True}
"""Metadata of a field that changes nothing of what is learnt, such as one that is told of progress."""

_OURS = "evidentia"
_LIBRARIES = {_OURS, "torch", "numpy", *sys.stdlib_module_names}
# Py_TPFLAGS_HEAPTYPE of Python's C API: set for every class that is written in Python.
_MADE_AT_RUN_TIME = 1 << 9
# What every module has: hooks, modes, and its parts, which are looked at on their own.
_OF_MODULES = frozenset(vars(nn.Module()))


def is_ours(part: type | FunctionType) -> bool:
    """Whether a class or a function is evidentia's."""
    return _package(part) == _OURS and _is_where_it_says(part)


def without_addresses(part: object) -> str:
    """How something shows itself, the same in every run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part))


def shown(part: Any) -> str:
    """The `repr` without addresses; of a dataclass also without what does not count, and of sets in one order."""
    if type(part) in _CONTAINERS:
        return _CONTAINERS[type(part)](part)
    if isinstance(part, np.generic):
        # A number of a search over `np.linspace` is the same setting as one that is written out.
        return repr(part.item())
    if not is_dataclass(part) or isinstance(part, type):
        return without_addresses(part)
    entries = {each.name: getattr(part, each.name) for each in fields(part) if each.repr}
    usual = f"{type(part).__qualname__}({', '.join(f'{name}={value!r}' for name, value in entries.items())})"
    if repr(part) != usual:
        return without_addresses(part)
    known = counted(part)
    settings = [f"{name}={shown(value) if name in known else None}" for name, value in entries.items()]
    return f"{type(part).__qualname__}({', '.join(settings)})"


_CONTAINERS: Mapping[type, Callable[[Any], str]] = {
    set: lambda part: f"{{{', '.join(sorted(map(shown, part)))}}}",
    frozenset: lambda part: f"{{{', '.join(sorted(map(shown, part)))}}}",
    list: lambda part: f"[{', '.join(map(shown, part))}]",
    tuple: lambda part: f"({', '.join(map(shown, part))}{',' if len(part) == 1 else ''})",
    dict: lambda part: f"{{{', '.join(f'{shown(key)}: {shown(value)}' for key, value in part.items())}}}",
}


def counted(part: Any) -> dict[str, object]:
    """The fields of a dataclass by which it is known: those in its `repr`, but for what only watches."""
    return {
        each.name: getattr(part, each.name) for each in fields(part) if each.repr and not each.metadata.get("uncounted")
    }


def code_of(part: object, seen: frozenset[int] = frozenset()) -> Iterator[object]:
    """What is to be known of a part beyond its `repr`; nothing where that says it all.

    Args:
        part: a function, a method, or anything else.
        seen: what is being read already, as a function may close over itself.
    """
    if id(part) in seen:
        return
    seen |= {id(part)}
    if isinstance(part, FunctionType):
        # Ours are known by their names.
        if not is_ours(part):
            yield part.__qualname__
            yield from _instructions(part.__code__)
            closed = inspect.getclosurevars(part).nonlocals
            yield [_value(each, seen) for each in (closed, part.__defaults__, part.__kwdefaults__)]
    elif isinstance(part, partial):
        yield from code_of(part.func, seen)
        yield from _inside([*part.args, *part.keywords.values()], seen)
    elif isinstance(part, MethodType):
        yield from code_of(part.__func__, seen)
        yield from _class_code(type(part.__self__), seen)
        yield _value(_attributes(part.__self__), seen)
    elif isinstance(part, type):
        yield from _class_code(part, seen)
    elif isinstance(part, nn.Module):
        yield module_digest(part)
        yield from module_code(part, seen)
    elif is_ours(type(part)):
        held = counted(part) if is_dataclass(part) else getattr(part, "__dict__", {})
        yield from _inside(list(held.values()), seen)
    elif _is_own(type(part)) or (type(part).__repr__ is object.__repr__ and hasattr(part, "__dict__")):
        yield from _class_code(type(part), seen)
        yield _value(_attributes(part), seen)
    elif isinstance(wrapped := getattr(part, "__wrapped__", None), FunctionType):
        yield from code_of(wrapped, seen)


def module_code(network: nn.Module, seen: frozenset[int] = frozenset()) -> Iterator[object]:
    """The code of layers that are the user's own, and what they hold beside tensors.

    Parameters and buffers are in the state of the network, and other tensors are as a rule what a layer has kept of its
    last batch.
    """
    for name, layer in network.named_modules():
        if _is_own(type(layer)):
            held = {key: each for key, each in vars(layer).items() if key not in _OF_MODULES}
            plain = {key: each for key, each in held.items() if not isinstance(each, Tensor) and key[-1] != "_"}
            yield name
            yield from _class_code(type(layer), seen | {id(network), id(layer)})
            yield _value(plain, seen | {id(network), id(layer)})


def _is_own(kind: type) -> bool:
    # Classes of Python itself, written in C, are often of no module.
    return _package(kind) not in _LIBRARIES or bool(kind.__flags__ & _MADE_AT_RUN_TIME and not _is_where_it_says(kind))


def _is_where_it_says(part: type | FunctionType) -> bool:
    """Whether a part is in its module: a class that is made by `type(...)` or `exec` may claim to be of another."""
    found: object = sys.modules.get(part.__module__)
    for name in part.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is part


def _package(part: object) -> str:
    # Functions that were made from text are of no module.
    return str(getattr(part, "__module__", None)).partition(".")[0]


def _inside(values: list[object], seen: frozenset[int]) -> Iterator[object]:
    """What is to be known of the entries of a part that shows itself well."""
    for value in values:
        if isinstance(value, dict):
            yield from _inside(list(value.values()), seen)
        elif isinstance(value, list | tuple):
            yield from _inside(list(value), seen)
        else:
            yield from code_of(value, seen)


def _class_code(kind: type, seen: frozenset[int]) -> Iterator[object]:
    """Methods and plain attributes of a class of the user's own, and of those that it derives from."""
    for each in kind.__mro__:
        if _is_own(each) and id(each) not in seen:
            seen |= {id(each)}
            yield each.__qualname__
            for name, member in sorted(vars(each).items()):
                parts = _parts(member)
                # Names in double underscores that are no methods are Python's own, and differ by its version.
                if any(map(callable, parts)) or not name.startswith("__"):
                    yield name
                    yield [_value(part, seen) for part in parts]


def _parts(member: object) -> list[object]:
    """The functions behind a member of a class, or what it is."""
    if isinstance(member, property):
        return [member.fget, member.fset, member.fdel]
    if isinstance(member, staticmethod | classmethod):
        return [member.__func__]
    return [member.func if isinstance(member, cached_property) else member]


def _attributes(part: object) -> dict[str, object]:
    """What an object holds, but for what it learns: names that end in an underscore, fields outside of its `repr`."""
    slots = [name for kind in type(part).__mro__ for name in _slots(kind) if hasattr(part, name)]
    held = {name: getattr(part, name) for name in slots} | dict(getattr(part, "__dict__", {}))
    left_out: set[str] = set()
    if is_dataclass(part):
        left_out = {each.name for each in fields(part)} - counted(part).keys()
    return {name: each for name, each in held.items() if name not in left_out and not name.endswith("_")}


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


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
    """A value that a function or an object holds."""
    if isinstance(value, str | bytes | int | float | None):
        return repr(value)
    if id(value) in seen:
        return type(value).__qualname__
    if isinstance(value, tuple | list | dict | set | frozenset):
        return _entries(value, seen | {id(value)})
    if isinstance(value, Tensor):
        return digest([value])
    if hasattr(value, "__array__") and not isinstance(value, type):
        return _array(np.asarray(value), seen)
    # The repr of these names an address, an object or a folder; what they do is in their code.
    name = value.__name__ if isinstance(value, ModuleType | FunctionType | MethodType) else shown(value)
    return [type(value).__qualname__, name, *code_of(value, seen)]


def _entries(values: Any, seen: frozenset[int]) -> list[object]:
    if isinstance(values, dict):
        return [(str(key), _value(each, seen)) for key, each in values.items()]
    entries = [_value(each, seen) for each in values]
    # The order of a set differs from run to run.
    return sorted(entries, key=repr) if isinstance(values, set | frozenset) else entries


def _array(array: npt.NDArray[Any], seen: frozenset[int]) -> object:
    numbers = array.dtype.kind in "biuf"
    content = hashlib.sha256(array.tobytes()).hexdigest() if numbers else _value(array.tolist(), seen)
    return [str(array.dtype), array.shape, content]
