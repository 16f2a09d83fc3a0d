"""Augmentations: what they keep and what they change."""

from __future__ import annotations

import math

import pytest
import torch

from evidentia import EvidentiaError
from evidentia.semisup import AUGMENTATIONS, Augmentation, as_augmentation
from evidentia.semisup.augmentation import image_augmentation, vector_augmentation

STILL = {"shift": 0, "rotation": 0.0, "scale": 0.0, "shear": 0.0}
PHOTOGRAPHS = {"flip": True, "brightness": 0.4, "cutout": 0.5}
SETTINGS = [{}, PHOTOGRAPHS | {"padding": "reflection"}, PHOTOGRAPHS | {"padding": "zeros"}]


def images(count: int = 6, channels: int = 3, height: int = 28, width: int = 28, **options: object) -> torch.Tensor:
    return torch.rand(count, channels, height, width, **options)


@pytest.mark.parametrize("name", sorted(AUGMENTATIONS))
@pytest.mark.parametrize("way", ["weak", "strong"])
def test_shape_dtype_input_and_seed_are_kept(name, way, dtype):
    x = images(dtype=dtype)
    before = x.clone()
    change = getattr(AUGMENTATIONS[name](), way)
    torch.manual_seed(5)
    first = change(x)
    torch.manual_seed(5)
    assert torch.equal(first, change(x))
    assert torch.equal(x, before)
    assert first.shape == x.shape
    assert first.dtype == dtype


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("way", ["weak", "strong"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 20, 32), (1, 9, 7)])
def test_images_stay_in_their_range_and_are_changed_one_by_one(settings, way, shape):
    x = images(1, *shape).repeat(8, 1, 1, 1)
    low = 0 if settings.get("padding") == "zeros" else x.min()
    changed = getattr(image_augmentation(**settings), way)(x)
    assert changed.shape == x.shape
    assert changed.min() >= low - 1e-6
    assert changed.max() <= x.max() + 1e-6
    assert len({tuple(image.flatten().tolist()) for image in changed}) > 4


def test_zero_strength_is_the_identity():
    x = images()
    for way in ("weak", "strong"):
        assert torch.equal(getattr(image_augmentation(**STILL), way)(x), x)
        assert torch.equal(getattr(vector_augmentation(weak=0.0, strong=0.0), way)(x), x)
        assert torch.equal(getattr(AUGMENTATIONS["none"](), way)(x), x)


def test_tiny_strength_is_almost_the_identity():
    # Smooth images, in which a small map moves values by little.
    x = torch.nn.functional.interpolate(torch.rand(4, 1, 4, 4), (28, 28), mode="bicubic")
    change = image_augmentation(shift=0, rotation=0.01, scale=1e-4, shear=1e-4)
    torch.testing.assert_close(change.strong(x), x, atol=1e-2, rtol=0)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_a_shift_moves_by_whole_pixels_up_to_its_bound(padding):
    x = torch.zeros(300, 1, 11, 13)
    x[:, :, 5, 6] = 1
    places = image_augmentation(shift=2, padding=padding).weak(x).nonzero()[:, 2:]
    assert len(places) == 300
    moves = {tuple(move) for move in (places - torch.tensor([5, 6])).tolist()}
    assert moves == {(row, column) for row in range(-2, 3) for column in range(-2, 3)}


def test_every_second_image_is_flipped():
    x = torch.arange(6.0).expand(400, 2, 5, 6)
    changed = image_augmentation(shift=0, flip=True).weak(x)
    flipped = (changed == x.flip(3)).flatten(1).all(1)
    kept = (changed == x).flatten(1).all(1)
    assert (flipped ^ kept).all()
    assert 150 < flipped.sum() < 250


def spot_after(monkeypatch, draw, **settings):
    """Where a bright spot to the right of the middle goes, in pixels from the middle, with all draws at one value."""
    monkeypatch.setattr(
        "evidentia.semisup.augmentation._uniform", lambda bound, n, like: like.new_full((n,), draw * bound)
    )
    x = torch.zeros(1, 1, 61, 121)
    x[0, 0, 29:32, 79:82] = 1
    image = image_augmentation(**(STILL | settings)).strong(x)[0, 0]
    rows, columns = torch.meshgrid(torch.arange(61.0) - 30, torch.arange(121.0) - 60, indexing="ij")
    return [round(float((image * place).sum() / image.sum()), 1) for place in (rows, columns)]


