"""A GPU gives the numbers of the CPU; skipped where there is none."""

import pytest
from cuda_check import check, largest_difference

import equicaps


def test_the_gpu_gives_the_numbers_of_the_cpu(run):
    try:
        equicaps.load("builtin", device="cuda:0")
    except equicaps.Error as error:
        pytest.skip(str(error))
    for path in ("builtin", run):
        check(path)


def test_the_comparison_itself(run):
    assert "representation 0.0e+00" in check(run, device="cpu")
    assert largest_difference([[3.0, 4.0], [0.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]]) == 1.0
