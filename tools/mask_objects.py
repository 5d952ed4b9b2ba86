"""Writes the objects by which docs/rendering.md says what a mask costs: python3 tools/mask_objects.py FOLDER.

Each folder of it is for `equicaps bench render --meshes FOLDER/NAME`: `cards` is a crown of leaves on cards, `leaves` the same leaves as
polygons, `solid` the cards without a mask; `holes` and `texels` are closed shells with a mask all over, `cut` those with holes made of
polygons, `plain` the same without holes.
Needs nothing but Python.
"""

import math
import random
import struct
import sys
import zlib
from pathlib import Path

LEAVES = 3_000
# A leaf on its card, in texture coordinates.
LEAF = [(0.5, 0.02), (0.68, 0.16), (0.8, 0.36), (0.8, 0.56), (0.68, 0.8), (0.5, 0.98), (0.32, 0.8), (0.2, 0.56), (0.2, 0.36), (0.32, 0.16)]


def png(path, side, alpha):
    """A green picture with the alpha of `alpha(x, y)`, 0 to 255."""
    rows = b"".join(
        b"\0" + b"".join(bytes((60, 120, 50, alpha(x, y))) for x in range(side)) for y in range(side)
    )

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 6, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def is_in_leaf(x, y):
    inside = False
    for (ax, ay), (bx, by) in zip(LEAF, LEAF[1:] + LEAF[:1]):
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
    return inside


def leaf_alpha(side):
    def alpha(x, y):
        parts = [((x + (i + 0.5) / 4) / side, 1 - (y + (j + 0.5) / 4) / side) for i in range(4) for j in range(4)]
        return sum(is_in_leaf(*part) for part in parts) * 255 // 16

    return alpha


class Object:
    """The only class of a folder `root/name` has it: an OBJ file with one material."""

    def __init__(self, root, name, thing, mask=None, side=64):
        self.path = root / name / "thing" / thing
        self.path.mkdir(parents=True, exist_ok=True)
        self.lines = ["mtllib object.mtl", "usemtl one"]
        self.count = 0
        mtl = "newmtl one\nKd 0.3 0.5 0.25\nNs 20\n"
        if mask:
            png(self.path / "mask.png", side, mask)
            mtl += "map_Kd mask.png\nmap_d mask.png\n"
        (self.path / "object.mtl").write_text(mtl)

    def face(self, points, uvs):
        for point, uv in zip(points, uvs):
            self.lines.append("v %.5f %.5f %.5f" % tuple(point))
            self.lines.append("vt %.5f %.5f" % tuple(uv))
        self.lines.append("f " + " ".join("%d/%d" % (self.count + i, self.count + i) for i in range(1, len(points) + 1)))
        self.count += len(points)

    def close(self):
        (self.path / "object.obj").write_text("\n".join(self.lines) + "\n")


def crown(root):
    objects = [
        (Object(root, "cards", "crown", leaf_alpha(64)), [(0, 0), (1, 0), (1, 1), (0, 1)]),
        (Object(root, "leaves", "crown"), LEAF),
        (Object(root, "solid", "crown"), [(0, 0), (1, 0), (1, 1), (0, 1)]),
    ]
    rng = random.Random(1)
    for _ in range(LEAVES):
        while True:
            centre = [rng.uniform(-1, 1) for _ in range(3)]
            if sum(c * c for c in centre) <= 1:
                break
        axes = []
        for _ in range(2):
            axis = [rng.gauss(0, 1) for _ in range(3)]
            for other in axes:
                along = sum(a * b for a, b in zip(axis, other))
                axis = [a - along * b for a, b in zip(axis, other)]
            length = math.sqrt(sum(a * a for a in axis))
            axes.append([a / length for a in axis])
        side = rng.uniform(0.12, 0.2)
        for mesh, corners in objects:
            points = [
                [c + side * ((u - 0.5) * a + (v - 0.5) * b) for c, a, b in zip(centre, *axes)] for u, v in corners
            ]
            mesh.face(points, corners)
    for mesh, _ in objects:
        mesh.close()


def shells(root):
    def torus(u, v):
        a, b = 2 * math.pi * u, 2 * math.pi * v
        return ((1 + 0.4 * math.cos(b)) * math.cos(a), 0.4 * math.sin(b), (1 + 0.4 * math.cos(b)) * math.sin(a))

    def vase(u, v):
        a, radius = 2 * math.pi * u, 0.05 + math.sin(math.pi * v) * (0.45 + 0.15 * math.sin(5 * v))
        return (radius * math.cos(a), 1.8 * v - 0.9, radius * math.sin(a))

    def bumpy(u, v):
        a, b = 2 * math.pi * u, math.pi * v
        radius = 1 + 0.1 * math.sin(6 * a) * math.sin(b) * math.sin(6 * b)
        return (radius * math.sin(b) * math.cos(a), radius * math.cos(b), radius * math.sin(b) * math.sin(a))

    def round_holes(x, y):
        dx, dy = (x % 32 - 15.5) / 32, (y % 32 - 15.5) / 32
        return 0 if math.hypot(dx, dy) < 0.25 else 255

    # A cell of the map, a sixteenth of its side, from -0.5 to 0.5: its border and the edge of its hole, in 16 steps each.
    angles = [2 * math.pi * (k + 0.5) / 16 for k in range(16)]
    hole = [(0.25 * math.cos(a), 0.25 * math.sin(a)) for a in angles]
    border = [(x / (2 * max(abs(x), abs(y))), y / (2 * max(abs(x), abs(y)))) for x, y in hole]
    corners = {1: (0.5, 0.5), 5: (-0.5, 0.5), 9: (-0.5, -0.5), 13: (0.5, -0.5)}

    def cut(mesh, place):
        for i in range(16):
            for j in range(16):
                for k in range(16):
                    ring = [hole[k], border[k], *([corners[k]] if k in corners else []), border[(k + 1) % 16], hole[(k + 1) % 16]]
                    uvs = [((i + 0.5 + x) / 16, (j + 0.5 + y) / 16) for x, y in ring]
                    mesh.face([place(u, v) for u, v in uvs], uvs)

    def texels(x, y):
        return 0 if (x + 2 * y) % 5 == 0 else 255

    masks = {"plain": (None, 1), "holes": (round_holes, 512), "texels": (texels, 64)}
    for name, (mask, side) in masks.items():
        for thing, place in (("torus", torus), ("vase", vase), ("bumpy", bumpy)):
            mesh = Object(root, name, thing, mask, side)
            for i in range(64):
                for j in range(48):
                    uvs = [(i / 64, j / 48), ((i + 1) / 64, j / 48), ((i + 1) / 64, (j + 1) / 48), (i / 64, (j + 1) / 48)]
                    mesh.face([place(u, v) for u, v in uvs], uvs)
            mesh.close()
    for thing, place in (("torus", torus), ("vase", vase), ("bumpy", bumpy)):
        mesh = Object(root, "cut", thing)
        cut(mesh, place)
        mesh.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    crown(Path(sys.argv[1]))
    shells(Path(sys.argv[1]))
