"""Strongly labelled sound: the tsv files of DESED and AudioSet-strong."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evidentia._support.columns import listed
from evidentia._support.errors import EvidentiaError, FileFormatError
from evidentia.events.clips import OVERHANG, Clip, Event
from evidentia.events.data.audio_files import audio_file, read_audio
from evidentia.events.data.tables import cell_number, read_table, read_text

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
        # Editors take the tabs away that end a line.
        if len(row) not in (1, 4) or not row[0]:
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

    An event that ends after its sound is cut there; one that begins with the last sample, within a tenth of a second as
    annotations round, is left out.

    Args:
        labels: the tsv file, or what `read_strong_labels` made of it.
        folder: where the sound files are; those of AudioSet are named by their segment id.
        classes: keep events of these classes only, and clips that have any of them; all clips if None.
        names: what to call each label of the file, such as `Ontology.names` for AudioSet's ids, or for a subset of it
            `Ontology.names_below`.
        rate: resample to this rate.
        limit: load the first so many clips only.
        skip_missing: leave out clips whose sound is not in the folder, as happens with videos that are gone; at least
            one must be there.

    Raises:
        EvidentiaError: if no row has an event of one of the classes. One that `names` has is no misprint, so that
            there is a warning only, unless no row has any of them. Also if an event begins after the end of its sound.

    Example:
        >>> load_strong({}, "nowhere")
        []
    """
    given = labels if isinstance(labels, Mapping) else read_strong_labels(labels)
    called = names or {}
    table = {
        name: [Event(called.get(label, label), onset, offset) for label, onset, offset in events]
        for name, events in given.items()
    }
    wanted = _wanted(classes, table, set(called.values()))
    clips: list[Clip] = []
    missing: list[str] = []
    for name, there in table.items():
        if limit is not None and len(clips) >= limit:
            break
        events = [event for event in there if wanted is None or event.label in wanted]
        if wanted is not None and not events:
            continue
        try:
            samples, found = read_audio(audio_file(folder, name), rate)
        except FileNotFoundError:
            if skip_missing:
                missing.append(name)
                continue
            raise
        clips.append(Clip(samples, found, _within(events, len(samples) / found, name), name))
    if missing and not clips:
        raise FileNotFoundError(
            f"{folder} has none of the {len(missing)} sound files that are listed, such as {missing[0]!r}; give the "
            "folder that they are in"
        )
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

        Sounds may be labelled by what is below these; see `names_below`.

        Example:
            >>> Ontology({"a": "Engine", "b": "Idling"}, {"a": ("b",), "b": ()}).children("Engine")
            ('Idling',)
        """
        return tuple(self.names[child] for child in self._children(name))

    def names_below(self, name: str) -> dict[str, str]:
        """What to call every class below the one of that name: the child that it is, or is a kind of.

        Sounds are labelled as closely as they were known: a machine gun is no Gunshot by name, and without this it
        would count as a sound in which there is none. With it a subset of AudioSet as the thesis has them is
        `load_strong(tsv, folder, classes=ontology.children("Explosion"), names=ontology.names_below("Explosion"))`.

        A class that is under several of the children goes to the first in the ontology's order; a child goes to itself,
        also where it is under another one. What is labelled by the name itself is of no child, and is left out.

        Returns:
            The name of the child for the id of each class, the children among them.

        Example:
            >>> names = {"a": "Explosion", "b": "Gunshot", "c": "Machine gun", "d": "Boom", "e": "Speech"}
            >>> Ontology(names, {"a": ("b", "d"), "b": ("c",)}).names_below("Explosion")
            {'b': 'Gunshot', 'd': 'Boom', 'c': 'Gunshot'}
        """
        children = self._children(name)
        found = {child: self.names[child] for child in children}
        for child in children:
            waiting = list(self.children_of.get(child, ()))
            while waiting:
                below = waiting.pop(0)
                if below not in found:
                    found[below] = self.names[child]
                    waiting += self.children_of.get(below, ())
        return found

    def _children(self, name: str) -> list[str]:
        """The ids right below the class of that name."""
        ids = [key for key, value in self.names.items() if value == name]
        if not ids:
            raise EvidentiaError(f"the ontology has no class named {name!r}")
        return [child for child in self.children_of.get(ids[0], ()) if child in self.names]


def parse_times(onset: str, offset: str, where: str, decimal: str = ".", earliest: float = 0.0) -> tuple[float, float]:
    """Onset and offset in seconds."""
    try:
        begin, end = cell_number(onset, decimal), cell_number(offset, decimal)
    except ValueError as error:
        raise FileFormatError(f"{where} must give onset and offset in seconds, got {onset!r} and {offset!r}") from error
    if not earliest <= begin < end < math.inf:
        bound = "" if earliest == -math.inf else f", at {earliest:g} s or later"
        raise FileFormatError(f"{where} has an event from {begin:g} s to {end:g} s; it must end after it begins{bound}")
    return begin, end


def _within(events: Iterable[Event], duration: float, name: str) -> tuple[Event, ...]:
    """What can be heard of events in a sound file of so many seconds."""
    heard = []
    for label, onset, offset in events:
        if onset > duration + OVERHANG:
            raise EvidentiaError(
                f"{name}: {label!r} lasts from {onset:g} s to {offset:g} s and begins after the end of the sound, at "
                f"{duration:g} s; give times in seconds from its beginning: are these in milliseconds?"
            )
        if onset < duration:
            heard.append(Event(label, onset, min(offset, duration)))
    return tuple(heard)


def _wanted(
    classes: Iterable[str] | None, table: Mapping[str, Sequence[Event]], known: Collection[str]
) -> set[str] | None:
    """The classes to keep, seen to be in the table; None for all."""
    if classes is None:
        return None
    asked = classes if isinstance(classes, str) else list(dict.fromkeys(classes))
    if isinstance(asked, str) or not asked:
        raise EvidentiaError(f"classes must be a list of classes, such as ['Dog'], or None for all, got {asked!r}")
    there = sorted({event.label for events in table.values() for event in events})
    absent = [label for label in asked if label not in there]
    if not absent:
        return set(asked)
    told = f"no row has an event of {listed(absent)}; there are events of: {listed(there) or 'no class'}"
    if len(absent) == len(asked) or any(label not in known for label in absent):
        raise EvidentiaError(f"{told}. Name classes as the rows do, or as names= does")
    warnings.warn(told, stacklevel=3)
    return set(asked)
