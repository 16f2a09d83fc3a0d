"""scikit-learn's handwritten digits, which need no download, and shapes like letters made of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from evidentia._support.extras import from_extra
from evidentia.semisup.data.draws import Array, enough, generator
from evidentia.semisup.data.image_files import Images
from evidentia.semisup.data.images import DIGITS, ImageSet

# Digits that are no digit when they are turned a quarter: not 0, 1 and 8, which keep their looks or nearly so.
TURNED = (2, 3, 4, 5, 6, 7, 9)
_TEST_SHARE = 0.25


def digits_images(seed: int) -> Images:
    """The 1,797 digits of 8 x 8 pixels, a quarter of them, drawn by the seed, for the test.

    Values from 0 to 16 are kept as the nearest of 0 to 255, so that `ImageSet.take` gives them in [0, 1].

    Example:
        >>> images = digits_images(seed=0)
        >>> images.train.images.shape, images.test.images.shape
        ((1348, 1, 8, 8), (449, 1, 8, 8))
    """
    with from_extra("scikit-learn", "demo", "the digits data set"):
        from sklearn.datasets import load_digits

    data = load_digits()
    whole = ImageSet(np.rint(data.images[:, None] * (255 / 16)).astype(np.uint8), data.target.astype(np.int64))
    order = generator(seed, "test").permutation(len(whole))
    tested = round(_TEST_SHARE * len(whole))
    test, train = (ImageSet(whole.images[rows], whole.labels[rows]) for rows in (order[:tested], order[tested:]))
    return Images(train, test, DIGITS)


def letters(images: ImageSet, rows: Array, size: int, rng: np.random.Generator) -> Tensor:
    """Shapes like letters: digits turned a quarter to the left or to the right.

    A 2 becomes an N, a 3 an m or a w: strokes of the same pens, and no digit.

    Args:
        images: upright digits.
        rows: which of them may be used; of these, the digits in `TURNED` are.
        size: how many shapes.
        rng: draws them, each at most once.
    """
    sources = rows[np.isin(images.labels[rows], TURNED)]
    enough(2 * len(sources), size, "letters")
    drawn = rng.permutation(2 * len(sources))[:size]
    upright = images.take(sources[drawn // 2])
    left = torch.from_numpy(drawn % 2 == 0)[:, None, None, None]
    return torch.where(left, torch.rot90(upright, 1, (-2, -1)), torch.rot90(upright, -1, (-2, -1)))
