"""A dataset of views on disk."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from . import _native

Path = str | os.PathLike[str]


class Dataset:
    """The views of a dataset: `(image, latents, label)` by row.

    It has what PyTorch's `DataLoader` asks of a dataset (`len`, rows by number, pickling for workers) and imports no torch.
    `split` is `"train"` or `"val"` for one side of the split; `image_size` resizes the images; `lists` is the folder of
    published split files that are kept apart from the images.

    >>> data = equicaps.Dataset(views, split="train")
    >>> image, latents, label = data[0]
    >>> image.shape, image.dtype, latents.shape, label
    ((32, 32, 3), dtype('uint8'), (7,), 1)
    >>> len(data), data.latents.shape, data.labels.shape
    (20, (20, 7), (20,))
    >>> data.classes
    ['airplane', 'trash bin']
    >>> data.latent_names
    ['rot_x', 'rot_y', 'rot_z', 'floor_hue', 'spot_theta', 'spot_phi', 'spot_hue']

    With PyTorch: `torch.utils.data.DataLoader(data, batch_size=64, num_workers=4)`.
    """

    def __init__(
        self,
        path: Path,
        split: str | None = None,
        image_size: int | None = None,
        lists: Path | None = None,
    ) -> None:
        if image_size is not None and not 1 <= operator.index(image_size) <= 8192:
            raise ValueError(f"image_size is {image_size}, expected 1 to 8192")
        self._arguments = (path, split, image_size, lists)
        self._native = _native.Dataset(os.fspath(path), lists, split, image_size)
        self.objects, self.views, self.labels = self._native.index()
        self.latents: NDArray[np.float64] = self._native.latents()
        self.latent_names: list[str] = self._native.latent_names()
        self.classes: list[str] = self._native.classes()
        self.object_names: list[str] = self._native.objects()

    def __repr__(self) -> str:
        return f"<equicaps.Dataset {self._native.description()}; {len(self)} rows>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Dataset, self._arguments)

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, row: SupportsIndex) -> tuple[NDArray[np.uint8], NDArray[np.float64], int]:
        """Return image, latents and label of one row."""
        number = operator.index(row)
        if not -len(self) <= number < len(self):
            raise IndexError(f"there is no row {number}; the dataset has {len(self)}")
        number %= len(self)
        return self._native.image(number), self.latents[number], int(self.labels[number])

    @property
    def image_size(self) -> int:
        """Side of the images in pixels."""
        return self._native.image_size

    def images(self, rows: Sequence[int] | NDArray[np.integer[Any]] | None = None) -> NDArray[np.uint8]:
        """Return many images, `(N, size, size, 3)`, decoded on all cores; all of them where `rows` is `None`.

        >>> equicaps.Dataset(views).images([3, 0, 3]).shape
        (3, 32, 32, 3)
        """
        numbers = range(len(self)) if rows is None else [operator.index(row) for row in rows]
        for number in numbers:
            if not -len(self) <= number < len(self):
                raise IndexError(f"there is no row {number}; the dataset has {len(self)}")
        return self._native.images([number % len(self) for number in numbers])
