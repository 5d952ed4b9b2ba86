#!/usr/bin/env python3
"""Hashes of what the program makes, for comparing two builds on one machine.

    cargo build --release && python3 tests/oracle.py target/release/equicaps > now.txt
    diff tests/oracle.txt now.txt

Each line is a SHA-256 and a name: every file of small rendered datasets (folders and shards), the checkpoint's tensors
and the metrics (without timing) of a short run of every method, the features and the numbers of one evaluation. Bits
depend on the processor's vector width, so `oracle.txt` belongs to the machine on which it was made; on another one make
it with the older build first. Lines that begin with `value` hold numbers of probes, which may differ in their last
digits.
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import tomllib

METHODS = ["supervised", "vicreg", "simclr", "simclr_augself", "sen", "equimod", "sie", "capsie", "equicaps"]

CUBE = """mtllib cube.mtl
v -1 -1 -1
v 1 -1 -1
v 1 1 -1
v -1 1 -1
v -1 -1 1
v 1 -1 1
v 1 1 1
v -1 1 1
usemtl red
f 1 2 3 4
f 5 6 7 8
usemtl blue
f 1 5 6 2
f 3 7 8 4
f 2 6 7 3
"""

SMALL = [
    "--preset", "demo", "--set", "batch=6", "--set", "image_size=32", "--set", "network.width=8",
    "--set", "network.capsules=4", "--set", "network.projector=[16, 16, 12]", "--set", "epochs=3",
    "--set", "logging.every_steps=1", "--set", "checkpoints.every_epochs=1", "--set", "probes.held_out_every=1",
    "--set", "guards.every_steps=1",
]  # fmt: skip


def line(data, name):
    data = data if isinstance(data, bytes) else data.encode()
    print(hashlib.sha256(data).hexdigest()[:32], name)


def run(binary, folder, *arguments):
    command = [binary, *arguments, "--quiet"]
    # Without `--device` a GPU would be used where there is one.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)}: status {done.returncode}: {done.stderr}")
    return done.stdout


def files(root, name):
    for folder, folders, names in sorted(os.walk(root)):
        folders.sort()
        for file in sorted(names):
            path = os.path.join(folder, file)
            with open(path, "rb") as opened:
                line(opened.read(), f"{name}/{os.path.relpath(path, root)}")


def tensors(path):
    """The tensors of a safetensors file, with their names and shapes; metadata count apart."""
    with open(path, "rb") as opened:
        data = opened.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    metadata.pop("checksum")
    body = data[8 + length :]
    hashed = hashlib.sha256()
    for name in sorted(header):
        entry = header[name]
        begin, end = entry["data_offsets"]
        hashed.update(f"{name} {entry['dtype']} {entry['shape']}".encode() + body[begin:end])
    return hashed.digest(), json.dumps(metadata, sort_keys=True)


def training(binary, root, name, *arguments):
    run(binary, root, "train", *SMALL, "--run", f"runs/{name}", *arguments)
    folder = os.path.join(root, "runs", name)
    newest = sorted(os.listdir(os.path.join(folder, "checkpoints")))[-1]
    weights, metadata = tensors(os.path.join(folder, "checkpoints", newest))
    line(weights, f"train/{name}/{newest} tensors")
    line(metadata, f"train/{name}/{newest} metadata")
    kept = []
    with open(os.path.join(folder, "metrics.jsonl")) as opened:
        for text in opened:
            record = json.loads(text)
            record.pop("timing", None)
            kept.append(json.dumps(record))
    line("\n".join(kept), f"train/{name}/metrics")
    with open(os.path.join(folder, "config.toml"), "rb") as opened:
        line(json.dumps(tomllib.load(opened), sort_keys=True), f"train/{name}/config.toml")


def numbers(value, name):
    """Every number of an evaluation: those of probes as they are, all others as hashes."""
    if isinstance(value, dict):
        for key in value:
            if key not in ("seconds", "weights", "path", "version"):
                numbers(value[key], f"{name}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            numbers(item, f"{name}/{index}")
    elif "/representations/" in name or "/embeddings/" in name:
        print("value", name, value)
    else:
        line(json.dumps(value), name)


def main(binary):
    with tempfile.TemporaryDirectory() as root:
        mesh = os.path.join(root, "meshes", "box", "cube")
        os.makedirs(mesh)
        with open(os.path.join(mesh, "cube.obj"), "w") as opened:
            opened.write(CUBE)
        with open(os.path.join(mesh, "cube.mtl"), "w") as opened:
            opened.write("newmtl red\nKd 0.9 0.1 0.1\nNs 90\nKs 0.4 0.4 0.4\nnewmtl blue\nKd 0.1 0.2 0.9\n")
        small = ["--views", "4", "--size", "48"]
        run(binary, root, "render", "--procedural", "3x5", *small, "--quality", "fast", "--out", "views")
        files(os.path.join(root, "views"), "files")
        shards = ["--format", "shards", "--objects-per-tar", "3", "--preset", "3diebench"]
        run(binary, root, "render", "--procedural", "3x4", *small, *shards, "--out", "shards")
        files(os.path.join(root, "shards"), "shards")
        run(binary, root, "render", "--meshes", "meshes", *small, "--quality", "reference", "--out", "cube")
        files(os.path.join(root, "cube"), "meshes")
        for method in METHODS:
            training(binary, root, method, "--method", method, "--data", "views")
        training(binary, root, "object", "--data", "views", "--set", "transform=rotation+object")
        training(binary, root, "sie_base", "--method", "sie", "--data", "views", "--set", "transform=rotation+base")
        training(binary, root, "vit", "--data", "views", "--set", "backbone=vit_tiny", "--set", "epochs=1")
        training(binary, root, "cosine", "--data", "shards", "--set", "schedule=cosine", "--set", "warmup_epochs=1")
        fresh = ["--set", "refresh=0.5", "--set", "procedural.views=4"]
        training(binary, root, "fresh", "--data", "procedural:2x5", *fresh)
        training(binary, root, "from", "--data", "views", "--init-from", "runs/equicaps", "--set", "seed=3")
        for name in ["equicaps", "sie", "supervised"]:
            arguments = ["--data", "views", "--preset", "quick", "--json"]
            found = json.loads(run(binary, root, "evaluate", f"runs/{name}", *arguments))
            numbers(found, f"evaluate/{name}")
            features = os.path.join(root, "runs", name, "evaluation", "features")
            for part in sorted(os.listdir(features)):
                files(os.path.join(features, part), f"features/{name}")
        for name in ["features.npy", "features.safetensors"]:
            run(binary, root, "embed", "runs/equicaps", "views", "--out", name)
            with open(os.path.join(root, name), "rb") as opened:
                line(opened.read(), f"embed/{name}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(os.path.abspath(sys.argv[1]))
