"""A small dataset and a small run, made by the program: `EQUICAPS` names it, or it is found where cargo builds it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

BUILT = Path(__file__).parents[2] / "target" / "release" / "equicaps"


@pytest.fixture(scope="session")
def program():
    """Runs the program with some arguments."""
    binary = os.environ.get("EQUICAPS") or (BUILT if BUILT.exists() else shutil.which("equicaps"))
    assert binary, "build the program first (cargo build --release), or name it in EQUICAPS"

    def call(*arguments):
        command = [str(binary), *map(str, arguments), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)

    return call


@pytest.fixture(scope="session")
def views(program, tmp_path_factory):
    """A dataset: 2 classes, 6 objects, 4 views of each, at 32x32."""
    folder = tmp_path_factory.mktemp("data") / "views"
    program("render", "--procedural", "2x3", "--preset", "3diebench", "--views", 4, "--size", 32, "--out", folder)
    return folder


@pytest.fixture(scope="session")
def packed(program, tmp_path_factory):
    """The same with translations, as shards."""
    folder = tmp_path_factory.mktemp("data") / "packed"
    what = ["--procedural", "2x3", "--preset", "3diebench-t", "--format", "shards", "--views", 2, "--size", 32]
    program("render", *what, "--out", folder)
    return folder


@pytest.fixture(scope="session")
def train(program, views, tmp_path_factory):
    """Trains a small network and gives its folder."""

    def call(method, *settings, data=views):
        folder = tmp_path_factory.mktemp("runs") / method
        small = ["epochs=2", "batch=4", "network.width=16", *settings]
        chosen = [word for setting in small for word in ("--set", setting)]
        what = ["--data", data, "--method", method, "--preset", "demo", "--device", "cpu"]
        program("train", *what, "--run", folder, *chosen)
        return folder

    return call


@pytest.fixture(scope="session")
def run(train):
    """A run of EquiCaps with 8 capsules."""
    return train("equicaps", "network.capsules=8")
