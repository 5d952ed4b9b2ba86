//! Damage to the bytes of images: found by checksums wherever the dataset has them, on reading and by `check`.

use std::fs;
use std::path::{Path, PathBuf};

use dataset::card::Format;
use dataset::work::Shard;
use dataset::{Dataset, Views};

use super::{assert_same, make, reference, tree};

fn made(format: Format) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), format, 2, Shard::WHOLE, u64::MAX).unwrap();
    folder
}

fn problems(root: &Path) -> Vec<String> {
    dataset::check::check(&Dataset::open(root).unwrap(), &|| {}).problems
}

/// A file with an image, and where the image is in it.
fn an_image(root: &Path, format: Format) -> (PathBuf, usize, usize) {
    let files = tree(root);
    let ending = if format == Format::Files { "image_1.jpg" } else { "train-000001.tar" };
    let (name, bytes) = files.iter().find(|(name, _)| name.ends_with(ending)).unwrap();
    let begin = bytes.windows(3).position(|window| window == [0xFF, 0xD8, 0xFF]).unwrap();
    let end = bytes[begin..].windows(2).position(|window| window == [0xFF, 0xD9]).unwrap() + begin + 2;
    (root.join(name), begin, end)
}

#[test]
fn every_flipped_bit_of_an_image_is_found() {
    for format in [Format::Files, Format::Shards] {
        let folder = made(format);
        assert_eq!(problems(folder.path()), Vec::<String>::new());
        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.images_with_checksum(), 28 * 3);
        let (path, begin, end) = an_image(folder.path(), format);
        let good = fs::read(&path).unwrap();
        let unread = || {
            let items = (0..28).flat_map(|object| (0..3).map(move |view| (object, view)));
            let mut pixels = vec![0; 16 * 16 * 3];
            items.filter(|&(object, view)| dataset.image(object, view, 16, &mut pixels).is_err()).count()
        };
        for bit in (begin * 8..end * 8).step_by(151) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bad).unwrap();
            assert_eq!(unread(), 1, "bit {bit}");
        }
        let found = problems(folder.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("is damaged: its checksum is not the one recorded with the dataset"));
        fs::write(&path, &good).unwrap();
        assert_eq!((unread(), problems(folder.path()).len()), (0, 0));
    }
}

/// As datasets were before there were checksums.
#[test]
fn datasets_without_checksums_are_read_and_told_apart() {
    let files = made(Format::Files);
    for side in ["train", "val"] {
        fs::remove_file(files.path().join(format!("checksums_{side}.npy"))).unwrap();
    }
    let shards = made(Format::Shards);
    for (name, bytes) in tree(shards.path()) {
        if name.starts_with("shards/") && name.ends_with(".npy") {
            let array = scene::npy::parse(&bytes).unwrap();
            let scene::npy::Data::Int64(values) = array.data else { panic!("an index of integers") };
            let two: Vec<i64> = values.chunks(3).flat_map(|row| row[..2].to_vec()).collect();
            let old = scene::npy::encode_i64(&[two.len() / 2, 2], &two);
            fs::write(shards.path().join(name), old).unwrap();
        }
    }
    for root in [files.path(), shards.path()] {
        let dataset = Dataset::open(root).unwrap();
        assert_eq!(dataset.images_with_checksum(), 0);
        dataset.decode(5, 1).unwrap();
        assert_eq!(problems(root), Vec::<String>::new());
    }
    // One archive with, the others without: somebody changed something.
    let indices = made(Format::Shards);
    let name = "shards/train-000000.npy";
    fs::copy(indices.path().join(name), shards.path().join(name)).unwrap();
    let found = problems(shards.path());
    assert!(found.len() == 1 && found[0].contains("have no checksum, the others do"), "{found:?}");
}

