"""The report of studies in a browser: it opens without a complaint, every figure is drawn, tables sort and filter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evidentia.experiments import Beside, Comparison, Pictures, Study, StudyStore, StudyTable, plan_study, study_table
from evidentia.experiments.job import Outcome
from evidentia.reports import Report, graphs, study_pictures, study_report

if TYPE_CHECKING:
    from conftest import Page

# Of a few clips, not every class is in those to train on, nor in those to calibrate on.
pytestmark = [
    pytest.mark.filterwarnings("ignore:no training clip has an event of"),
    pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event of"),
]

GRAPHS = Study(
    name="graphs", title="Graphs & <classes>", job="graph", unit="%", fixed={"task": "misclassification"},
    axes={"data": ["cora", "citeseer"], "method": ["s-bgcn-t-k", "dropedge"]},
    metrics=["auroc.entropy", "aupr.entropy"], seeds=3,
    beside=Beside(table="graph-dropedge", row="{data}/{method}", runs=10),
    compare=Comparison(axis="method", against="s-bgcn-t-k"),
)  # fmt: skip
POOLS = Study(
    name="pools", title="Pools", job="semisup", unit="%", fixed={"data": "two-moons", "ood": "faraway"},
    axes={"robust": ["none", "uncertainty"], "ratio": [0.25, 0.5, 0.75]}, metrics=["accuracy"], seeds=3,
)  # fmt: skip

NETWORKS = [
    Study(
        name="nodes", title="Nodes", job="graph", metrics=["accuracy"], pictures=Pictures(),
        fixed={"task": "ood", "epochs": 3, "method": "s-gcn"}, axes={"data": ["synthetic", "cora"]},
    ),
    Study(
        name="moons", title="Moons", job="semisup", metrics=["accuracy"], pictures=Pictures(),
        fixed={"data": "two-moons", "objective": "pi-model", "robust": "oracle", "ood": "boundary", "updates": 5},
    ),
    Study(
        name="digits", title="Digits", job="semisup", metrics=["accuracy"], pictures=Pictures(),
        fixed={"data": "digits", "objective": "pi-model", "robust": "oracle", "ood": "held-out", "updates": 2},
    ),
    Study(
        name="events", title="Events", job="events", metrics=["macro_f1"], pictures=Pictures(),
        fixed={"data": "synthetic", "clips": 4, "held_out": 4, "epochs": 1, "method": "mtenn-wbc"},
    ),
]  # fmt: skip


def made_table(study: Study, folder: Path) -> StudyTable:
    """A table of numbers that were never trained for, a different one for each job."""
    plan = plan_study(study)
    with StudyStore(folder / f"{study.name}.sqlite") as store:
        store.add(plan.jobs.values())
        for number, key in enumerate(plan.jobs):
            assert store.claim(key)
            score = 0.70 + 0.011 * ((7 * number) % 13)
            metrics = {
                "auroc.entropy": score,
                "aupr.entropy": score + 0.1,
                "accuracy": score,
                "w_in": 0.9,
                "w_ood": 0.1,
            }
            store.finish(Outcome(key, metrics, cpu_seconds=1.0 + number, environment={"torch": "2"}))
        return study_table(plan, store)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "report.html"
    study_report([made_table(GRAPHS, folder), made_table(POOLS, folder)]).save(path)
    return path


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every kind of picture of networks, small and wide ones, and one that failed."""
    folder = tmp_path_factory.mktemp("networks")
    report = Report("Networks")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVIDENTIA_CACHE", str(folder))
        # Two hidden units in place of t-SNE, which takes seconds.
        patch.setattr(graphs, "_in_the_plane", lambda tsne, hidden, seed: hidden[:, :2].numpy())
        for study in NETWORKS:
            report.section(study.title)
            made = study_pictures(plan_study(study, seeds=1), folder, progress=False)
            assert made is not None
            made.add_to(report)
    report.save(folder / "networks.html")
    return folder / "networks.html"


def column(table: int, heading: str) -> str:
    """A script that gives the texts of a column of a table, as far as rows are shown."""
    return (
        f"(() => {{ const t = document.querySelectorAll('table.sorted')[{table}];"
        f"const c = [...t.tHead.rows[0].cells].findIndex(h => h.textContent.trim() === '{heading}');"
        "return [...t.tBodies[0].rows].filter(r => r.offsetParent !== null).map(r => r.cells[c].textContent); })()"
    )


