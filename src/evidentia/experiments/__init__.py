"""Experiments that anyone can run again: data, protocol and figures of each in one place."""

from evidentia.experiments.published_figures import PublishedFigure, published, published_figure

__all__ = ["PublishedFigure", "published", "published_figure"]
