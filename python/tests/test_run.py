"""Metrics are those in the file, flat."""

import json
import math

import pytest

import equicaps


def test_metrics_are_flat_rows(run):
    training = equicaps.Run(run)
    rows = training.metrics()
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) == len(lines) > 2
    for row, line in zip(rows, lines):
        timing = {f"timing/{name}": value for name, value in line.get("timing", {}).items()}
        head = {name: line[name] for name in ("kind", "epoch", "step")}
        assert row == {**head, **line["values"], **timing}
    assert [row["kind"] for row in training.metrics(kind="epoch")] == ["epoch"] * 2
    assert training.config["epochs"] == 2 and training.config["network"]["capsules"] == 8
    assert training.name == "equicaps" and training.state == "finished"
    assert training.load("cpu").weights == training.checkpoints[-1]


def test_numbers_that_json_lacks(run, tmp_path):
    (tmp_path / "config.toml").write_text((run / "config.toml").read_text())
    line = {"kind": "step", "epoch": 1, "step": 1, "values": {"loss": "NaN", "other": "inf"}}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n" + '{"kind": "st')
    [row] = equicaps.Run(tmp_path).metrics()
    assert math.isnan(row["loss"]) and row["other"] == math.inf


def test_what_is_wrong_is_said(run, tmp_path):
    with pytest.raises(equicaps.Error, match="holds no run: it has no config.toml"):
        equicaps.Run(tmp_path)
    with pytest.raises(ValueError, match="kind is 'steps'"):
        equicaps.Run(run).metrics("steps")
