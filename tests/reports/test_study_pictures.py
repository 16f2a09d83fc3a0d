"""The pictures of a study's networks: what is trained, what is drawn, and what is told where something fails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from evidentia import EvidentiaError
from evidentia.experiments import JOBS, Pictures, Study, plan_study
from evidentia.reports import PICTURES, Report, graphs, study_pictures
from evidentia.reports.pictures import Group
from evidentia.reports.study_pictures import StudyPictures, check_pictures

GRAPHS: dict[str, Any] = {
    "name": "graphs", "title": "Graphs", "job": "graph", "metrics": ["accuracy"],
    "fixed": {"data": "synthetic", "epochs": 8},
}  # fmt: skip
MOONS: dict[str, Any] = {
    "name": "moons", "title": "Moons", "job": "semisup", "metrics": ["accuracy"],
    "fixed": {"data": "two-moons", "objective": "pi-model", "ood": "faraway", "ratio": 0.5},
    "axes": {"robust": ["none", "oracle"]},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _placed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hidden units in place of t-SNE, which takes seconds and has tests of its own."""
    monkeypatch.setattr(graphs, "_in_the_plane", lambda tsne, hidden, seed: hidden[:, :2].numpy())


def drawn(study: Study, data_root: Path | None = None) -> StudyPictures:
    made = study_pictures(plan_study(study, seeds=1), data_root, progress=False)
    assert made is not None
    return made


def page(made: StudyPictures) -> str:
    report = Report("Pictures")
    made.add_to(report)
    return report.html()


def labels(draw: Any) -> list[str]:
    (ax,) = [ax for ax in draw().axes if ax.get_legend() is not None]
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_every_job_with_pictures_is_a_job() -> None:
    assert set(PICTURES) == {"graph", "semisup", "events"}
    assert set(PICTURES) <= set(JOBS)


@pytest.mark.parametrize("task", ["misclassification", "ood"])
def test_curves_of_a_graph_have_the_areas_of_the_table(task: str) -> None:
    study = Study(**GRAPHS, axes={"task": [task], "method": ["s-gcn"]}, pictures=Pictures())
    made = drawn(study)
    assert made.failures == []
    assert made.intro == "The networks below are of seed 0."
    (maps, figures), (curves, _) = made.groups
    assert maps.heading == f"Nodes in the plane: {task}, s-gcn"
    assert [caption.rpartition(": ")[2] for _, caption in maps.drawings][:3] == ["class", "predicted class", "vacuity"]
    assert ("never seen" in maps.text) == (task == "ood")
    assert len(figures) == 7
    metrics = JOBS["graph"](study.cells()[0].configuration, 0)
    for (draw, _), area in zip(curves.drawings, ("auroc", "aupr"), strict=True):
        for label in labels(draw):
            name, found = re.fullmatch(r"(\w+) \(\w+ ([\d.]+)\)", label).groups()  # type: ignore[union-attr]
            assert float(found) == pytest.approx(metrics[area][name], abs=6e-4)


def test_points_in_the_plane_have_boundaries_and_weights_where_they_differ() -> None:
    made = drawn(Study(**MOONS, pictures=Pictures(fixed={"updates": 20, "block": 5})))
    assert made.failures == []
    assert made.intro.endswith("seed 0. Unlike those of the table: updates 20, block 5.")
    (boundaries, _), (weights, _) = made.groups
    assert [caption for _, caption in boundaries.drawings] == [
        "Decision boundary of none.",
        "Decision boundary of oracle.",
    ]
    ((draw, caption),) = weights.drawings
    assert caption == "Mean weights of the pool over the updates of oracle."
    lines = {line.get_label(): line.get_xydata().tolist() for line in draw().axes[0].get_lines()}
    assert lines == {
        "w_in": [[update, 1.0] for update in (5, 10, 15, 20)],
        "w_ood": [[update, 0.0] for update in (5, 10, 15, 20)],
    }


