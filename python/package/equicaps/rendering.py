"""Images of an object over the published scene."""

from __future__ import annotations

import operator
import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native

#: Names of the columns of latents, in radians, hues from 0 to 1 and scene units; the last three are those of 3DIEBench-T.
LATENT_NAMES: tuple[str, ...] = tuple(_native.latent_names())


def render(
    mesh: str | os.PathLike[str] | None,
    latents: ArrayLike,
    size: int = 256,
    quality: str = "standard",
    device: str = "cpu",
) -> NDArray[np.uint8]:
    """Render one image for each row of latents; return `(N, size, size, 3)`, RGB.

    `mesh` is a file (OBJ, glTF, PLY, STL, OFF), which is centred and scaled to diagonal 1; an object of the built-in library,
    `"procedural:CLASS/INDEX"`; or `None` for the empty scene. `latents` has the 7 or 10 columns of `LATENT_NAMES`, see
    `sample_latents`. `quality` is `"reference"`, `"standard"` or `"fast"`, `device` is `"cpu"` (all cores) or `"cuda:N"`. The
    images are those of `equicaps render` before they become JPEG files.

    >>> latents = equicaps.sample_latents(4, seed=1)
    >>> images = equicaps.render("procedural:airplane/3", latents, size=32)
    >>> images.shape, images.dtype
    ((4, 32, 32, 3), dtype('uint8'))
    >>> equicaps.render("no.obj", latents)
    Traceback (most recent call last):
    equicaps.Error: no.obj: ...
    """
    rows = np.atleast_2d(np.asarray(latents, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] not in (7, 10):
        raise ValueError(f"latents have shape {rows.shape}, expected (N, 7) or (N, 10): {', '.join(LATENT_NAMES)}")
    if operator.index(size) < 1:
        raise ValueError(f"size is {size}, expected 1 to 8192")
    return _native.render(None if mesh is None else os.fspath(mesh), np.ascontiguousarray(rows), size, quality, device)


def sample_latents(
    count: int, preset: str = "3diebench", seed: int = 0, object: str = ""
) -> NDArray[np.float64]:
    """Draw the latents of the first `count` views of an object, `(count, 7)` or, with `"3diebench-t"`, `(count, 10)`.

    They depend on `seed`, on the name of the object (`CLASS/OBJECT` as in datasets) and on the number of the view only, and
    are those that `equicaps render` gives it. `"3diebench-ood"` has the rotations that 3DIEBench leaves out.

    >>> latents = equicaps.sample_latents(1000, preset="3diebench-t")
    >>> latents.shape, bool((abs(latents[:, :3]) <= np.pi / 2).all())
    ((1000, 10), True)
    """
    if operator.index(count) < 0 or operator.index(seed) < 0:
        raise ValueError("count and seed are whole numbers from 0")
    return _native.sample_latents(count, preset, seed, object)