def click(table: int, heading: str) -> str:
    return (
        f"[...document.querySelectorAll('table.sorted')[{table}].querySelectorAll('th button')]"
        f".find(b => b.textContent.trim() === '{heading}').click()"
    )


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_opens_without_a_complaint_and_every_figure_is_drawn(
    page: Page, report: Path, width: int, dark: bool
) -> None:
    page.open(report, width=width, dark=dark)
    pictures = page.run(
        "Promise.all([...document.images].map(i => i.decode().then(() => [i.naturalWidth, i.clientWidth, i.alt])))"
    )
    # Two graphs with two kinds of metric each, one pool over the ratio, two panels of weights, and times of both.
    assert len(pictures) >= 7
    assert all(natural > 100 and shown > 100 and alt for natural, shown, alt in pictures)
    assert page.problems == []
    assert page.requests == []
    # Nothing sticks out: tables that are too wide scroll by themselves.
    assert page.run("document.documentElement.scrollWidth") <= width
    ground = page.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    shown = page.run("document.querySelector('picture img').currentSrc")
    other = page.run("document.querySelector('picture source').srcset")
    assert (shown == other) == dark


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pictures_of_networks_are_drawn_on_any_screen(page: Page, networks: Path, width: int, dark: bool) -> None:
    page.open(networks, width=width, dark=dark)
    pictures = page.run(
        "Promise.all([...document.images].map(i => i.decode().then(() => [i.naturalWidth, i.clientWidth, i.alt])))"
    )
    # Maps and two curves of a graph; boundary, gallery and weights of pools; curve, bars and clip of events.
    assert len(pictures) == 9 + 2 + 2 + 3
    assert all(natural > 100 and shown > 100 and alt for natural, shown, alt in pictures)
    assert page.problems == []
    assert page.requests == []
    assert page.run("document.documentElement.scrollWidth") <= width
    # Wide ones keep their size on a phone and scroll by themselves; small ones stand beside each other where they can.
    wide = page.run(
        "[...document.querySelectorAll('.wide')].map(f => [f.querySelector('img').clientWidth, f.clientWidth])"
    )
    assert len(wide) == 3
    assert all(shown >= 700 and (shown > room) == (width < 400) for shown, room in wide)
    tops = page.run("[...document.querySelectorAll('.small figure')].map(f => f.offsetTop)")
    assert len(tops) == 7
    assert len(set(tops)) == (2 if width > 400 else 7)
    # Points are a picture inside the drawing, which the page's policy must let through: their colours are there.
    colours = page.run(
        "(async () => { const i = document.querySelector('.small img'); await i.decode();"
        "const c = document.createElement('canvas'); c.width = 300; c.height = 250;"
        "const p = c.getContext('2d'); p.drawImage(i, 0, 0, 300, 250);"
        "const d = p.getImageData(0, 0, 300, 250).data, s = new Set();"
        "for (let k = 0; k < d.length; k += 4) if (d[k + 3] > 200 && Math.max(d[k], d[k + 1], d[k + 2]) -"
        " Math.min(d[k], d[k + 1], d[k + 2]) > 60) s.add((d[k] >> 5) + ',' + (d[k + 1] >> 5) + ',' + (d[k + 2] >> 5));"
        "return s.size; })()"
    )
    assert colours > 3
    assert "There is no picture of cora: " in page.run("document.body.textContent")


def test_a_column_is_sorted_by_number_and_back(page: Page, report: Path) -> None:
    page.open(report)
    # The first table is the overview.
    before = page.run(column(1, "difference"))
    page.run(click(1, "difference"))
    rising = [float(text) for text in page.run(column(1, "difference"))]
    assert rising == sorted(rising)
    assert [float(text) for text in before] != rising
    page.run(click(1, "difference"))
    assert [float(text) for text in page.run(column(1, "difference"))] == rising[::-1]
    page.run(click(1, "method"))
    assert page.run(column(1, "method")) == ["dropedge"] * 4 + ["s-bgcn-t-k"] * 4
    assert page.run("document.querySelectorAll('table.sorted')[1].querySelectorAll('[aria-sort]').length") == 1


def test_rows_are_filtered_by_choice_and_by_words(page: Page, report: Path) -> None:
    page.open(report)
    bar = "document.querySelectorAll('.filters')[1]"
    choose = f"(() => {{ const s = {bar}.querySelector('select'); s.value = 'cora';"
    page.run(choose + "s.dispatchEvent(new Event('change')); })()")
    assert page.run(column(1, "data")) == ["cora"] * 4
    assert page.run(f"{bar}.querySelector('output').textContent") == "4 of 8 rows"
    search = f"(() => {{ const s = {bar}.querySelector('input'); s.value = 'AUPR';"
    page.run(search + "s.dispatchEvent(new Event('input')); })()")
    assert page.run(column(1, "metric")) == ["aupr.entropy"] * 2
    # A filter of one table leaves the others alone.
    assert len(page.run(column(2, "metric"))) == 2
    assert page.problems == []


def test_a_policy_keeps_the_page_from_the_network(page: Page, tmp_path: Path) -> None:
    Report("Plain").save(tmp_path / "plain.html")
    page.open(tmp_path / "plain.html")
    page.run("new Promise(done => { const i = new Image(); i.onerror = done; i.src = 'https://example.org/a.png'; })")
    assert any("Content Security Policy" in problem for problem in page.problems)
