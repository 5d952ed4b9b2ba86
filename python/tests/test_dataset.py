"""Datasets read as the program writes them, and serve as PyTorch's do."""

import multiprocessing
import pickle

import numpy as np
import pytest

import equicaps


def test_rows_are_images_latents_and_labels(views):
    data = equicaps.Dataset(views)
    sides = [equicaps.Dataset(views, split=side) for side in ("train", "val")]
    assert [len(data), *map(len, sides)] == [24, 20, 4]
    assert np.concatenate([side.latents for side in sides]).tobytes() == data.latents.tobytes()
    assert (np.concatenate([side.labels for side in sides]) == data.labels).all()
    train = np.load(views / "all_latents_train.npy")
    assert (sides[0].latents == train).all()
    assert data.images().shape == (24, 32, 32, 3)
    for row, (image, latents, label) in enumerate(data):
        name = data.object_names[data.objects[row]]
        assert data.classes[label] in ("airplane", "trash bin")
        assert (latents == np.load(views / name / f"latent_{data.views[row]}.npy")).all()
        assert (image == data.images([row])[0]).all()
    assert (data[-1][0] == data[23][0]).all()
    assert (data.images(np.array([-1]))[0] == data[23][0]).all()
    for wrong in (24, -25):
        with pytest.raises(IndexError, match=f"there is no row {wrong}; the dataset has 24"):
            data[wrong]
        with pytest.raises(IndexError):
            data.images([wrong])


def test_shards_sizes_and_translations(packed):
    data = equicaps.Dataset(packed, image_size=16)
    assert data.latents.shape == (12, 10)
    assert tuple(data.latent_names) == equicaps.LATENT_NAMES
    assert data.image_size == 16 and data[0][0].shape == (16, 16, 3)
    assert "6 objects of 2 classes, 2 views each" in repr(data)


def row(item):
    data, number = item
    return data[number]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_loader_can_have_it(views, run, start):
    data = equicaps.Dataset(views)
    # Threads of this process are none of a forked one's.
    equicaps.load(run, device="cpu").encode(data.images())
    with multiprocessing.get_context(start).Pool(2) as pool:
        found = pool.map_async(row, [(data, number) for number in range(8)]).get(timeout=120)
    for number, (image, latents, label) in enumerate(found):
        assert (image == data[number][0]).all() and (latents == data.latents[number]).all()
        assert label == data.labels[number]
    assert (pickle.loads(pickle.dumps(data)).latents == data.latents).all()


def test_what_is_wrong_is_said(views, tmp_path):
    with pytest.raises(equicaps.Error, match="there is no dataset folder"):
        equicaps.Dataset(tmp_path / "none")
    with pytest.raises(equicaps.Error, match="holds no dataset"):
        equicaps.Dataset(tmp_path)
    with pytest.raises(ValueError, match='split is "test", expected "train", "val" or None'):
        equicaps.Dataset(views, split="test")
    with pytest.raises(ValueError, match="image_size is 0"):
        equicaps.Dataset(views, image_size=0)
    with pytest.raises(TypeError):
        equicaps.Dataset(views)["0"]
