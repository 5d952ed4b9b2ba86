//! Making views on devices: ones that fail, and datasets that change devices.

use super::*;

/// A device that cannot hold some objects and is lost after so many calls.
struct Failing {
    calls_left: AtomicU64,
}

impl ViewSource for Failing {
    type Prepared = bool;

    fn prepare(&self, object: &Object) -> Result<bool, String> {
        Ok(object.name.starts_with("bad"))
    }

    fn render(&self, is_bad: &bool, latents: &[Latents], side: usize) -> Result<Vec<u8>, Failure> {
        let take = |left: u64| left.checked_sub(1);
        if self.calls_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Err(Failure::Device("the device is lost".to_owned()));
        }
        if *is_bad {
            return Err(Failure::Object("no triangles".to_owned()));
        }
        Fake::new(u64::MAX).render(&(), latents, side)
    }

    fn batch(&self) -> usize {
        2
    }
}

#[test]
fn objects_the_device_cannot_hold_are_skipped_and_a_lost_device_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, failing) = (folder.path().join("whole"), folder.path().join("failing"));
    make(&whole, Format::Shards, 2, Shard::WHOLE, u64::MAX).unwrap();
    let run = |calls: u64| {
        let stop = AtomicBool::new(false);
        let options = ProduceOptions { jobs: 3, ..options(&stop) };
        let source = Failing { calls_left: AtomicU64::new(calls) };
        produce(&failing, Plan::new(settings(Format::Shards), &ids()), &source, &options)
    };
    let message = run(20).unwrap_err().to_string();
    assert_eq!(message, "the device is lost; run the same command again to go on");
    let outcome = run(1000).unwrap();
    assert!(outcome.objects_before > 0 && outcome.complete.is_some());
    assert!(outcome.skipped.iter().all(|skipped| skipped.reason == "no triangles"));
    assert_same(&tree(&whole), &tree(&failing));
}

#[test]
fn another_device_is_refused_unless_it_is_allowed_and_then_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("views");
    make(&root, Format::Files, 1, Shard::WHOLE, 7).unwrap();
    let run = |allow_mixed_devices: bool| {
        let source = Fake::new(u64::MAX);
        let options = ProduceOptions { allow_mixed_devices, ..options(&source.stop) };
        let settings = Settings { device: "a GPU".to_owned(), ..settings(Format::Files) };
        produce(&root, Plan::new(settings, &ids()), &source, &options)
    };
    let message = run(false).unwrap_err().to_string();
    assert!(message.contains("device is cpu there, a GPU was asked for (--allow-mixed-devices"), "{message}");
    let card = run(true).unwrap().complete.unwrap();
    assert_eq!(
        (card.settings.device.as_str(), card.settings.mixed_devices.as_slice()),
        ("cpu", ["a GPU".to_owned()].as_slice())
    );
}
