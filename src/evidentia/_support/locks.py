"""Locks on files, which the system lets go of when their holder ends, however that comes about."""

from __future__ import annotations


def lock_file(handle: int, *, wait: bool = True) -> bool:
    """Lock an open file until it is closed, or this process ends.

    Args:
        handle: of the file.
        wait: for another process to let go of it.

    Returns:
        Whether it is locked now. It is not if another process has it, or the system has no such locks (Windows).

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     lock_file(file.fileno())
        True
    """
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if wait:
            raise
        return False
    return True
