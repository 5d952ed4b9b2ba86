"""A training run."""

from __future__ import annotations

import os
import tomllib
from typing import Any

from . import _native
from .encoder import Encoder, load


class Run:
    """The folder of a run, while it is trained or afterwards.

    >>> training = equicaps.Run(run)
    >>> training.state, training.config["method"], len(training.checkpoints)
    ('finished', 'equicaps', 1)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._native = _native.Run(self.path)

    def __repr__(self) -> str:
        return f"<equicaps.Run {self.path}, {self.state}>"

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self._native.name

    @property
    def state(self) -> str:
        """`"running"`, `"finished"`, `"failed"` or `"stopped"`."""
        return self._native.state()

    @property
    def config(self) -> dict[str, Any]:
        """All settings, as in `config.toml`."""
        return tomllib.loads(self._native.config())

    @property
    def checkpoints(self) -> list[str]:
        """The files of weights that were kept, oldest first."""
        return [os.fspath(path) for path in self._native.checkpoints()]

    def metrics(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the lines of `metrics.jsonl` as flat dictionaries, for `pandas.DataFrame`.

        `kind` is `"step"` (one training step), `"epoch"` (the mean of an epoch) or `"held_out"` (an evaluation on held-out
        objects); all lines where it is `None`. What depends on the machine begins with `timing/`.

        >>> last = equicaps.Run(run).metrics(kind="held_out")[-1]
        >>> last["epoch"], "probe/rotation_r2/representation" in last
        (2, True)
        """
        if kind not in (None, "step", "epoch", "held_out"):
            raise ValueError(f"kind is {kind!r}, expected 'step', 'epoch', 'held_out' or None")
        return [row for row in self._native.metrics() if kind in (None, row["kind"])]

    def load(self, device: str = "auto") -> Encoder:
        """Open the network of the newest checkpoint: `equicaps.load(run.path)`."""
        return load(self.path, device)