def test_images_have_galleries() -> None:
    study = Study(
        name="digits", title="Digits", job="semisup", metrics=["accuracy"], pictures=Pictures(),
        fixed={"data": "digits", "objective": "pi-model", "robust": "oracle", "ood": "held-out", "updates": 2},
    )  # fmt: skip
    made = drawn(study)
    assert made.failures == []
    assert [group.heading for group, _ in made.groups] == ["The pool", "Weights over training"]
    ((gallery,), (curve,)) = (figures for _, figures in made.groups)
    assert gallery.caption == "What digits kept of the pool, and what it threw out."
    assert (gallery.wide, curve.wide) == (True, False)
    assert 'class="wide"' in page(made)


@pytest.mark.filterwarnings("ignore:no training clip has an event of")
@pytest.mark.filterwarnings("ignore:the clips to calibrate on have no event of")
def test_methods_of_events_share_a_curve_and_the_last_shows_a_clip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDENTIA_CACHE", str(tmp_path))
    study = Study(
        name="events", title="Events", job="events", metrics=["macro_f1"], pictures=Pictures(),
        fixed={"data": "synthetic", "clips": 4, "held_out": 4, "epochs": 1},
        axes={"method": ["crnn-entropy", "mtenn-wbc"]},
    )  # fmt: skip
    made = drawn(study)
    assert made.failures == []
    (curves, _), (bars, _), (clip, (picture,)) = made.groups
    ((draw, _),) = curves.drawings
    lines = [line for line in draw().axes[0].get_lines() if line.get_drawstyle() == "steps-post"]
    assert [line.get_label() for line in lines] == ["crnn-entropy", "mtenn-wbc"]
    f1, _ = bars.drawings[0][0]().axes
    assert len(f1.patches) == 2 * len(f1.get_yticklabels())
    assert clip.drawings[0][1].endswith("after fusion: mtenn-wbc.")
    assert picture.wide
    # What a filter leaves is no network's opinion, so that there is no clip to show.
    only = study.model_copy(update={"pictures": Pictures(keep={"method": ["crnn-entropy"]})})
    assert [group.heading for group, _ in drawn(only).groups] == ["F1 over delay", "Class by class"]


def test_what_cannot_be_trained_is_told_and_the_rest_is_drawn(tmp_path: Path) -> None:
    graphs = {**GRAPHS, "fixed": {"task": "ood", "method": "gcn", "epochs": 3}}
    study = Study(**graphs, axes={"data": ["cora", "synthetic"]}, pictures=Pictures())
    made = drawn(study, tmp_path)
    assert [group.heading.partition(": ")[2] for group, _ in made.groups] == ["synthetic", "synthetic"]
    ((failed),) = made.failures
    assert (failed.what, failed.traceback) == ("cora", None)
    text = page(made)
    assert "There is no picture of cora: " in text
    assert "<summary>The error" not in text
    assert text.count("<img") == 5


def test_an_error_that_no_one_foresaw_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(**GRAPHS, axes={"method": ["gcn"]}, pictures=Pictures())

    def groups(self: object, trained: object) -> list[Group]:
        good = Group("Good", "", [])
        return [Group("Bad", "", [(lambda: 1 / 0, "a hole")]), good]  # type: ignore[list-item]

    monkeypatch.setattr(PICTURES["graph"], "groups", groups)
    made = drawn(study)
    assert [group.heading for group, _ in made.groups] == ["Good"]
    assert [failed.what for failed in made.failures] == ["Bad"]
    assert "There is no picture of Bad: ZeroDivisionError: division by zero." in page(made)
    assert "Traceback" in page(made)


def test_studies_without_pictures_and_jobs_without_them() -> None:
    plain = Study(**GRAPHS)
    check_pictures(plain, "quick")
    assert study_pictures(plan_study(plain), progress=False) is None
    timed = Study(**{**GRAPHS, "job": "graph-time"}, pictures=Pictures())
    with pytest.raises(EvidentiaError, match=r"none of networks of the job graph-time; there are for: .*graph"):
        check_pictures(timed, "quick")
    wrong = Study(**GRAPHS, pictures=Pictures(fixed={"hiden": 3}))
    with pytest.raises(EvidentiaError, match=r"cannot run its only cell: .*hiden"):
        check_pictures(wrong, "quick")
