"""Images are those of the program; wrong latents are named."""

import json

import numpy as np
import pytest

import equicaps

TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n"


@pytest.fixture
def mesh(tmp_path):
    path = tmp_path / "mesh.obj"
    path.write_text(TETRAHEDRON)
    return path


def decode_png(path):
    """Pixels of an 8-bit RGB file, filters 0 to 4."""
    import struct
    import zlib

    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IHDR":
            width, height = struct.unpack(">II", data[at + 8 : at + 16])
        if kind == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    image = np.zeros((height + 1, 3 * width + 3), int)
    for y, line in enumerate(lines):
        for x, byte in enumerate(line[1:].tolist(), 3):
            left, up, corner = image[y + 1, x - 3], image[y, x], image[y, x - 3]
            paeth = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            image[y + 1, x] = (byte + [0, left, up, (left + up) // 2, paeth][line[0]]) % 256
    return image[1:, 3:].reshape(height, width, 3)


def test_images_are_those_of_render_views(program, mesh, tmp_path):
    latents = equicaps.sample_latents(3, preset="3diebench-t", seed=4)
    names = ["floor_hue", "spot_theta", "spot_phi", "spot_hue"]
    record = lambda row: dict(zip(names, row[3:7]), rotation_xyz=list(row[:3]), translation_xyz=list(row[7:]))
    views = [dict(record(row), image=f"{n}.png", mesh="mesh.obj") for n, row in enumerate(latents.tolist())]
    (tmp_path / "views.json").write_text(json.dumps(views))
    where = ["--views", tmp_path / "views.json", "--root", tmp_path, "--out", tmp_path / "out"]
    program("render", "views", *where, "--size", 24, "--quality", "fast")
    images = equicaps.render(mesh, latents, size=24, quality="fast")
    for number, image in enumerate(images):
        assert (image == decode_png(tmp_path / "out" / f"{number}.png")).all()


def test_latents_and_objects_are_those_of_datasets(views):
    data = equicaps.Dataset(views)
    for row in range(0, 24, 4):
        name = data.object_names[data.objects[row]]
        assert (equicaps.sample_latents(4, object=name) == data.latents[row : row + 4]).all()
    row = 5
    synset, number = data.object_names[data.objects[row]].split("/")
    image = equicaps.render(f"procedural:{synset}/{int(number)}", data.latents[row], size=32)[0]
    # JPEG files lose a little.
    assert np.abs(image.astype(int) - data[row][0]).mean() < 4


def test_the_empty_scene_and_one_row(mesh):
    latents = equicaps.sample_latents(2)
    empty = equicaps.render(None, latents[0], size=16)
    assert empty.shape == (1, 16, 16, 3)
    assert (equicaps.render(None, latents, size=16)[0] == empty[0]).all()
    assert (equicaps.render(mesh, latents[0], size=16) != empty).any()
    assert equicaps.render(mesh, latents[:0], size=16).shape == (0, 16, 16, 3)


def test_what_is_wrong_is_said(mesh):
    latents = equicaps.sample_latents(2)
    with pytest.raises(ValueError, match=r"latents have shape \(2, 6\), expected \(N, 7\) or \(N, 10\)"):
        equicaps.render(mesh, latents[:, :6])
    latents[1, 2] = np.nan
    with pytest.raises(ValueError, match="row 1 of the latents: latent 2 is NaN, expected a finite number"):
        equicaps.render(mesh, latents)
    latents = equicaps.sample_latents(2)
    with pytest.raises(ValueError, match="unknown quality `best`"):
        equicaps.render(mesh, latents, quality="best")
    for size in (0, 9000):
        with pytest.raises(ValueError, match=f"size is {size}, expected 1 to 8192"):
            equicaps.render(mesh, latents, size=size)
    with pytest.raises(ValueError, match='rendered on "cpu" or "cuda:N"'):
        equicaps.render(mesh, latents, device="auto")
    with pytest.raises(equicaps.Error, match='there is no class "plane"; there are airplane, '):
        equicaps.render("procedural:plane/0", latents)
    with pytest.raises(equicaps.Error, match="expected procedural:CLASS/INDEX"):
        equicaps.render("procedural:airplane", latents)
    with pytest.raises(ValueError, match="expected 3diebench, 3diebench-t or 3diebench-ood"):
        equicaps.sample_latents(2, preset="other")
    mesh.write_text("v 0 0 0\n")
    with pytest.raises(equicaps.Error, match="mesh.obj"):
        equicaps.render(mesh, latents)
