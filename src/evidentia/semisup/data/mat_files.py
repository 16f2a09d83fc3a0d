"""Arrays of numbers in MATLAB files of version 5, read with every length checked.

SciPy's reader is compiled code that trusts the file: a damaged one can end the whole process. This one knows no more
than SVHN's files need: arrays of numbers at the top level, compressed or not.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}

# Numeric classes of MATLAB: the type that an array has, whatever smaller one its numbers are stored in.
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


def read_mat(payload: bytes, largest: int) -> dict[str, npt.NDArray[Any]]:
    """The numeric arrays of a file by their names.

    Args:
        payload: the whole file.
        largest: the most bytes that an array may unpack to.

    Raises:
        ValueError: if it is not such a file, or damaged.
    """
    if len(payload) < _HEADER or payload[124:128] not in (b"\x00\x01IM", b"\x01\x00MI"):
        raise ValueError("it does not start as a MATLAB file of version 5")
    order = "<" if payload[126:128] == b"IM" else ">"
    arrays = {}
    for kind, content in _unpacked(_elements(payload[_HEADER:], order), order, largest):
        if kind == _MATRIX:
            name, array = _array(content, order)
            arrays[name] = array
    return arrays


def _unpacked(parts: Iterator[tuple[int, bytes]], order: str, largest: int) -> Iterator[tuple[int, bytes]]:
    for kind, content in parts:
        if kind != _COMPRESSED:
            yield kind, content
            continue
        unpacker = zlib.decompressobj()
        try:
            unpacked = unpacker.decompress(content, largest)
        except zlib.error as error:
            raise ValueError(f"a compressed part is damaged: {error}") from error
        if not unpacker.eof:
            raise ValueError(f"a compressed part is cut off, or larger than {largest:,} bytes")
        yield from _elements(unpacked, order)


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """The parts that some bytes are made of: the number of each one's type, and its content."""
    place = 0
    while place < len(content):
        if len(content) - place < 8:
            raise ValueError("it ends within a part")
        kind, size = struct.unpack_from(f"{order}II", content, place)
        if kind >> 16:  # a small part, with its content in the place of its size
            start, size, end = place + 4, kind >> 16, place + 8
            kind &= 0xFFFF
        else:
            start = place + 8
            end = start + (size if kind == _COMPRESSED else -(-size // 8) * 8)
        if start + size > len(content) or (place + 8 == end and size > 4 and start == place + 4):
            raise ValueError("a part says that it is longer than the file")
        yield kind, content[start : start + size]
        place = end


def _array(content: bytes, order: str) -> tuple[str, npt.NDArray[Any]]:
    parts = list(_elements(content, order))
    if len(parts) < 4:
        raise ValueError("an array lacks its flags, shape, name or numbers")
    (_, flags), (_, sizes), (_, name), (kind, numbers) = parts[:4]
    if len(flags) != 8 or len(sizes) % 4 or kind not in _NUMBERS:
        raise ValueError("it holds something that is not an array of real numbers")
    described = struct.unpack(f"{order}I", flags[:4])[0]
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    stored = np.dtype(f"{order}{_NUMBERS[kind]}")
    if described & 0xFF not in _CLASSES or described & 0x800 or len(parts) > 4:
        raise ValueError("it holds something that is not an array of real numbers")
    if min(shape, default=0) < 0 or math.prod(shape) * stored.itemsize != len(numbers):
        raise ValueError(f"an array has the shape {shape}, which its numbers do not fill")
    array = np.frombuffer(numbers, stored).reshape(shape, order="F")
    return name.decode("latin1"), array.astype(_CLASSES[described & 0xFF])
