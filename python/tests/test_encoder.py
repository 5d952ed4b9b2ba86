"""Features are those of the program, whatever way images come in; poses move as documented."""

import signal
import threading
import time

import numpy as np
import pytest

import equicaps


@pytest.fixture(scope="module")
def encoder(run):
    return equicaps.load(run, device="cpu")


@pytest.fixture(scope="module")
def images(views):
    return equicaps.Dataset(views).images()


def embedded(program, weights, what, folder, *images):
    out = folder / f"{what}.npy"
    program("embed", weights, *images, "--what", what, "--out", out, "--device", "cpu")
    return np.load(out)


@pytest.mark.parametrize("what", ["representation", "activations", "poses"])
def test_features_are_those_of_embed(program, encoder, run, views, tmp_path, what):
    wanted = embedded(program, run, what, tmp_path, views)
    found = encoder.features(views)[what].reshape(len(wanted), -1)
    assert wanted.dtype == found.dtype == np.float32
    assert wanted.tobytes() == found.tobytes()
    alone = {"representation": encoder.encode, "activations": encoder.activations, "poses": encoder.poses}[what]
    assert alone(views).tobytes() == wanted.tobytes()


def test_pixels_and_files_are_the_same(encoder, views, images):
    names = equicaps.find_images(views)
    assert len(names) == len(images) == 24
    from_files = encoder.encode(names)
    rows = [np.flatnonzero((from_files == row).all(axis=1)) for row in encoder.encode(images)]
    assert sorted(row[0] for row in rows) == list(range(24))
    assert (encoder.encode(names[3]) == from_files[3]).all()


def test_rows_depend_on_their_image_only(encoder, images):
    many = np.concatenate([images] * 12)
    features = encoder.encode(many)
    assert len(many) > 256
    assert (features.reshape(12, 24, -1) == encoder.encode(images)).all()
    assert (encoder.encode(images[:, ::-1])[:, :] == encoder.encode(images[:, ::-1].copy())).all()
    assert (encoder.encode(list(images[:2])) == encoder.encode(images[:2])).all()
    assert encoder.encode(images[:0]).shape == encoder.encode([]).shape == (0, 128)


def test_other_sizes_are_resized_as_files_are(program, run, encoder, tmp_path):
    import struct
    import zlib

    image = np.random.default_rng(3).integers(0, 256, (40, 56, 3), np.uint8)
    scanlines = b"".join(b"\0" + row.tobytes() for row in image)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 56, 40, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(scanlines)) + chunk(b"IEND", b"")
    file = tmp_path / "image.png"
    file.write_bytes(png)
    wanted = embedded(program, run, "representation", tmp_path, file)
    assert encoder.encode(file).tobytes() == wanted.tobytes()
    assert encoder.encode(image[None]).tobytes() == wanted.tobytes()


def test_checkpoints_and_what_a_network_is(run, encoder, images):
    [checkpoint] = equicaps.Run(run).checkpoints
    other = equicaps.load(checkpoint, device="cpu")
    assert (other.encode(images[:3]) == encoder.encode(images[:3])).all()
    assert (encoder.method, encoder.backbone, encoder.device) == ("equicaps", "resnet18", "cpu")
    assert (encoder.image_size, encoder.capsules, encoder.weights) == (32, (8, 3), checkpoint)
    with pytest.warns(UserWarning, match="the projector does not take images of 64 pixels"):
        larger = equicaps.load(run, "cpu", image_size=64)
    assert (larger.image_size, larger.encode(images[:3]).shape) == (64, (3, 128))
    with pytest.raises(equicaps.Error, match="48 pixels, must be a multiple of 32"):
        equicaps.load(run, "cpu", image_size=48)


def test_wrong_arguments_are_named(encoder, run, tmp_path):
    whole = np.zeros((2, 32, 32, 3), np.uint8)
    with pytest.raises(TypeError, match="images are float32, expected uint8"):
        encoder.encode(whole.astype(np.float32))
    with pytest.raises(ValueError, match=r"images have shape \(2, 32, 32, 4\), expected \(N, height, width, 3\)"):
        encoder.encode(np.zeros((2, 32, 32, 4), np.uint8))
    with pytest.raises(ValueError, match="no pixels"):
        encoder.encode(np.zeros((2, 0, 32, 3), np.uint8))
    with pytest.raises(ValueError, match='there is no device "gpu": use auto, cpu, cuda or cuda:N'):
        equicaps.load(run, device="gpu")
    with pytest.raises(TypeError):
        equicaps.load(3)
    with pytest.raises(equicaps.Error, match="there is no image none.jpg"):
        encoder.encode(["none.jpg"])
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(equicaps.Error, match="broken.png: not a readable PNG"):
        encoder.encode([broken, broken])
    weights = tmp_path / "weights.pth"
    weights.write_bytes(b"PK")
    with pytest.raises(equicaps.Error, match="is a PyTorch file; convert it with: equicaps import"):
        equicaps.load(weights)
    assert issubclass(equicaps.Error, RuntimeError)


