"""A trained network: features of images, and poses that are moved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native

Images = Any  # an array (N, height, width, 3) of uint8, or file names
Path = str | os.PathLike[str]


def load(path: Path, device: str = "auto", image_size: int | None = None) -> Encoder:
    """Open a trained network.

    `path` is what `equicaps embed` takes: the folder of a run (its newest checkpoint is used), a checkpoint, or weights that
    `equicaps import` has made. `device` is `"auto"` (a GPU where there is a usable one), `"cpu"` or `"cuda:N"`; features are
    computed in float32 on all of them. `image_size` is the side in pixels that images are resized to, where it is to be
    another one than in training.

    >>> encoder = equicaps.load(run, device="cpu")
    >>> encoder
    <equicaps.Encoder equicaps, resnet18, images of 32x32 on cpu>
    >>> equicaps.load("no/such/run")
    Traceback (most recent call last):
    equicaps.Error: there is no folder no/such/run
    """
    return Encoder(_native.Encoder(os.fspath(path), device, image_size))


def find_images(images: Path | Sequence[Path]) -> list[str]:
    """List the image files that `Encoder.encode` reads for these names, in the order of its rows.

    A name is a file, a folder (everything below it), a packed dataset, a pattern with `*` and `?`, or `@LIST`, a text file
    with one path a line.

    >>> names = equicaps.find_images(views)
    >>> len(names), os.path.basename(names[0])
    (24, 'image_0.jpg')
    """
    return list(_native.find_images(_names(images)))


class Encoder:
    """A network on a device; `load` opens one.

    Images are either an array of uint8, `(N, height, width, 3)`, RGB, read without a copy where it is contiguous and of the
    network's size (it must not change meanwhile), or a name or names of files (see `find_images`), which are turned upright
    by their EXIF data. Other sizes are resized to a square, without cropping, as in training. On the CPU a row depends on
    its image only, bit for bit, and equals what `equicaps embed` writes.

    Several threads may use one encoder; they take turns batch by batch.
    """

    def __init__(self, native: _native.Encoder) -> None:
        self._native = native

    def __repr__(self) -> str:
        native, side = self._native, self.image_size
        return f"<equicaps.Encoder {native.method}, {native.backbone}, images of {side}x{side} on {native.device}>"

    @property
    def method(self) -> str:
        """The method that the network was trained with."""
        return self._native.method

    @property
    def backbone(self) -> str:
        """The name of the backbone."""
        return self._native.backbone

    @property
    def device(self) -> str:
        """Where it computes: `"cpu"`, `"cuda:0"`."""
        return self._native.device

    @property
    def image_size(self) -> int:
        """Side of the images that the network takes, in pixels."""
        return self._native.image_size

    @property
    def weights(self) -> str | None:
        """The file of the weights."""
        weights = self._native.weights
        return None if weights is None else os.fspath(weights)

    @property
    def capsules(self) -> tuple[int, int] | None:
        """Number of capsules and side `n` of their pose matrices; `None` for networks without capsules."""
        return self._native.capsules

    def encode(self, images: Images) -> NDArray[np.float32]:
        """Return the representations of images, `(N, width)`: the backbone's pooled output.

        >>> encoder = equicaps.load(run, device="cpu")
        >>> features = encoder.encode(np.zeros((3, 32, 32, 3), np.uint8))
        >>> features.shape, features.dtype
        ((3, 128), dtype('float32'))
        >>> encoder.encode(os.path.join(views, "*", "*", "image_0.jpg")).shape
        (6, 128)
        >>> encoder.encode(np.zeros((3, 32, 32), np.uint8))
        Traceback (most recent call last):
        ValueError: images have shape (3, 32, 32), expected (N, height, width, 3)
        """
        return self._features(images)[0]

    def activations(self, images: Images) -> NDArray[np.float32]:
        """Return the activations of capsules, `(N, capsules)`, or the invariant embedding of methods that have one.

        >>> encoder = equicaps.load(run, device="cpu")
        >>> activations = encoder.activations(np.zeros((3, 32, 32, 3), np.uint8))
        >>> activations.shape, bool(((0 <= activations) & (activations <= 1)).all())
        ((3, 8), True)
        """
        activations = self._features(images)[1]
        if activations is None:
            raise _native.Error(f"a network of {self.method} has no activations")
        return activations

    def poses(self, images: Images) -> NDArray[np.float32]:
        """Return the poses of capsules, `(N, capsules, n, n)`, raw; for methods without capsules the (equivariant) embedding,
        `(N, width)`.

        >>> encoder = equicaps.load(run, device="cpu")
        >>> encoder.poses(np.zeros((3, 32, 32, 3), np.uint8)).shape
        (3, 8, 3, 3)
        """
        return self._shaped(self._features(images)[2])

    def features(self, images: Images) -> dict[str, NDArray[np.float32]]:
        """Return everything at once, for the price of one: `representation`, and `activations` and `poses` where the network
        has them.

        >>> encoder = equicaps.load(run, device="cpu")
        >>> {name: rows.shape for name, rows in encoder.features(views).items()}
        {'representation': (24, 128), 'activations': (24, 8), 'poses': (24, 8, 3, 3)}
        """
        representation, activations, poses = self._features(images)
        found = {"representation": representation}
        if activations is not None:
            found["activations"] = activations
        if poses is not None:
            found["poses"] = self._shaped(poses)
        return found

    def motion(
        self,
        rotate: ArrayLike = (0.0, 0.0, 0.0),
        translate: ArrayLike = (0.0, 0.0, 0.0),
        *,
        first: ArrayLike | None = None,
        second: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return the matrix `M`, `(n, n)`, by which `steer` multiplies the poses of capsules. The arguments are those of
        `steer`, for one view or one pair of views.

        >>> encoder = equicaps.load(run, device="cpu")
        >>> encoder.motion(rotate=(0, 0, 90)).round(6) + 0.0
        array([[ 0., -1.,  0.],
               [ 1.,  0.,  0.],
               [ 0.,  0.,  1.]])
        """
        pair = [rows.reshape(-1).tolist() for rows in _pair(rotate, translate, first, second)]
        if any(len(view) != 6 for view in pair):
            raise ValueError("a motion is that of one view; steer takes several")
        matrix = self._native.motion(*pair)
        if matrix is None:
            raise _native.Error(f"a network of {self.method} has no pose matrices")
        return matrix

    def steer(
        self,
        poses: ArrayLike,
        rotate: ArrayLike = (0.0, 0.0, 0.0),
        translate: ArrayLike = (0.0, 0.0, 0.0),
        *,
        first: ArrayLike | None = None,
        second: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """Move poses by a known change of view; return what the network expects the poses of the changed view to be.

        Capsules are multiplied from the right by one matrix, `poses @ M`: `M = R1.T @ R2`, or `inverse(M1) @ M2` of 4x4
        motions where the network was trained with translations (in the frame it was trained with). Embeddings of methods with
        a predictor go through it. Nothing is normalised: compare directions, capsule by capsule.

        The change is either `rotate` (degrees about x, y, z, in this order, of a view that is not rotated: `R1` is the
        identity) and `translate` (scene units; without effect for networks that were trained for rotations only), or from
        the latents `first` to the latents `second`, in the columns of `LATENT_NAMES`; one row for each of the poses, or one
        for all of them.

        >>> encoder = equicaps.load(run, device="cpu")
        >>> data = equicaps.Dataset(views)
        >>> poses = encoder.poses(data.images([0, 1]))
        >>> moved = encoder.steer(poses, first=data.latents[[0, 1]], second=data.latents[[1, 0]])
        >>> moved.shape
        (2, 8, 3, 3)
        >>> turned = encoder.steer(poses, rotate=(0, 0, 45))
        >>> np.allclose(turned, poses @ encoder.motion(rotate=(0, 0, 45)), atol=1e-6)
        True
        """
        array = np.asarray(poses)
        if array.dtype.kind != "f":
            raise TypeError(f"poses are {array.dtype}, expected floats")
        width = self._native.widths[2]
        if width is None:
            raise _native.Error(f"a network of {self.method} has no poses")
        shape = (*self.capsules, self.capsules[1]) if self.capsules else (width,)
        if array.ndim < 1 or array.shape[1:] != shape:
            expected = ", ".join(["N", *map(str, shape)])
            raise ValueError(f"poses have shape {array.shape}, expected ({expected})")
        rows = np.ascontiguousarray(array.reshape(len(array), width), dtype=np.float32)
        pair = _pair(rotate, translate, first, second)
        for view in pair:
            if len(view) not in (1, len(rows)):
                raise ValueError(f"there are {len(view)} views for {len(rows)} poses, expected one, or one for each")
        return self._native.steer(rows, *pair).reshape(array.shape)

    def _shaped(self, poses: NDArray[np.float32] | None) -> NDArray[np.float32]:
        if poses is None:
            raise _native.Error(f"a network of {self.method} has no poses")
        return poses.reshape(len(poses), *self.capsules, self.capsules[1]) if self.capsules else poses

    def _features(
        self, images: Images
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, NDArray[np.float32] | None]:
        if _is_names(images):
            return self._native.of_files(_names(images))
        array = np.asarray(images)
        if array.dtype != np.uint8:
            raise TypeError(f"images are {array.dtype}, expected uint8 (0 to 255) or file names")
        if array.ndim != 4 or array.shape[3] != 3:
            raise ValueError(f"images have shape {array.shape}, expected (N, height, width, 3)")
        return self._native.of_pixels(np.ascontiguousarray(array))


def _is_names(images: Images) -> bool:
    if isinstance(images, str | os.PathLike):
        return True
    return isinstance(images, list | tuple) and all(isinstance(name, str | os.PathLike) for name in images)


def _names(images: Images) -> list[str]:
    names = [images] if isinstance(images, str | os.PathLike) else list(images)
    return [os.fsdecode(name) for name in names]


def _pair(
    rotate: ArrayLike, translate: ArrayLike, first: ArrayLike | None, second: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both views of a change: rows of three angles in radians and a translation."""
    if (first is None) != (second is None):
        raise ValueError("first and second belong together: the latents before and after")
    angles, shift = _triple("rotate", rotate), _triple("translate", translate)
    if first is None or second is None:
        turned = np.concatenate([np.deg2rad(angles), shift])
        return np.zeros((1, 6)), turned[None]
    if angles.any() or shift.any():
        raise ValueError("a change is given by rotate and translate or by first and second, not by both")
    return _views("first", first), _views("second", second)


def _triple(name: str, values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise ValueError(f"{name} is {values!r}, expected three finite numbers")
    return array


def _views(name: str, latents: ArrayLike) -> NDArray[np.float64]:
    rows = np.atleast_2d(np.asarray(latents, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] not in (7, 10) or not np.isfinite(rows).all():
        raise ValueError(f"{name} has shape {rows.shape}, expected rows of 7 or 10 finite latents")
    # As training reads them: angles in float32.
    angles = rows[:, :3].astype(np.float32).astype(np.float64)
    shift = rows[:, 7:] if rows.shape[1] == 10 else np.zeros((len(rows), 3))
    return np.ascontiguousarray(np.concatenate([angles, shift], axis=1))
