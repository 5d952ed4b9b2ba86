//! Tests of [`crate::checkpoint`].

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use crate::checkpoint::{Checkpoint, Numbers, Position, list, newest, rotate};

fn checkpoint(epoch: u64, step_in_epoch: u64, value: f32) -> Checkpoint {
    let position = Position { epoch, step: epoch * 5 + step_in_epoch, step_in_epoch };
    let mut checkpoint = Checkpoint { position, ..Checkpoint::default() };
    checkpoint.metadata.insert("config".to_owned(), "a = \"b\"\n".to_owned());
    checkpoint.insert("backbone.conv1.weight", &[2, 3], Numbers::F32(vec![value; 6]));
    checkpoint.insert("backbone.bn1.num_batches_tracked", &[], Numbers::I64(vec![-7]));
    checkpoint.insert("progress.sums", &[2], Numbers::F64(vec![1.0 / 3.0, f64::MAX]));
    checkpoint
}

#[test]
fn what_is_written_is_read_back_and_others_can_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let written = checkpoint(3, 0, 0.1);
    let path = written.write(folder.path()).unwrap();
    assert!(path.ends_with("epoch_00003.safetensors"));
    let mut read = Checkpoint::read(&path).unwrap();
    assert_eq!(read.metadata["step"], "15");
    assert_eq!(Checkpoint::read_metadata(&path).unwrap().position, written.position);
    read.metadata.retain(|key, _| key == "config");
    assert_eq!(read, written);

    let bytes = fs::read(&path).unwrap();
    let foreign = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = foreign.tensor("backbone.conv1.weight").unwrap();
    assert_eq!(tensor.shape(), [2, 3]);
    assert_eq!(tensor.data()[..4], 0.1_f32.to_le_bytes());
    // The same state gives the same bytes.
    checkpoint(3, 0, 0.1).write_to(&folder.path().join("again")).unwrap();
    assert_eq!(fs::read(folder.path().join("again")).unwrap(), bytes);
}

#[test]
fn a_position_inside_an_epoch_has_that_epochs_name_until_its_end() {
    let folder = tempfile::tempdir().unwrap();
    for (written, name) in [
        (checkpoint(2, 0, 0.1), "epoch_00002.safetensors"),
        (checkpoint(2, 3, 0.2), "epoch_00003.safetensors"),
        (checkpoint(3, 0, 0.3), "epoch_00003.safetensors"),
    ] {
        assert!(written.write(folder.path()).unwrap().ends_with(name));
    }
    let (_, read) = newest(folder.path(), |_| panic!("nothing is damaged")).unwrap().unwrap();
    assert_eq!(read.position, Position { epoch: 3, step: 15, step_in_epoch: 0 });
}

#[test]
fn a_damaged_newest_one_is_set_aside_and_the_one_before_it_used() {
    let folder = tempfile::tempdir().unwrap();
    checkpoint(1, 0, 0.1).write(folder.path()).unwrap();
    for damage in 0..3 {
        let path = checkpoint(2, 0, 0.2).write(folder.path()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        match damage {
            0 => bytes.truncate(bytes.len() / 2),
            1 => *bytes.last_mut().unwrap() ^= 1,
            _ => bytes.clear(),
        }
        fs::write(&path, bytes).unwrap();
        let mut warnings = Vec::new();
        let (used, read) = newest(folder.path(), |text| warnings.push(text)).unwrap().unwrap();
        assert!(used.ends_with("epoch_00001.safetensors"));
        assert_eq!(read.position.epoch, 1);
        assert!(warnings[0].contains("epoch_00002.safetensors: the checkpoint is damaged"), "{warnings:?}");
        assert_eq!(list(folder.path()).unwrap().len(), 1);
        assert!(folder.path().join("epoch_00002.safetensors.damaged").exists());
    }
    assert!(newest(&folder.path().join("none"), |_| ()).unwrap().is_none());
    let other = folder.path().join("other.onnx");
    for (bytes, expected) in
        [(&b"a file of something else"[..], "is not a checkpoint"), (b"short", "too early")]
    {
        fs::write(&other, bytes).unwrap();
        let errors = [Checkpoint::read(&other).unwrap_err(), Checkpoint::read_metadata(&other).unwrap_err()];
        assert!(errors.iter().all(|error| error.to_string().contains(expected)), "{errors:?}");
    }
}

#[test]
fn rotation_keeps_milestones_and_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    for epoch in 1..=8 {
        checkpoint(epoch, 0, 0.1).write(folder.path()).unwrap();
        rotate(folder.path(), 2, |epoch| epoch == 3 || epoch == 5).unwrap();
    }
    let epochs: Vec<u64> = list(folder.path()).unwrap().into_iter().map(|(epoch, _)| epoch).collect();
    assert_eq!(epochs, [3, 5, 7, 8]);
}

#[test]
fn an_interruption_does_not_change_which_checkpoints_stay() {
    for keep in 1..=3 {
        for within in [&[][..], &[(2, 5)], &[(2, 3), (2, 5)], &[(0, 1), (1, 2), (3, 4), (3, 5)]] {
            let folder = tempfile::tempdir().unwrap();
            let save = |epoch: u64, step_in_epoch: u64| {
                checkpoint(epoch, step_in_epoch, 0.1).write(folder.path()).unwrap();
                rotate(folder.path(), keep, |epoch| epoch == 1).unwrap();
                let kept: Vec<PathBuf> =
                    list(folder.path()).unwrap().into_iter().map(|(_, path)| path).collect();
                kept.iter().map(|path| Checkpoint::read_metadata(path).unwrap().position).collect::<Vec<_>>()
            };
            // Every second epoch has a checkpoint, and the first.
            for epoch in [1_u64, 3, 5, 7] {
                for &(before, step) in within {
                    if (epoch.saturating_sub(2)..epoch).contains(&before) {
                        let kept = save(before, step);
                        assert_eq!(kept.last().map(|at| (at.epoch, at.step_in_epoch)), Some((before, step)));
                        assert_eq!(kept.iter().filter(|at| at.step_in_epoch > 0).count(), 1);
                    }
                }
                let kept: Vec<(u64, u64)> =
                    save(epoch, 0).iter().map(|at| (at.epoch, at.step_in_epoch)).collect();
                let mut wanted: Vec<(u64, u64)> = (1..=epoch).step_by(2).map(|epoch| (epoch, 0)).collect();
                wanted.drain(1..wanted.len().saturating_sub(keep).max(1));
                assert_eq!(kept, wanted, "keep {keep}, interrupted at {within:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn no_single_damaged_byte_goes_unnoticed(at in 0_usize..10_000, bit in 0_u8..8) {
        let folder = tempfile::tempdir().unwrap();
        let path = checkpoint(1, 0, 0.25).write(folder.path()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();
        prop_assert!(Checkpoint::read(&path).is_err());
    }
}
