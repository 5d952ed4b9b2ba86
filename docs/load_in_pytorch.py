"""Weights of equicaps in PyTorch: the published ResNet-18 with the capsule projector, as one nn.Module.

    python docs/load_in_pytorch.py RUN/checkpoints/epoch_00060.safetensors picture.jpg ...

Needs torch, safetensors, numpy and pillow. The backbone is *not* torchvision's resnet18: strides, padding and
shortcuts differ, so the same weights in that network give other numbers without any warning.
"""

import sys

import numpy as np
import torch
from PIL import Image, ImageOps
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn
from torch.nn.functional import interpolate, max_pool2d, pad

MEAN = torch.tensor([0.5016, 0.5037, 0.5060]).view(3, 1, 1)
STD = torch.tensor([0.1030, 0.0999, 0.0969]).view(3, 1, 1)


class Block(nn.Module):
    """Two convolutions; the stride is in the second, which is padded on the right and below only."""

    def __init__(self, inputs, width, stride, first):
        super().__init__()
        self.stride = stride
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, bias=False), nn.BatchNorm2d(width)
        shortcut = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        self.downsample = shortcut if first else nn.Identity()

    def forward(self, x):
        inner = self.bn1(self.conv1(x)).relu()
        inner = pad(inner, (1, 1, 1, 1) if self.stride == 1 else (0, 1, 0, 1))
        return (self.bn2(self.conv2(inner)) + self.downsample(x)).relu()


class Backbone(nn.Module):
    """(batch, 3, side, side) -> (batch, 8 width, side / 32, side / 32)."""

    def __init__(self, width=64):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, bias=False), nn.BatchNorm2d(width)
        inputs = width
        for stage in range(4):
            outputs, stride = width << stage, 1 if stage == 0 else 2
            blocks = Block(inputs, outputs, stride, True), Block(outputs, outputs, 1, False)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = outputs

    def forward(self, x):
        x = self.bn1(self.conv1(pad(x, (2, 3, 2, 3)))).relu()
        x = max_pool2d(pad(x, (0, 1, 0, 1), value=-10000.0), 3, 2)
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


class Capsules(nn.Module):
    """A map of features -> activations (batch, capsules) and poses (batch, capsules, 3, 3 or 4, 4)."""

    def __init__(self, inputs, capsules, pose, positions):
        super().__init__()
        self.capsules, self.pose = capsules, pose
        self.conv_a, self.bn_a = nn.Conv2d(inputs, capsules, 3, padding=1, bias=False), nn.BatchNorm2d(capsules)
        self.conv_pose = nn.Conv2d(inputs, capsules * pose, 3, padding=1, bias=False)
        self.bn_pose = nn.BatchNorm2d(capsules * pose)
        lower = positions * capsules
        self.fc = nn.ParameterDict({
            "W1": torch.empty(lower, capsules * pose, pose),
            "W2": torch.empty(lower, capsules, pose),
            "b2": torch.empty(1, 1, lower, capsules),
        })

    def forward(self, x):
        batch, count, pose = len(x), self.capsules, self.pose
        a = self.bn_a(self.conv_a(x)).sigmoid().permute(0, 2, 3, 1).reshape(batch, -1)
        u = self.bn_pose(self.conv_pose(x)).permute(0, 2, 3, 1).reshape(batch, -1, pose)
        route = (torch.einsum("bip,ijp->bij", u, self.fc["W2"]) + self.fc["b2"][0]).softmax(2) * a[..., None]
        votes = torch.einsum("bip,ijqp->bijq", u, self.fc["W1"].view(-1, count, pose, pose))
        activations = route.sum(1) / a.sum(1, keepdim=True)
        poses = (route[..., None] * votes).sum(1) / route.sum(1)[..., None]
        side = round(pose**0.5)
        return activations, poses.view(batch, count, side, side)


class EquiCaps(nn.Module):
    """Pictures as `prepare` gives them -> representation, activations, poses."""

    def __init__(self, checkpoint):
        super().__init__()
        weights = load_file(checkpoint)
        routing = weights["projector.fc.W2"].shape
        width = weights["backbone.conv1.weight"].shape[0]
        self.backbone = Backbone(width)
        self.projector = Capsules(8 * width, routing[1], routing[2], routing[0] // routing[1])
        own = {name: value for name, value in weights.items() if name.startswith(("backbone.", "projector."))}
        self.load_state_dict(own)
        self.eval()

    def forward(self, x):
        features = self.backbone(x)
        return features.mean((2, 3)), *self.projector(features)


def prepare(path, side):
    """The picture as the network takes it: upright, the whole of it, at side x side."""
    picture = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float()
    # Not Pillow's resize: it rounds between rows and columns, and a level of 255 is a lot after MEAN and STD.
    pixels = interpolate(pixels[None], (side, side), mode="bilinear", antialias=True)[0].add(0.5).floor()
    return (pixels / 255 - MEAN) / STD


def image_size(checkpoint):
    """The side that the network was trained at: it is in the checkpoint's metadata."""
    with safe_open(checkpoint, "pt") as file:
        settings = file.metadata()["config"].splitlines()
    return next(int(line.split("=")[1]) for line in settings if line.startswith("image_size"))


if __name__ == "__main__":
    checkpoint, *paths = sys.argv[1:]
    network, side = EquiCaps(checkpoint), image_size(checkpoint)
    with torch.no_grad():
        h, activations, poses = network(torch.stack([prepare(path, side) for path in paths]))
    for row, path in enumerate(paths):
        print(path, "representation", h[row, :3].tolist(), "pose of capsule 0", poses[row, 0].tolist())
