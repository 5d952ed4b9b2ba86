# Makes published.pth: python3 published.py published.pth
# The names of the published EquiCaps code at a small size. Numbers repeat along all axes but the last, so that the file is small:
# first = length of the name, then steps of 1/128.
import sys

import torch

N, P, C, S = 16, 9, 8, 1
shapes = {"backbone.conv1.weight": (C, 3, 7, 7)}


def bn(name, width):
    for part in ("weight", "bias", "running_mean", "running_var"):
        shapes[f"{name}.{part}"] = (width,)
    shapes[f"{name}.num_batches_tracked"] = ()


bn("backbone.bn1", C)
before = C
for layer in range(1, 5):
    width = C << (layer - 1)
    for block in range(2):
        at = f"backbone.layer{layer}.{block}"
        shapes[f"{at}.conv1.weight"] = (width, before if block == 0 else width, 3, 3)
        bn(f"{at}.bn1", width)
        shapes[f"{at}.conv2.weight"] = (width, width, 3, 3)
        bn(f"{at}.bn2", width)
        if block == 0:
            shapes[f"{at}.downsample.0.weight"] = (width, before, 1, 1)
            bn(f"{at}.downsample.1", width)
    before = width
shapes["projector.conv_a.weight"] = (N, before, 3, 3)
bn("projector.bn_a", N)
shapes["projector.conv_pose.weight"] = (N * P, before, 3, 3)
bn("projector.bn_pose", N * P)
K = S * S * N
shapes["projector.fc.W1"] = (K, N * P, P)
shapes["projector.fc.W2"] = (K, N, P)
shapes["projector.fc.b2"] = (1, 1, K, N)
shapes["evaluator.classifier_repr.weight"] = (55, before)

model = {}
for name, shape in shapes.items():
    if shape == ():
        model[f"module.{name}"] = torch.tensor(100)
    else:
        row = (len(name) + torch.arange(shape[-1])) / 128
        model[f"module.{name}"] = row.expand(shape)
torch.save({"epoch": 1999, "model": model, "optimizer": {"state": {}, "param_groups": [{"lr": 1e-3}]}}, sys.argv[1])
