"""The examples in docstrings, and the code in docs/python.md, run."""

import doctest
import importlib
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import equicaps

MODULES = ["equicaps", *(f"equicaps.{name}" for name in ("encoder", "dataset", "rendering", "run"))]


def examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    for name in MODULES:
        for test in finder.find(importlib.import_module(name)):
            if test.examples:
                yield pytest.param(test, id=test.name)


@pytest.mark.parametrize("test", list(examples()))
def test_docstring(test, run, views):
    test.globs.update(equicaps=equicaps, np=np, os=os, run=run, views=views)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    said = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=said.append)
    assert not said, "".join(said)


def test_everything_public_has_an_example():
    shown = {param.id for param in examples()}
    for name in ("load", "find_images", "Encoder", "Dataset", "Run", "render", "sample_latents"):
        assert any(name in id.split(".") for id in shown), name


def test_the_page_runs(run, views, tmp_path, monkeypatch):
    """The blocks of the page run one after the other, where its files are there."""
    page = Path(__file__).parents[2] / "docs" / "python.md"
    shutil.copytree(run, tmp_path / "runs" / "first")
    shutil.copytree(views, tmp_path / "views")
    photos = equicaps.find_images(views)[:4]
    (tmp_path / "photos").mkdir()
    for number, photo in enumerate(photos):
        shutil.copy(photo, tmp_path / "photos" / f"{number}.jpg")
    (tmp_path / "chair.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert len(blocks) > 3
    names = {}
    for block in blocks:
        if "import torch" not in block and "import pandas" not in block:
            exec(compile(block, str(page), "exec"), names)