def test_poses_are_multiplied_from_the_right(encoder, views, images):
    data = equicaps.Dataset(views)
    poses = encoder.poses(images)
    first, second = data.latents, np.roll(data.latents, 1, axis=0)

    def rotation(latents):
        x, y, z = latents[:3].astype(np.float32).astype(np.float64)
        cos, sin = np.cos, np.sin
        about_x = np.array([[1, 0, 0], [0, cos(x), -sin(x)], [0, sin(x), cos(x)]])
        about_y = np.array([[cos(y), 0, sin(y)], [0, 1, 0], [-sin(y), 0, cos(y)]])
        about_z = np.array([[cos(z), -sin(z), 0], [sin(z), cos(z), 0], [0, 0, 1]])
        return about_z @ about_y @ about_x

    wanted = np.stack([p @ (rotation(a).T @ rotation(b)) for p, a, b in zip(poses, first, second)])
    moved = encoder.steer(poses, first=first, second=second)
    assert moved.dtype == np.float32
    assert np.allclose(moved, wanted, atol=1e-5 * np.abs(wanted).max())
    again = encoder.steer(moved, first=second, second=first)
    assert np.allclose(again, poses, atol=1e-5 * np.abs(poses).max())
    one = encoder.steer(poses, first=first[0], second=second[0])
    assert np.allclose(one, poses @ encoder.motion(first=first[0], second=second[0]), atol=1e-5)
    assert encoder.steer(poses[:0], rotate=(1, 2, 3)).shape == (0, 8, 3, 3)
    with pytest.raises(ValueError, match=r"poses have shape \(24, 72\), expected \(N, 8, 3, 3\)"):
        encoder.steer(poses.reshape(24, -1), rotate=(0, 0, 1))
    with pytest.raises(ValueError, match="there are 3 views for 24 poses"):
        encoder.steer(poses, first=first[:3], second=second[:3])
    with pytest.raises(ValueError, match="belong together"):
        encoder.steer(poses, first=first)
    with pytest.raises(ValueError, match="three finite numbers"):
        encoder.steer(poses, rotate=(0, 0, np.nan))
    with pytest.raises(TypeError, match="poses are int64"):
        encoder.steer(np.zeros((1, 8, 3, 3), int))


def test_predictors_and_methods_without_poses(train, images):
    sie = equicaps.load(train("sie", "network.projector=[32, 32, 24]"), device="cpu")
    poses = sie.poses(images)
    assert (poses.ndim, sie.capsules, len(sie.activations(images))) == (2, None, 24)
    assert sie.steer(poses, rotate=(0, 0, 30)).shape == poses.shape
    with pytest.raises(equicaps.Error, match="no pose matrices"):
        sie.motion(rotate=(0, 0, 30))
    vicreg = equicaps.load(train("vicreg", "network.projector=[32, 32, 24]"), device="cpu")
    with pytest.raises(equicaps.Error, match="a network of vicreg has no activations"):
        vicreg.activations(images)
    with pytest.raises(equicaps.Error, match="of vicreg do not follow transformations"):
        vicreg.steer(vicreg.poses(images), rotate=(0, 0, 30))


def test_other_threads_run_and_one_encoder_serves_many(encoder, images):
    many = np.concatenate([images] * 50)
    wanted, found, ticks = encoder.encode(many), [None] * 3, []

    def work(index):
        found[index] = encoder.encode(many)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        ticks.append(time.monotonic())
        time.sleep(0.001)
    assert len(ticks) > 3, "the interpreter was held"
    assert all((rows == wanted).all() for rows in found)


def test_ctrl_c_ends_a_long_call(encoder, images):
    forever = np.broadcast_to(images[0], (200_000, 32, 32, 3))[:, :, :, :].copy()
    # A process that was started in the background may ignore the signal from its beginning.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            encoder.encode(forever)
    finally:
        signal.signal(signal.SIGINT, before)
    assert encoder.encode(images).shape == (24, 128)
