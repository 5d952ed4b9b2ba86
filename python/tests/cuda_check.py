"""Compares a GPU with the CPU through the package: features, moved poses, renders. `python cuda_check.py [RUN] [DEVICE]`"""

import sys

import numpy as np

import equicaps


def largest_difference(found, wanted):
    """Of the rows of two arrays, relative to the norm of the wanted row."""
    found, wanted = (np.reshape(array, (len(array), -1)).astype(np.float64) for array in (found, wanted))
    return float((abs(found - wanted).max(axis=1) / np.linalg.norm(wanted, axis=1)).max())


def check(path="builtin", device="cuda:0"):
    """Returns what was found, as one line; fails where a feature differs by more than 1e-3 of its norm."""
    gpu, cpu = equicaps.load(path, device=device), equicaps.load(path, device="cpu")
    assert gpu.device == device, f"computed on {gpu.device}, wanted {device}"
    shape = (64, cpu.image_size, cpu.image_size, 3)
    images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    found, wanted = gpu.features(images), cpu.features(images)
    assert (gpu.encode(images).shape, gpu.poses(images).shape) == (wanted["representation"].shape, wanted["poses"].shape)
    for encoder, features in ((gpu, found), (cpu, wanted)):
        features["moved poses"] = encoder.steer(features["poses"], rotate=(10, 20, 30))
    differences = {name: largest_difference(found[name], wanted[name]) for name in wanted}
    assert all(np.isfinite(array).all() for array in found.values())
    assert max(differences.values()) <= 1e-3, differences
    latents = equicaps.sample_latents(8, seed=1)
    on_gpu, on_cpu = (equicaps.render("procedural:airplane/3", latents, 64, device=where) for where in (device, "cpu"))
    apart = abs(on_gpu.astype(int) - on_cpu).max(axis=3)
    assert (apart > 8).mean() <= 0.01, f"{(apart > 8).mean():.2%} of the pixels differ by more than 8"
    listed = ", ".join(f"{name} {difference:.1e}" for name, difference in differences.items())
    return f"{gpu!r} against the CPU: {listed} (of the norm); renders: {(apart > 2).mean():.2%} of the pixels differ by more than 2"


if __name__ == "__main__":
    print(check(*sys.argv[1:]))
