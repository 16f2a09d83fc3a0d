"""Pickles as Python 2 wrote them: the files of Planetoid and of CIFAR are of that kind."""

from __future__ import annotations

import io
import pickle
from typing import Any, ClassVar


class _Python2Pickler(pickle._Pickler):  # type: ignore[misc]  # the pickler in Python, whose parts can be replaced
    """Writes bytes as Python 2 wrote its strings, and the names that numpy and scipy had then."""

    dispatch: ClassVar[dict[type, Any]] = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_bytes(self, value: bytes) -> None:
        self.write(pickle.BINSTRING + len(value).to_bytes(4, "little") + value)
        self.memoize(value)

    dispatch[bytes] = save_bytes


def python2_pickle(value: Any) -> bytes:
    out = io.BytesIO()
    _Python2Pickler(out, protocol=2).dump(value)
    modern = ((b"numpy._core.multiarray", b"numpy.core.multiarray"), (b"scipy.sparse._csr", b"scipy.sparse.csr"))
    payload = out.getvalue()
    for new, old in modern:
        payload = payload.replace(b"c" + new + b"\n", b"c" + old + b"\n")
    return payload
