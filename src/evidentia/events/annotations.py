"""Strongly labelled sound: the tsv files of DESED and AudioSet-strong."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.audio_files import audio_file, read_audio
from evidentia.events.clips import Clip, Event
from evidentia.events.tables import cell_number, read_table, read_text

DESED_CLASSES = (
    "Alarm_bell_ringing",
    "Blender",
    "Cat",
    "Dishes",
    "Dog",
    "Electric_shaver_toothbrush",
    "Frying",
    "Running_water",
    "Speech",
    "Vacuum_cleaner",
)

_COLUMNS = (
    ("filename", "onset", "offset", "event_label"),  # DESED
    ("segment_id", "start_time_seconds", "end_time_seconds", "label"),  # AudioSet-strong
)


def read_strong_labels(path: str | os.PathLike[str]) -> dict[str, list[Event]]:
    r"""The events of each file that a tsv file lists.

    The columns are those of DESED (filename, onset, offset, event_label) or of AudioSet-strong (segment_id,
    start_time_seconds, end_time_seconds, label). A row with a file name only says that the file has no events.

    Raises:
        FileFormatError: if a row has the wrong number of columns, or times that are none.

    Example:
        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tsv = pathlib.Path(folder) / "labels.tsv"
        ...     rows = ["filename onset offset event_label", "a.wav 0.5 1.25 Dog", "b.wav   "]
        ...     _ = tsv.write_text("\n".join("\t".join(row.split(" ")) for row in rows))
        ...     read_strong_labels(tsv)
        {'a.wav': [Event(label='Dog', onset=0.5, offset=1.25)], 'b.wav': []}
    """
    rows = read_table(path, "\t")
    header = tuple(rows[0][1])
    if header not in _COLUMNS:
        raise FileFormatError(
            f"{path} must begin with the columns {', '.join(_COLUMNS[0])} or {', '.join(_COLUMNS[1])}, separated by "
            f"tabs, got {', '.join(header)[:200]}"
        )
    found: dict[str, list[Event]] = {}
    for line, row in rows[1:]:
        if len(row) != 4 or not row[0]:
            raise FileFormatError(f"line {line} of {path} must have a file name and three more columns, got {row}")
        events = found.setdefault(row[0], [])
        if any(row[1:]):
            onset, offset = parse_times(row[1], row[2], f"line {line} of {path}")
            if not row[3]:
                raise FileFormatError(f"line {line} of {path} has an event without a label")
            events.append(Event(row[3], onset, offset))
    return found


def load_strong(
    labels: str | os.PathLike[str] | Mapping[str, Sequence[Event]],
    folder: str | os.PathLike[str],
    *,
    classes: Iterable[str] | None = None,
    names: Mapping[str, str] | None = None,
    rate: int = 16_000,
    limit: int | None = None,
    skip_missing: bool = False,
) -> list[Clip]:
    """Clips of DESED or AudioSet-strong: a tsv file, and the folder with the sound.

    Args:
        labels: the tsv file, or what `read_strong_labels` made of it.
        folder: where the sound files are; those of AudioSet are named by their segment id.
        classes: keep events of these classes only, and clips that have any of them; all clips if None.
        names: what to call each label of the file, such as `Ontology.names` for AudioSet's ids.
        rate: resample to this rate.
        limit: load the first so many clips only.
        skip_missing: leave out clips whose sound is not in the folder, as happens with videos that are gone.

    Example:
        >>> load_strong({}, "nowhere")
        []
    """
    table = labels if isinstance(labels, Mapping) else read_strong_labels(labels)
    wanted = None if classes is None else set(classes)
    clips: list[Clip] = []
    for name, listed in table.items():
        if limit is not None and len(clips) >= limit:
            break
        renamed = [Event((names or {}).get(label, label), onset, offset) for label, onset, offset in listed]
        events = [event for event in renamed if wanted is None or event.label in wanted]
        if wanted is not None and not events:
            continue
        try:
            samples, found = read_audio(audio_file(folder, name), rate)
        except FileNotFoundError:
            if skip_missing:
                continue
            raise
        duration = len(samples) / found
        # Annotators may mark what begins with the last sample; nothing of it can be heard.
        heard = [event._replace(offset=min(event.offset, duration)) for event in events if event.onset < duration]
        clips.append(Clip(samples, found, tuple(heard), name))
    return clips


@dataclass(frozen=True)
class Ontology:
    """AudioSet's classes: what their ids mean, and which are kinds of which.

    Attributes:
        names: the name of each id.
        children_of: the ids right below each id.
    """

    names: Mapping[str, str]
    children_of: Mapping[str, tuple[str, ...]]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Ontology:
        """Read AudioSet's `ontology.json`."""
        try:
            entries = json.loads(read_text(path))
            names = {str(entry["id"]): str(entry["name"]) for entry in entries}
            children = {str(entry["id"]): tuple(map(str, entry["child_ids"])) for entry in entries}
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise FileFormatError(
                f"{path} must be a JSON list of classes with id, name and child_ids, as AudioSet's ontology.json is "
                f"({error!r})"
            ) from error
        return cls(names, children)

    def children(self, name: str) -> tuple[str, ...]:
        """The names of the classes right below the one of that name: the thesis' Explosion, Alarm, Liquid, Engine.

        Example:
            >>> Ontology({"a": "Engine", "b": "Idling"}, {"a": ("b",), "b": ()}).children("Engine")
            ('Idling',)
        """
        ids = [key for key, value in self.names.items() if value == name]
        if not ids:
            raise EvidentiaError(f"the ontology has no class named {name!r}")
        return tuple(self.names[child] for child in self.children_of.get(ids[0], ()) if child in self.names)


def parse_times(onset: str, offset: str, where: str, decimal: str = ".") -> tuple[float, float]:
    """Onset and offset in seconds."""
    try:
        begin, end = cell_number(onset, decimal), cell_number(offset, decimal)
    except ValueError as error:
        raise FileFormatError(f"{where} must give onset and offset in seconds, got {onset!r} and {offset!r}") from error
    if not 0 <= begin < end < math.inf:
        raise FileFormatError(f"{where} has an event from {begin:g} s to {end:g} s; it must end after it begins")
    return begin, end
