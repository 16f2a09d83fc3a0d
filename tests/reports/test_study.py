"""The report of studies: which pictures a table has, what they show, and what is told of where figures come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evidentia import EvidentiaError
from evidentia.experiments import StudyTable
from evidentia.experiments.published_figures import published_figure
from evidentia.experiments.study import Cell
from evidentia.experiments.study_row import PairedTest, TableRow
from evidentia.experiments.study_table import CellRuns
from evidentia.reports.study import study_report
from evidentia.reports.study_figures import study_drawings
from evidentia.reports.style import on_paper


def table(axes: dict[str, list[str]], metrics: list[str], further: tuple[str, ...] = ()) -> StudyTable:
    """A table of two axes with made-up values: the place of the cell, a tenth of it apart a seed."""
    (first, ones), (second, others) = axes.items()
    cells = [Cell({first: one, second: other}, {first: one, "shared": 3}) for one in ones for other in others]

    def rows(names: list[str] | tuple[str, ...]) -> tuple[TableRow, ...]:
        return tuple(
            TableRow(cell, name, {0: 0.1 * place, 1: 0.1 * place + 0.1}, None, None)
            for place, cell in enumerate(cells, 1)
            for name in names
        )

    return StudyTable(
        *("made", "Made up", "graph", "quick", "1", tuple(axes), (0, 1), ("evidentia study made",), "1.0", "1.0+abc"),
        jobs=2 * len(cells),
        done=2 * len(cells),
        cells=tuple(CellRuns(cell, 2, 1.5) for cell in cells),
        rows=rows(metrics),
        further=rows(further),
        environments=({"processor": "a chip", "torch": "2.13"},),
    )


METHODS = {"data": ["a", "b"], "method": ["x", "y", "z"]}


def test_without_numbers_on_an_axis_every_method_is_a_dot_with_its_spread() -> None:
    drawings = study_drawings(table(METHODS, ["auroc.vacuity", "auroc.entropy", "accuracy"]))
    assert [caption.partition(":")[0] for _, caption in drawings[:4]] == [
        "AUROC for a", "Accuracy for a", "AUROC for b", "Accuracy for b",
    ]  # fmt: skip
    (ax,) = drawings[0][0]().axes
    assert ax.get_title() == "a"
    assert [text.get_text() for text in ax.get_yticklabels()][:2] == ["x, vacuity", "x, entropy"]
    # Two metrics of three methods, and no published figure to explain.
    assert len(ax.containers) == 6
    assert not drawings[0][0]().legends


def test_published_figures_are_drawn_where_there_are_some() -> None:
    made = table(METHODS, ["accuracy"])
    figure = published_figure("graph-misclassification", "cora/gcn", "accuracy")
    made = replace(made, rows=(replace(made.rows[0], published=figure), *made.rows[1:]))
    drawn = study_drawings(made)[0][0]()
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["ours", "published"]
    hollow = [line for line in drawn.axes[0].get_lines() if line.get_marker() == "D" and len(line.get_xdata())]
    assert [line.get_xdata()[0] for line in hollow] == [81.5]


def test_over_a_numeric_axis_there_are_lines_with_bands() -> None:
    drawings = study_drawings(table({"method": ["x", "y"], "ratio": ["75", "25"]}, ["accuracy"]))
    (ax,) = drawings[0][0]().axes
    assert ax.get_xlabel() == "out of distribution, % of the pool"
    line = ax.get_lines()[0]
    assert line.get_xdata().tolist() == [25.0, 75.0]
    # Seeds of 0.2 and 0.3 for the second cell, 0.1 and 0.2 for the first.
    assert line.get_ydata().tolist() == pytest.approx([0.25, 0.15])
    assert len(ax.collections) == 2


def test_an_axis_with_one_label_is_left_out_of_panels() -> None:
    drawings = study_drawings(table({"method": ["x", "y", "z"], "ratio": ["50"]}, ["accuracy"]))
    (ax,) = drawings[0][0]().axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x", "y", "z"]
    assert len(drawings) == 2


def test_wide_spans_are_logarithmic() -> None:
    made = table({"method": ["x"], "nodes": ["1000", "64000"]}, ["seconds.train"])
    made = replace(made, rows=(made.rows[0], replace(made.rows[1], values={0: 90.0, 1: 99.0})))
    (ax,) = study_drawings(made)[0][0]().axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1000", "64000"]


def test_labels_are_taken_as_they_are() -> None:
    made = table({"method": [r"$\frac$", "<b>x</b>"], "nodes": ["1", "inf"]}, ["accuracy"])
    made = replace(made, title="<script>alert(1)</script>", failures={"<i>job</i>": "</pre><script>"})
    page = study_report([made]).html()
    assert page.count("<script>") == 1
    assert "<b>x" not in page
    assert "<i>job" not in page
    assert r"$\frac$" in page
    # Infinity is no place on an axis.
    (ax,) = study_drawings(made)[0][0]().axes
    assert [text.get_text() for text in ax.get_yticklabels()] == ["nodes 1", "inf"]


def test_weights_that_no_method_learns_are_not_drawn() -> None:
    made = table(METHODS, ["accuracy"], ("w_in", "w_ood"))
    made = replace(made, further=tuple(replace(row, values={0: 1.0, 1: 1.0}) for row in made.further))
    assert not any("Mean weights" in caption for _, caption in study_drawings(made))


def test_weights_and_early_detection_have_pictures_of_their_own() -> None:
    captions = [caption for _, caption in study_drawings(table(METHODS, ["accuracy"], ("w_in", "w_ood")))]
    assert sum("Mean weights of the pool" in caption for caption in captions) == 2
    drawings = study_drawings(table({"data": ["a"], "window": ["4", "2", "1"]}, ["macro_f1", "delay"]))
    ((draw, _),) = [entry for entry in drawings if "F1 over delay" in entry[1]]
    path = draw().axes[0].get_lines()[0]
    # Joined in the order of the window, not of the table.
    assert path.get_xdata().tolist() == pytest.approx([0.35, 0.25, 0.15])


@pytest.mark.parametrize(
    ("metric", "unit", "caption", "scale"),
    [
        ("macro_f1", "1", "Macro F1 for a", "macro F1"),
        ("auroc.vacuity", "%", "AUROC in % for a", "AUROC, %"),
        ("false_alarms_per_minute", "1", "False alarms per minute for a", "false alarms per minute"),
        ("w_in", "1", "w_in for a", "w_in"),
        ("nDCG", "1", "nDCG for a", "nDCG"),
    ],
)
def test_captions_spell_metrics_as_sentences_do(metric: str, unit: str, caption: str, scale: str) -> None:
    draw, text = study_drawings(replace(table(METHODS, [metric]), unit=unit))[0]
    assert text.startswith(f"{caption}: mean and standard deviation over seeds")
    assert draw().axes[0].get_xlabel() == scale


def test_a_drawing_follows_the_paper() -> None:
    draw = study_drawings(table(METHODS, ["accuracy"]))[0][0]
    inks = []
    for dark in (False, True):
        with on_paper(dark):
            inks.append(draw().axes[0].xaxis.label.get_color())
    assert inks == ["#1b1f24", "#e6e9ed"]


def test_the_report_tells_where_figures_come_from() -> None:
    made = replace(table(METHODS, ["accuracy"]), failures={"data a, method x, seed 1": "Traceback <why>"}, done=11)
    page = study_report([made]).html()
    for part in (
        "<h1>Made up</h1>", "<code>evidentia study made</code>", "1.0+abc", "processor a chip, torch 2.13", "0, 1",
        "11 of 12, of the kind graph", "all: {&quot;shared&quot;: 3}", "a, x: {&quot;data&quot;: &quot;a&quot;}",
        "1 of 12 jobs have no result, 1 of which failed", "Failed: data a, method x, seed 1", "Traceback &lt;why&gt;",
    ):  # fmt: skip
        assert part in page, part


def test_several_studies_begin_with_an_overview_and_have_their_tests() -> None:
    first = table(METHODS, ["accuracy"])
    test = PairedTest({"data": "a"}, "accuracy", "x", "z", 2, 0.5, 0.01, 0.02)
    page = study_report([first, replace(first, title="Another", tests=(test,))], "Both").html()
    parts = ("<h1>Both</h1>", 'id="in-short"', 'id="made-up-quick"', 'id="another-quick"')
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    assert page.count("Against z") == 1
    with pytest.raises(EvidentiaError, match="at least one study"):
        study_report([])


def test_the_same_table_gives_the_same_pictures(tmp_path: Path) -> None:
    pages = [study_report([table(METHODS, ["accuracy"])]).html() for _ in range(2)]
    pictures = [[part.partition('"')[0] for part in page.split('src="')[1:]] for page in pages]
    assert len(pictures[0]) == 3
    assert pictures[0] == pictures[1]