def test_maps_are_what_they_are_called(monkeypatch):
    # The spot is 20 pixels to the right of the middle, on an image twice as wide as high.
    assert spot_after(monkeypatch, 1.0) == [0.0, 20.0]
    row, column = spot_after(monkeypatch, 1.0, rotation=30.0)
    assert math.hypot(row, column) == pytest.approx(20, abs=0.2)
    assert abs(row) == pytest.approx(10, abs=0.2)
    assert spot_after(monkeypatch, -1.0, rotation=30.0)[0] == pytest.approx(-row, abs=0.1)
    assert spot_after(monkeypatch, 1.0, scale=0.5)[1] == pytest.approx(30, abs=0.2)
    assert spot_after(monkeypatch, -1.0, scale=0.5)[1] == pytest.approx(10, abs=0.2)
    # A slant leaves the middle row where it is.
    assert spot_after(monkeypatch, 1.0, shear=0.5) == [0.0, 20.0]


def test_cutout_puts_the_mean_into_a_square():
    x = images(50, 3, 20, 20)
    changed = image_augmentation(**STILL, cutout=0.5).strong(x)
    touched = changed != x
    assert (touched.flatten(2).sum(2) == 100).all()
    filled = changed[touched].view(50, 3, 100)
    torch.testing.assert_close(filled, x.mean((2, 3))[..., None].expand(-1, -1, 100))


def test_brightness_multiplies_an_image():
    x = images(50) * 0.5 + 0.25
    ratio = (image_augmentation(**STILL, brightness=0.2).strong(x) / x).flatten(1)
    middle = ratio.median(1).values
    assert (middle - 1).abs().max() <= 0.2 + 1e-5
    assert middle.std() > 0.05


def test_noise_has_its_standard_deviation():
    x = torch.zeros(20_000, 2)
    augment = vector_augmentation(weak=0.1, strong=0.5)
    assert augment.weak(x).std().item() == pytest.approx(0.1, rel=0.05)
    assert augment.strong(x).std().item() == pytest.approx(0.5, rel=0.05)


def test_a_pair_of_functions():
    x = torch.randn(3, 2)
    assert torch.equal(as_augmentation((torch.clone, torch.neg)).strong(x), -x)
    assert torch.equal(Augmentation(torch.neg).strong(x), -x)
    augment = Augmentation(torch.neg)
    assert as_augmentation(augment) is augment
    assert "Shift(pixels=2" in repr(as_augmentation("images"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: as_augmentation("image"), "no augmentation named 'image'"),
        (lambda: as_augmentation(3), "a pair of functions"),
        (lambda: as_augmentation((torch.neg, 3)), "strong augmentation must be a function"),
        (lambda: image_augmentation(shift=-1), "shift, in pixels, must be"),
        (lambda: image_augmentation(shift=1.5), "shift, in pixels, must be"),
        (lambda: image_augmentation(rotation=200), "rotation must be"),
        (lambda: image_augmentation(scale=1.0), "scale must be"),
        (lambda: image_augmentation(shear=float("nan")), "shear must be"),
        (lambda: image_augmentation(cutout=1.1), "cutout must be"),
        (lambda: image_augmentation(padding="wrap"), "padding must be one of"),
        (lambda: vector_augmentation(weak=-0.1), "standard deviation"),
        (lambda: image_augmentation().weak(torch.rand(3, 28, 28)), r"shape \(B, C, H, W\)"),
        (lambda: image_augmentation().strong(torch.zeros(1, 1, 8, 8, dtype=torch.uint8)), "floating"),
        (lambda: image_augmentation(shift=4, padding="reflection").weak(torch.rand(1, 1, 4, 4)), "shift less"),
        (lambda: Augmentation(lambda x: x[:1]).weak(torch.rand(3, 2)), r"keep the batch's shape \(3, 2\)"),
        (lambda: Augmentation(lambda x: None).weak(torch.rand(3, 2)), "got NoneType"),
    ],
)
def test_what_cannot_be_used_is_said(build, message):
    with pytest.raises(EvidentiaError, match=message):
        build()
