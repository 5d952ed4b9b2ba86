#!/usr/bin/env python3
"""Writes crates/methods/tests/fixtures/equicaps_32.safetensors: one step of EquiCaps with 32 capsules in float64.

The formulas are those of docs/methods.md and of the paper, written down once more, with JAX for the gradients
(`pip install jax`). Before it writes anything, the script repeats equicaps_3x3.safetensors, which the published code
made (4 capsules), and compares every number. The new file has a network of the same backbone with 32 capsules, whose
weights are random and exact in bfloat16.

    python3 tools/capsule_fixture.py crates/methods/tests/fixtures
"""
import json
import struct
import sys
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np

CAPSULES, POSE = 32, 9
SIZES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def read(path):
    """Tensors by name as float64, and the settings."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    settings = header.pop("__metadata__", {}).get("settings", "{}")
    tensors = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        values = np.frombuffer(body[start:end], SIZES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64)
    return tensors, json.loads(settings)


def write(path, tensors, settings):
    """Weights as bfloat16, which holds them exactly; the rest as float32."""
    header, body = {"__metadata__": {"settings": json.dumps(settings)}}, b""
    for name in sorted(tensors):
        values = np.asarray(tensors[name], np.float32)
        if name.startswith("param/"):
            raw, kind = (values.view(np.uint32) >> 16).astype("<u2").tobytes(), "BF16"
        else:
            raw, kind = values.astype("<f4").tobytes(), "F32"
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def conv(x, w, stride=1, padding=((0, 0), (0, 0))):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NCHW", "OIHW", "NCHW"))


def batch_norm(x, p, name, stats):
    mean = x.mean((0, 2, 3))
    var = ((x - mean[None, :, None, None]) ** 2).mean((0, 2, 3))
    count = x.shape[0] * x.shape[2] * x.shape[3]
    stats.setdefault(name, []).append((mean, var * count / (count - 1)))
    shape = (1, -1, 1, 1)
    x = (x - mean.reshape(shape)) / jnp.sqrt(var.reshape(shape) + 1e-5)
    return x * p[name + ".weight"].reshape(shape) + p[name + ".bias"].reshape(shape)


def backbone(p, x, stats):
    x = conv(x, p["backbone.conv1.weight"], 2, ((2, 3), (2, 3)))
    x = jax.nn.relu(batch_norm(x, p, "backbone.bn1", stats))
    x = jnp.pad(x, ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=-10000.0)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
    one, end = ((1, 1), (1, 1)), ((0, 1), (0, 1))
    for stage in range(1, 5):
        for block in range(2):
            name = f"backbone.layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            y = conv(x, p[name + ".conv1.weight"], 1, one)
            y = jax.nn.relu(batch_norm(y, p, name + ".bn1", stats))
            y = conv(y, p[name + ".conv2.weight"], stride, one if stride == 1 else end)
            y = batch_norm(y, p, name + ".bn2", stats)
            if block == 0:
                x = conv(x, p[name + ".downsample.0.weight"], stride)
                x = batch_norm(x, p, name + ".downsample.1", stats)
            x = jax.nn.relu(x + y)
    return x


def projector(p, x, stats):
    """Activations (B, N) and poses (B, N, P)."""
    one = ((1, 1), (1, 1))
    a = jax.nn.sigmoid(batch_norm(conv(x, p["projector.conv_a.weight"], 1, one), p, "projector.bn_a", stats))
    u = batch_norm(conv(x, p["projector.conv_pose.weight"], 1, one), p, "projector.bn_pose", stats)
    batch, capsules, side, _ = a.shape
    pose = u.shape[1] // capsules
    # Lower capsules: (row * side + column) * N + n.
    a = a.transpose(0, 2, 3, 1).reshape(batch, -1)
    u = u.reshape(batch, capsules, pose, side, side).transpose(0, 3, 4, 1, 2).reshape(batch, -1, pose)
    logits = jnp.einsum("ijp,bip->bij", p["projector.fc.W2"], u) + p["projector.fc.b2"][0, 0][None]
    routing = jax.nn.softmax(logits, axis=2) * a[:, :, None]
    w1 = p["projector.fc.W1"].reshape(-1, capsules, pose, pose)
    votes = jnp.einsum("ijqp,bip->bijq", w1, u)
    mass = routing.sum(1)
    return mass / a.sum(1)[:, None], jnp.einsum("bij,bijq->bjq", routing, votes) / mass[:, :, None]


def variance(z):
    return jax.nn.relu(1 - jnp.sqrt(z.var(0, ddof=1) + 1e-4)).mean() / 2


def covariance(z):
    z = z - z.mean(0)
    c = z.T @ z / (z.shape[0] - 1)
    return ((c**2).sum() - (jnp.diag(c) ** 2).sum()) / z.shape[1]


def terms(p, views, transform):
    stats = {}
    (ax, px), (ay, py) = [projector(p, backbone(p, view, stats), stats) for view in views]
    batch, capsules, pose = px.shape
    side = int(round(pose**0.5))
    matrix = lambda poses: poses.reshape(batch, capsules, side, side)
    unit = lambda m: m / jnp.sqrt((m**2).sum((2, 3), keepdims=True))
    x, y = unit(matrix(px) @ transform[:, None]), unit(matrix(py))
    memax = lambda a: jnp.log(capsules) + (a.mean(0) * jnp.log(a.mean(0))).sum()
    zx, zy = (jnp.concatenate([a, m.reshape(batch, -1)], 1) for a, m in ((ax, x), (ay, y)))
    found = {
        "repr_loss_inv": -(ay * jnp.log(ax)).sum(1).mean(),
        "MEMAX_loss": memax(ax) + memax(ay),
        "repr_loss_equi": ((x - y) ** 2).mean(),
        "std_loss": variance(zx) + variance(zy),
        "cov_loss": covariance(zx) + covariance(zy),
    }
    weights = {"repr_loss_inv": 0.1, "MEMAX_loss": 1, "repr_loss_equi": 5, "std_loss": 10, "cov_loss": 1}
    return sum(weight * found[name] for name, weight in weights.items()), (found, stats)


def step(tensors, inputs):
    """What a fixture holds of one step with the weights in `tensors`."""
    p = {name[6:]: jnp.asarray(value) for name, value in tensors.items() if name.startswith("param/")}
    views = [jnp.asarray(inputs[f"in/view{k}"]) for k in (1, 2)]
    transform = jnp.asarray(tensors["in/transform"])
    (loss, (found, stats)), gradients = jax.value_and_grad(terms, has_aux=True)(p, views, transform)
    result = {"stat/loss": loss} | {f"stat/{name}": value for name, value in found.items()}
    result |= {f"grad/{name}": value for name, value in gradients.items()}
    for name, both in stats.items():
        mean, var = 0.0, 1.0
        for batch_mean, batch_var in both:
            mean, var = 0.9 * mean + 0.1 * batch_mean, 0.9 * var + 0.1 * batch_var
        result |= {f"buffer_after/{name}.running_mean": mean, f"buffer_after/{name}.running_var": var}
    return {name: np.asarray(value) for name, value in result.items()}


def main():
    folder = Path(sys.argv[1])
    inputs, _ = read(folder / "inputs.safetensors")
    published, settings = read(folder / "equicaps_3x3.safetensors")
    found, compared, worst = step(published, inputs), 0, 0.0
    whole = np.sqrt(sum((value**2).sum() for name, value in found.items() if name.startswith("grad/")))
    for name, reference in published.items():
        if name in found:
            scale = max(np.linalg.norm(reference), 1e-7 * whole)
            worst = max(worst, np.linalg.norm(found[name] - reference) / scale)
            compared += 1
    print(f"published, 4 capsules: {compared} tensors, worst relative difference {worst:.1e}")
    assert compared > 120 and worst < 1e-5, "not what the published code computes"

    random = np.random.default_rng(32)
    tensors = {name: value for name, value in published.items() if name.startswith(("param/backbone", "in/"))}
    channels = tensors["param/backbone.layer4.1.conv2.weight"].shape[0]
    lower = 4 * CAPSULES
    shapes = {
        "conv_a.weight": (CAPSULES, channels, 3, 3),
        "conv_pose.weight": (CAPSULES * POSE, channels, 3, 3),
        "fc.W1": (lower, CAPSULES * POSE, POSE),
        "fc.W2": (lower, CAPSULES, POSE),
        "fc.b2": (1, 1, lower, CAPSULES),
    }
    for name, shape in shapes.items():
        spread = 1 / np.sqrt(9 * channels) if name.startswith("conv") else 0.3
        tensors[f"param/projector.{name}"] = random.normal(0, spread, shape)
    for name, count in (("bn_a", CAPSULES), ("bn_pose", CAPSULES * POSE)):
        tensors[f"param/projector.{name}.weight"] = random.uniform(0.5, 1.5, count)
        tensors[f"param/projector.{name}.bias"] = random.normal(0, 0.3, count)
    for name, value in tensors.items():
        if name.startswith("param/"):
            bits = np.asarray(value, np.float32).view(np.uint32) >> 16 << 16
            tensors[name] = bits.view(np.float32).astype(np.float64)
    kept = ("projector.conv_a", "projector.bn_", "projector.fc.W2", "projector.fc.b2", "backbone.conv1", "backbone.layer4.1.bn")
    for name, value in step(tensors, inputs).items():
        place = name.split("/", 1)[1]
        if name.startswith("stat/") or place.startswith(kept):
            tensors[name] = value
    settings |= {"capsules": CAPSULES}
    write(folder / "equicaps_32.safetensors", tensors, settings)


main()
