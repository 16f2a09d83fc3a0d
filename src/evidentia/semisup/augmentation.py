"""How samples are changed without changing their class: a weak and a strong way, for whole batches at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

from evidentia._support.checks import shape_or_kind, validation_enabled
from evidentia._support.errors import EvidentiaError
from evidentia._support.registry import Registry
from evidentia._support.scalars import real_number, whole_number

Change: TypeAlias = Callable[[Tensor], Tensor]
Padding: TypeAlias = Literal["border", "reflection", "zeros"]


class Augmentation:
    """A weak and a strong way to change a batch of samples, each sample by a draw of its own.

    Args:
        weak: maps a batch to a batch of the same shape and dtype; it is given a copy, and may work in place. Draws of
            `torch`, `numpy` and `random` follow from the seed of a training.
        strong: the same, with more change; by default the weak one.

    Example:
        >>> jitter = Augmentation(weak=lambda x: x + 0.1 * torch.randn_like(x), strong=lambda x: -x)
        >>> jitter.strong(torch.tensor([[1.0, 2.0]]))
        tensor([[-1., -2.]])
    """

    def __init__(self, weak: Change, strong: Change | None = None) -> None:
        strong = weak if strong is None else strong
        for name, change in (("weak", weak), ("strong", strong)):
            if not callable(change):
                raise EvidentiaError(
                    f"the {name} augmentation must be a function of a batch of samples, got {type(change).__name__}"
                )
        self._weak, self._strong = weak, strong

    @property
    def changes(self) -> tuple[Change, Change]:
        """The weak and the strong function."""
        return self._weak, self._strong

    def weak(self, x: Tensor) -> Tensor:
        """A batch as a person would hardly notice that it was changed."""
        return _checked(self._weak(x.clone()), x, "weak")

    def strong(self, x: Tensor) -> Tensor:
        """A batch changed as far as its classes allow."""
        return _checked(self._strong(x.clone()), x, "strong")

    def __repr__(self) -> str:
        return f"Augmentation(weak={self._weak!r}, strong={self._strong!r})"


AUGMENTATIONS: Registry[Callable[..., Augmentation]] = Registry("augmentation")


def as_augmentation(value: str | Augmentation | tuple[Change, Change]) -> Augmentation:
    """An augmentation from its name, from a pair of functions, or as it is.

    Example:
        >>> x = torch.randn(3, 2)
        >>> torch.equal(as_augmentation("none").weak(x), x)
        True
        >>> torch.equal(as_augmentation((torch.clone, torch.neg)).strong(x), -x)
        True
    """
    if isinstance(value, Augmentation):
        return value
    if isinstance(value, str):
        return AUGMENTATIONS[value]()
    if isinstance(value, tuple) and len(value) == 2:
        return Augmentation(*value)
    raise EvidentiaError(
        f"an augmentation is a name ({', '.join(sorted(AUGMENTATIONS))}), an Augmentation or a pair of functions "
        f"(weak, strong), got {value!r}"
    )


def usual_augmentation(sample_shape: Sequence[int]) -> Augmentation:
    """That for images if samples have a channel, rows and columns, and noise for anything else."""
    return as_augmentation("images" if len(sample_shape) == 3 else "vectors")


@AUGMENTATIONS.register("none")
def no_augmentation() -> Augmentation:
    """Samples as they are.

    Example:
        >>> no_augmentation().strong(torch.ones(1, 2))
        tensor([[1., 1.]])
    """
    return Augmentation(_unchanged)


@AUGMENTATIONS.register("vectors")
def vector_augmentation(weak: float = 0.05, strong: float = 0.15) -> Augmentation:
    """Gaussian noise on every entry; features are expected to be of a scale near 1.

    Args:
        weak: standard deviation of the weak noise.
        strong: standard deviation of the strong noise.

    Example:
        >>> x = torch.zeros(1000, 2)
        >>> augment = vector_augmentation()
        >>> bool(augment.weak(x).std() < augment.strong(x).std())
        True
    """
    return Augmentation(Noise(weak), Noise(strong))


@AUGMENTATIONS.register("images")
def image_augmentation(
    shift: int = 2,
    flip: bool = False,
    rotation: float = 20.0,
    scale: float = 0.15,
    shear: float = 0.25,
    brightness: float = 0.0,
    cutout: float = 0.0,
    padding: Padding = "border",
) -> Augmentation:
    """For images of shape `(B, C, H, W)`: weak is a shift (and flip), strong an affine map and what else is asked for.

    The defaults are for digits. For photographs add `flip=True, brightness=0.4, cutout=0.5, padding="reflection"`.

    Args:
        shift: images move by up to so many whole pixels, in both ways.
        flip: whether left and right are exchanged for every second image.
        rotation: strong: turned by up to so many degrees.
        scale: strong: size changed by a factor of up to 1 + scale and down to 1 - scale.
        shear: strong: a slant by up to this; 0.25 moves a row by a quarter of its distance from the middle.
        brightness: strong: values times a factor of up to 1 + brightness and down to 1 - brightness, kept in the
            batch's range.
        cutout: strong: the side of a square, as a share of the image's, that is replaced by the image's mean.
        padding: what comes in at the edges.

    Example:
        >>> augment = image_augmentation()
        >>> augment.strong(torch.rand(8, 1, 28, 28)).shape
        torch.Size([8, 1, 28, 28])
    """
    for name, value, high in (
        ("rotation", rotation, 180.0),
        ("scale", scale, 0.99),
        ("shear", shear, 10.0),
        ("brightness", brightness, 1.0),
        ("cutout", cutout, 1.0),
    ):
        real_number(value, name, 0, high)
    whole_number(shift, "shift, in pixels,", 0)
    if padding not in _PAD_MODES:
        raise EvidentiaError(f"padding must be one of {', '.join(_PAD_MODES)}, got {padding!r}")
    weak = Shift(shift, flip, padding)
    strong = Distortion(weak, math.radians(rotation), scale, shear, brightness, cutout)
    return Augmentation(weak, strong)


@dataclass(frozen=True)
class Noise:
    """Gaussian noise of a standard deviation."""

    std: float

    def __post_init__(self) -> None:
        """Require a finite standard deviation of at least 0."""
        real_number(self.std, "the standard deviation of noise", 0)

    def __call__(self, x: Tensor) -> Tensor:
        """The batch with noise."""
        return x + self.std * torch.randn_like(x) if self.std else x


@dataclass(frozen=True)
class Shift:
    """Whole pixels aside, and left and right exchanged: every value stays what it was."""

    pixels: int
    flip: bool
    padding: Padding

    def __call__(self, x: Tensor) -> Tensor:
        """The batch, every image by a shift of its own."""
        _check_images(x)
        if not self.pixels and not self.flip:
            return x
        count, _, height, width = x.shape
        shifted = x
        row, column = torch.randint(2 * self.pixels + 1, (2, count), device=x.device)
        if self.pixels:
            _check_room(x, self.pixels, self.padding)
            padded = F.pad(x, (self.pixels,) * 4, mode=_PAD_MODES[self.padding])
            # Views of all shifts, of which every image takes one: rows of pixels are copied, not pixels looked up.
            views = padded.unfold(2, height, 1).unfold(3, width, 1)
            shifted = views[torch.arange(count, device=x.device), :, row, column]
            # Of one channel, what is taken from the views has strides by which PyTorch holds it for channels-last, in
            # which convolutions to few maps take half as long again.
            shifted = shifted.clone(memory_format=torch.contiguous_format)
        if self.flip:
            flipped = torch.rand(count, 1, 1, 1, device=x.device) < 0.5
            shifted = torch.where(flipped, shifted.flip(3), shifted)
        return shifted


@dataclass(frozen=True)
class Distortion:
    """An affine map after the weak change, then brightness and cutout."""

    weak: Shift
    rotation: float
    scale: float
    shear: float
    brightness: float
    cutout: float

    def __call__(self, x: Tensor) -> Tensor:
        """The batch, every image by a distortion of its own."""
        x = self.weak(x)
        if self.rotation or self.scale or self.shear:
            x = self._affine(x)
        if self.brightness:
            factor = 1 + _uniform(self.brightness, len(x), x)
            x = torch.clamp(x * factor[:, None, None, None], x.amin(), x.amax())
        return self._cut(x) if self.cutout else x

    def _affine(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        angle = _uniform(self.rotation, len(x), x)
        shear = _uniform(self.shear, len(x), x)
        # The map goes from the new image to the old one, hence the inverse of the scale.
        size = 1 / (1 + _uniform(self.scale, len(x), x))
        cos, sin, zero = size * angle.cos(), size * angle.sin(), torch.zeros_like(angle)
        # Coordinates of both sides run from -1 to 1, so a turn of an image that is not square needs its proportions.
        proportion = height / width
        across = torch.stack([cos, (cos * shear - sin) * proportion, zero], -1)
        down = torch.stack([sin / proportion, sin * shear + cos, zero], -1)
        grid = F.affine_grid(torch.stack([across, down], 1), list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, "bilinear", self.weak.padding, align_corners=False)

    def _cut(self, x: Tensor) -> Tensor:
        count, _, height, width = x.shape
        inside = []
        for side in (height, width):
            length = round(self.cutout * side)
            start = torch.randint(side - length + 1, (count, 1), device=x.device)
            place = torch.arange(side, device=x.device)
            inside.append((place >= start) & (place < start + length))
        hole = inside[0][:, None, :, None] & inside[1][:, None, None, :]
        return torch.where(hole, x.mean((2, 3), keepdim=True), x)


_PAD_MODES = {"border": "replicate", "reflection": "reflect", "zeros": "constant"}


def _unchanged(x: Tensor) -> Tensor:
    return x


def _uniform(bound: float, count: int, like: Tensor) -> Tensor:
    return bound * (2 * torch.rand(count, dtype=like.dtype, device=like.device) - 1)


def _checked(changed: Tensor, x: Tensor, name: str) -> Tensor:
    if not isinstance(changed, Tensor) or changed.shape != x.shape:
        raise EvidentiaError(
            f"the {name} augmentation must keep the batch's shape {tuple(x.shape)}, got {shape_or_kind(changed)}"
        )
    if changed.dtype != x.dtype:
        raise EvidentiaError(
            f"the {name} augmentation must keep the batch's dtype {x.dtype}, got {changed.dtype}; end it with .to(x)"
        )
    if validation_enabled() and not bool(changed.isfinite().all()):
        raise EvidentiaError(f"the {name} augmentation made samples with NaN or infinity of finite ones; mend it")
    return changed


def _check_images(x: Tensor) -> None:
    if x.ndim != 4 or not x.is_floating_point():
        raise EvidentiaError(
            f"images must be floating numbers of shape (B, C, H, W), got {x.dtype} of shape {tuple(x.shape)}; "
            "for vectors use the augmentation 'vectors', for anything else a pair of functions of your own"
        )


def _check_room(x: Tensor, pixels: int, padding: Padding) -> None:
    if padding == "reflection" and pixels >= min(x.shape[2:]):
        raise EvidentiaError(
            f"a reflected shift by {pixels} pixels needs larger images than {x.shape[2]} x {x.shape[3]}; shift less"
        )
