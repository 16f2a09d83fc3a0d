"""Rows of images."""

from __future__ import annotations

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.reports.gallery import plot_images


def test_every_image_stands_under_its_title_with_its_caption() -> None:
    images = {"first": torch.rand(2, 8, 8), "second": torch.rand(2, 8, 8)}
    figure = plot_images(images, {"first": ["a", "b"], "second": ["c", "d"]})
    assert [ax.get_xlabel() for ax in figure.axes] == ["a", "b", "c", "d"]
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["first", "", "second", ""]
    shown = figure.axes[3].images[0].get_array()
    assert torch.equal(torch.as_tensor(shown.data), images["second"][1])


@pytest.mark.parametrize("counts", [(2, 3), (0, 0)])
def test_uneven_rows_are_refused(counts: tuple[int, int]) -> None:
    rows = {f"row {i}": torch.rand(count, 8, 8) for i, count in enumerate(counts)}
    with pytest.raises(EvidentiaError, match="same number of images"):
        plot_images(rows, {title: [""] * len(images) for title, images in rows.items()})
