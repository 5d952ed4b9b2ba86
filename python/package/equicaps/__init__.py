"""Pose-aware encoders with capsules, as NumPy arrays.

- `load` opens a trained network; `Encoder.encode`, `Encoder.activations` and `Encoder.poses` make features of images,
  `Encoder.steer` moves poses.
- `Dataset` reads a dataset of views: images, latents, labels.
- `render` makes images of an object, `sample_latents` the latents to make them of.
- `Run` reads a training run: settings, checkpoints, metrics.

What the program refuses is an `equicaps.Error` with its sentence; wrong arguments are `ValueError` and `TypeError`. Long
calls let other threads run, and Ctrl-C ends them between two batches.
"""

from ._native import Error
from .dataset import Dataset
from .encoder import Encoder, find_images, load
from .rendering import LATENT_NAMES, render, sample_latents
from .run import Run

__all__ = [
    "LATENT_NAMES",
    "Dataset",
    "Encoder",
    "Error",
    "Run",
    "find_images",
    "load",
    "render",
    "sample_latents",
]