#[test]
fn latents_that_are_no_numbers_are_named() {
    let folder = made(Format::Files);
    let table = folder.path().join("all_latents_train.npy");
    let good = fs::read(&table).unwrap();
    let mut bad = good.clone();
    let begin = good.len() - 10 * 8 * 2 + 4 * 8;
    bad[begin..begin + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    fs::write(&table, &bad).unwrap();
    let rows = (good.len() - 128) / 80;
    let expected =
        format!("all_latents_train.npy: spot_theta in row {} is NaN, expected a finite number", rows - 2);
    let message = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(message.ends_with(&expected), "{message}");
    // Without the tables, in the files of the views.
    for side in ["train", "val"] {
        fs::remove_file(folder.path().join(format!("all_latents_{side}.npy"))).unwrap();
    }
    Dataset::open(folder.path()).unwrap();
    let (name, bytes) =
        tree(folder.path()).into_iter().find(|(name, _)| name.ends_with("latent_1.npy")).unwrap();
    let mut bad = bytes.clone();
    let end = bad.len();
    bad[end - 8..].copy_from_slice(&f64::INFINITY.to_le_bytes());
    fs::write(folder.path().join(&name), &bad).unwrap();
    let message = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(message.contains(&name) && message.contains("trans_z in row 0 is inf"), "{message}");
}

#[test]
fn damaged_checksums_are_named() {
    let folder = made(Format::Files);
    let path = folder.path().join("checksums_val.npy");
    let good = fs::read(&path).unwrap();
    let message = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Dataset::open(folder.path()).unwrap_err().to_string()
    };
    let mut high = good.clone();
    *high.last_mut().unwrap() = 1;
    assert!(
        message(&high).contains("checksums_val.npy: ")
            && message(&high).ends_with("is not a checksum (CRC-32)")
    );
    assert!(message(&scene::npy::encode_i64(&[2], &[1, 2])).contains("one for each view, found shape [2]"));
    message(&good[..good.len() - 3]);
    fs::remove_file(&path).unwrap();
    let missing = Dataset::open(folder.path()).unwrap_err().to_string();
    assert!(missing.ends_with("is missing, although the other side's checksums are there"), "{missing}");
}

/// What is damaged while a dataset is being made is rendered again, or told.
#[test]
fn damage_before_the_end_is_not_made_good_by_a_checksum() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), Format::Shards, 1, Shard::WHOLE, 11).unwrap();
    let begun = tree(folder.path());
    let (name, bytes) = begun.iter().find(|(name, _)| name.contains("fragments/")).unwrap();
    let mut bad = bytes.clone();
    bad[700] ^= 4;
    fs::write(folder.path().join(name), &bad).unwrap();
    let error = make(folder.path(), Format::Shards, 1, Shard::WHOLE, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("the views of an object are damaged; run the same command again"), "{error}");
    make(folder.path(), Format::Shards, 1, Shard::WHOLE, u64::MAX).unwrap();
    assert_same(&tree(folder.path()), &reference(Format::Shards));

    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), Format::Files, 1, Shard::WHOLE, 7).unwrap();
    let (path, begin, end) = an_image(folder.path(), Format::Files);
    let mut bad = fs::read(&path).unwrap();
    bad[(begin + end) / 2] ^= 1;
    fs::write(&path, &bad).unwrap();
    make(folder.path(), Format::Files, 1, Shard::WHOLE, u64::MAX).unwrap();
    assert_eq!(problems(folder.path()).len(), 1);
}

/// Killed after an object's images were written and before their checksums were noted.
#[test]
fn what_was_damaged_before_its_checksums_were_noted_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), Format::Files, 2, Shard::WHOLE, 4).unwrap();
    let images: Vec<PathBuf> = tree(folder.path())
        .into_keys()
        .map(PathBuf::from)
        .filter(|name| name.ends_with("image_1.jpg"))
        .collect();
    let image = folder.path().join(&images[0]);
    let mut bytes = fs::read(&image).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&image, bytes).unwrap();
    for note in fs::read_dir(folder.path().join(".equicaps/checksums")).unwrap() {
        fs::remove_file(note.unwrap().path()).unwrap();
    }
    make(folder.path(), Format::Files, 2, Shard::WHOLE, u64::MAX).unwrap();
    assert_same(&tree(folder.path()), &reference(Format::Files));
}
