"""`evidentia demo`: what the library does, on bundled data, in under two minutes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import torch
from rich.console import Console

from evidentia._support.files import check_writable
from evidentia._support.progress import progress_bar
from evidentia._version import __version__
from evidentia.cli.figures import titled_table
from evidentia.experiments.code_version import code_version
from evidentia.experiments.digits import GROUPS, TASKS, digits_split, run_digits
from evidentia.experiments.digits_summary import (
    accuracy_line,
    claims,
    score_rows,
    triage_rows,
    uncertainty_rows,
)
from evidentia.experiments.events_demo import HEADER as EVENTS_HEADER
from evidentia.experiments.events_demo import events_demo, events_steps
from evidentia.experiments.graph_demo import graph_rows, graph_steps
from evidentia.experiments.job import environment
from evidentia.experiments.semisup_demo import moons_demo, moons_steps
from evidentia.reports.digits import Part, write_digits_report
from evidentia.reports.events_demo import events_figures
from evidentia.reports.semisup_demo import moons_figures
from evidentia.reports.study import machine_words

GRAPH_SEEDS = range(3)
GRAPH_TITLE = "A citation-like graph of 1,500 nodes (AUROC, mean ± sd over 3 graphs)"
GRAPH_HEADER = ("score", "AUROC", "accuracy")
MOONS_SEEDS = range(3)
MOONS_TITLE = "Two moons, 6 labels, half of the pool of no class (mean ± sd over 3 seeds)"
MOONS_HEADER = ("training", "accuracy", "w_in / w_ood")
EVENTS_SEEDS = range(3)
EVENTS_TITLE = "A stream of sound, 4 classes, held to 1 false alarm a minute (mean ± sd over 3 seeds)"


def run_demo(out: Path, seeds: Sequence[int]) -> None:
    """Run the built-in experiments, print their tables and write the report."""
    check_writable(out / "report.html")
    # Networks this small are slowed down, not sped up, by more threads, above all on a busy machine.
    torch.set_num_threads(1)
    console = Console()
    start = time.monotonic()
    split = digits_split(seeds[0])
    console.rule("[bold]evidentia: how unsure is a network, and why?")
    console.print(
        f"Handwritten digits: {len(split.train[0])} training images of {len(split.digits)} digits; the other "
        f"{10 - len(split.digits)} digits are never shown. {len(seeds)} random splits, two networks each."
    )
    with _progress("digits", len(seeds)) as advance:
        runs = run_digits(seeds, after_each=lambda _: advance())

    console.print(f"\nTest accuracy: {accuracy_line(runs)}.")
    _print_table(
        console, "How unsure the evidential network is (mean)", ("uncertainty", *GROUPS), uncertainty_rows(runs)
    )
    _print_table(console, "What each score finds (AUROC, mean ± sd over splits)", ("score", *TASKS), score_rows(runs))
    _print_table(
        console, "What to do with each image (triage at 90% coverage)", ("verdict", *GROUPS), triage_rows(runs)
    )
    console.print()
    for claim in claims(runs):
        mark = {"above": "[green]✓[/]", "below": "[red]✗[/]"}.get(claim.verdict, "[yellow]≈[/]")
        console.print(f" {mark} {claim}", highlight=False)

    console.rule("[bold]graphs: which nodes are wrong, which were never seen?")
    with _progress("graphs", graph_steps(GRAPH_SEEDS)) as advance:
        nodes = graph_rows(GRAPH_SEEDS, after_each=advance)
    _print_table(console, GRAPH_TITLE, GRAPH_HEADER, nodes)

    console.rule("[bold]a dirty unlabeled pool: what to learn from, what to throw out?")
    with _progress("two moons", moons_steps(MOONS_SEEDS)) as advance:
        moons = moons_demo(MOONS_SEEDS, after_each=advance)
    _print_table(console, MOONS_TITLE, MOONS_HEADER, moons.rows)

    console.rule("[bold]a live stream: which event is beginning, and how early can it be called?")
    with _progress("events", events_steps(EVENTS_SEEDS)) as advance:
        stream = events_demo(EVENTS_SEEDS, after_each=advance)
    console.print(f"{stream.clip.duration:g} s of sound, pushed in chunks of 50 ms, gave:")
    for detection in stream.detections:
        what = detection.label if detection.level == "alarm" else "something is beginning"
        late = "" if detection.delay is None else f", {detection.delay:.2f} s after its onset"
        belief = f"belief {float(detection.opinion.belief):.2f}"
        console.print(f"{detection.time:8.3f} s  {detection.level:<7}  {what}, {belief}{late}", highlight=False)
    console.print("[dim]misses too: the delay if an event that was missed counts up to its end[/]")
    _print_table(console, EVENTS_TITLE, EVENTS_HEADER, stream.rows)

    further = {
        GRAPH_TITLE: Part(GRAPH_HEADER, nodes),
        MOONS_TITLE: Part(MOONS_HEADER, moons.rows, moons_figures(moons)),
        EVENTS_TITLE: Part(EVENTS_HEADER, stream.rows, events_figures(stream)),
    }
    files = write_digits_report(runs, out, further, _origin(seeds, time.monotonic() - start))
    console.print(f"\nWritten in {time.monotonic() - start:.0f} s:")
    for path in files:
        console.print(f"  {path}", highlight=False, markup=False, emoji=False)
    console.print("Open the report in a browser; it needs no network.")


def _origin(seeds: Sequence[int], seconds: float) -> list[tuple[str, str]]:
    """What the report says of where its figures come from."""
    drawn = {"digits": seeds, "graphs": GRAPH_SEEDS, "two moons": MOONS_SEEDS, "events": EVENTS_SEEDS}
    return [
        ("command", f"evidentia demo --seeds {len(seeds)} --first-seed {seeds[0]}"),
        ("evidentia", __version__),
        ("code", code_version(run_demo)),
        ("seeds", "; ".join(f"{what} {', '.join(map(str, used))}" for what, used in drawn.items())),
        ("time", f"{seconds:.0f} s"),
        ("machine", machine_words(environment())),
    ]


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar that stays, and what moves it on by a step."""
    steps = count(1)
    with progress_bar(what, total, stays=True) as advance:
        yield lambda: advance(next(steps), "")


def _print_table(console: Console, title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = titled_table(title, header)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)
