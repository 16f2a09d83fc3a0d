"""Where a run tells how it goes: a progress bar, a file of JSON lines, TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from evidentia._support.errors import EvidentiaError
from evidentia._support.extras import from_extra
from evidentia._support.files import check_writable, write_text
from evidentia._support.progress import progress_bar
from evidentia.semisup.training.loop import Record, SemiSupervisedTraining
from evidentia.semisup.uncertainty import Progress


def check_places(settings: SemiSupervisedTraining) -> None:
    """Require that what a run is to write can be written where it is to stand, each in a place of its own."""
    checkpoint, log = settings.checkpoint, settings.log
    if checkpoint is not None and log is not None and checkpoint.resolve() == log.resolve():
        raise EvidentiaError(f"checkpoint and log are the same file, {log}; give each its own")
    events = None if settings.tensorboard is None else settings.tensorboard / "events"
    for path in (checkpoint, log, events):
        if path is not None:
            check_writable(path)


@contextmanager
def first_look(settings: SemiSupervisedTraining) -> Iterator[Progress]:
    """Give the function that is told how far a look at the pool is, before the first update.

    Its bar opens when it is told for the first time: only then is it known how many steps there are, and methods that
    look but for a moment are to show none.
    """
    with ExitStack() as stack:
        bars: list[Callable[[int, str], None]] = []

        def tell(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(progress_bar("looking at the pool", total, shown=settings.progress)))
            bars[0](done, "")

        yield tell


@contextmanager
def run_log(settings: SemiSupervisedTraining, before: Sequence[Record]) -> Iterator[Callable[[Record], None]]:
    """Open what the settings ask for, and give the function that is told of every block.

    Args:
        settings: which of them, and how many updates there are to be.
        before: what was measured before the run was broken off, to be told first.
    """
    with ExitStack() as stack:
        listeners = [stack.enter_context(_progress(settings, before))]
        if settings.log is not None:
            listeners.append(stack.enter_context(_json_lines(settings.log, before)))
        if settings.tensorboard is not None:
            listeners.append(stack.enter_context(_tensorboard(settings.tensorboard, before)))

        def tell(record: Record) -> None:
            for listener in listeners:
                listener(record)

        yield tell


@contextmanager
def _progress(settings: SemiSupervisedTraining, before: Sequence[Record]) -> Iterator[Callable[[Record], None]]:
    done = int(before[-1]["update"]) if before else 0
    with progress_bar("training", settings.updates, done=done, shown=settings.progress) as advance:
        yield lambda record: advance(int(record["update"]), _figures(record))


def _figures(record: Record) -> str:
    """What fits beside a progress bar.

    Example:
        >>> _figures({"update": 50, "loss": 1.234, "unlabeled_loss": 0.2, "weight": 0.6, "w_in": 0.91, "w_ood": 0.2})
        'loss 1.234, w_in 0.91, w_ood 0.20'
    """
    figures = [f"loss {record['loss']:.3f}"]
    names = ("w_in", "w_ood") if "w_in" in record else ("weight",)
    figures += [f"{name} {record[name]:.2f}" for name in names if name in record]
    return ", ".join(figures)


@contextmanager
def _json_lines(path: Path, before: Sequence[Record]) -> Iterator[Callable[[Record], None]]:
    """A line a block. The file is begun anew with what is known, so that a line cut off by a crash does not stay."""
    write_text(path, "".join(f"{json.dumps(record)}\n" for record in before))
    with path.open("a", encoding="utf-8") as file:

        def write(record: Record) -> None:
            file.write(f"{json.dumps(record)}\n")
            file.flush()

        yield write


@contextmanager
def _tensorboard(folder: Path, before: Sequence[Record]) -> Iterator[Callable[[Record], None]]:
    with from_extra("tensorboard", "tensorboard", "a TensorBoard log"):
        from torch.utils.tensorboard import SummaryWriter
    # A run may have been killed between its last checkpoint and what it was to write here of the same block. So that
    # block is written again, in place of what may stand there; of earlier ones only if there is no log of them.
    again = before[-1:] if any(folder.glob("events.*")) else before
    resumed: dict[str, Any] = {"purge_step": int(again[0]["update"])} if again else {}
    writer = SummaryWriter(str(folder), **resumed)

    def write(record: Record) -> None:
        for name, value in record.items():
            if name != "update":
                writer.add_scalar(name, value, int(record["update"]))
        writer.flush()

    try:
        for record in again:
            write(record)
        yield write
    finally:
        writer.close()
