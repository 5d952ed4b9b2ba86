//! Making datasets with a cheap stand-in for the renderer: the same bytes whatever the jobs, shards and interruptions,
//! and read back as they were made.

#![allow(clippy::unwrap_used)]

mod at_once;
mod by_views;
mod damage;
mod devices;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dataset::card::{Format, Origin, Settings};
use dataset::jpeg::ChannelOrder;
use dataset::plan::Plan;
use dataset::work::{Failure, Finished, Outcome, ProduceOptions, Shard, ViewSource, finish, produce};
use dataset::{Dataset, Object, Split, Views};
use scene::LatentRanges;
use scene::Latents;

/// Flat images whose colour is the floor's hue; objects named `bad...` cannot be used.
struct Fake {
    rendered: AtomicU64,
    /// Sets `stop` after so many images.
    stop_after: u64,
    stop: AtomicBool,
}

impl Fake {
    fn new(stop_after: u64) -> Self {
        Self { rendered: AtomicU64::new(0), stop_after, stop: AtomicBool::new(false) }
    }
}

impl ViewSource for Fake {
    type Prepared = ();

    fn prepare(&self, object: &Object) -> Result<(), String> {
        if object.name.starts_with("bad") { Err("no triangles".to_owned()) } else { Ok(()) }
    }

    fn render(&self, (): &(), latents: &[Latents], side: usize) -> Result<Vec<u8>, Failure> {
        let count = latents.len() as u64;
        if self.rendered.fetch_add(count, Ordering::Relaxed) + count >= self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
        let image = |latents: &Latents| [(latents.floor_hue * 255.0) as u8, 128, 30].repeat(side * side);
        Ok(latents.iter().flat_map(image).collect())
    }

    fn batch(&self) -> usize {
        2
    }
}

fn settings(format: Format) -> Settings {
    Settings {
        preset: "3diebench-t".to_owned(),
        origin: Origin::Meshes { up: None },
        limit: None,
        objects: 0,
        objects_digest: String::new(),
        views: 3,
        split: dataset::SplitBy::Objects,
        size: 16,
        seed: 5,
        quality: "fast".to_owned(),
        device: "cpu".to_owned(),
        mixed_devices: Vec::new(),
        channel_order: ChannelOrder::Rgb,
        format,
        objects_per_tar: (format == Format::Shards).then_some(4),
        ranges: Some(LatentRanges::BENCH_T),
        version: "test".to_owned(),
    }
}

fn ids() -> Vec<(String, String)> {
    let name = |k: usize| if k % 9 == 4 { format!("bad.{k}") } else { format!("ob.ject {k}") };
    (0..31).map(|k| (format!("class{}", k % 4), name(k))).collect()
}

/// One job that makes everything and tells nobody.
fn options(stop: &AtomicBool) -> ProduceOptions<'_> {
    ProduceOptions {
        jobs: 1,
        shard: Shard::WHOLE,
        allow_mixed_devices: false,
        stop,
        on_begin: &|_, _| {},
        on_images: &|_| {},
    }
}

fn make(root: &Path, format: Format, jobs: usize, shard: Shard, stop_after: u64) -> dataset::Result<Outcome> {
    make_with(root, settings(format), jobs, shard, stop_after)
}

fn make_with(
    root: &Path,
    settings: Settings,
    jobs: usize,
    shard: Shard,
    stop_after: u64,
) -> dataset::Result<Outcome> {
    let source = Fake::new(stop_after);
    let options = ProduceOptions { jobs, shard, ..options(&source.stop) };
    produce(root, Plan::new(settings, &ids()), &source, &options)
}

/// Every file below `root` with its content.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    let content = |entry: walkdir::DirEntry| {
        let name = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(entry.path()).unwrap())
    };
    entries.filter(|entry| !entry.file_type().is_dir()).map(content).collect()
}

fn assert_same(a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let differing: Vec<_> = a.keys().filter(|name| a[*name] != b[*name]).collect();
    assert!(differing.is_empty(), "differing: {differing:?}");
}

fn reference(format: Format) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let outcome = make(folder.path(), format, 1, Shard::WHOLE, u64::MAX).unwrap();
    assert!(outcome.complete.is_some() && !outcome.interrupted);
    assert_eq!((outcome.objects_rendered, outcome.skipped.len()), (28, 3));
    tree(folder.path())
}

#[test]
fn the_readme_counts_the_classes_that_have_objects() {
    let folder = tempfile::tempdir().unwrap();
    let source = Fake::new(u64::MAX);
    let options = options(&source.stop);
    let ids = [("a", "1"), ("a", "2"), ("b", "bad.1"), ("b", "bad.2"), ("c", "1"), ("c", "bad.2")];
    let ids = ids.map(|(class, object)| (class.to_owned(), object.to_owned()));
    produce(folder.path(), Plan::new(settings(Format::Files), &ids), &source, &options).unwrap();
    let readme = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    assert!(readme.contains("\n2 classes; 3 objects skipped"), "{readme}");
    let dataset = Dataset::open(folder.path()).unwrap();
    assert_eq!(dataset.classes().len(), 3, "labels stay");
    assert!(dataset::check::check(&dataset, &|| {}).problems.is_empty());
}

#[test]
fn jobs_shards_and_interruptions_do_not_change_a_byte() {
    for format in [Format::Files, Format::Shards] {
        let expected = reference(format);
        assert!(!expected.keys().any(|name| name.starts_with(".equicaps")));

        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), format, 7, Shard::WHOLE, u64::MAX).unwrap();
        assert_same(&tree(folder.path()), &expected);

        // Shards in one folder, in any order, at the same time.
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for index in [2, 0, 3, 1] {
                let root = folder.path();
                scope.spawn(move || make(root, format, 2, Shard { index, count: 4 }, u64::MAX).unwrap());
            }
        });
        assert_same(&tree(folder.path()), &expected);

        // Stopped again and again.
        let folder = tempfile::tempdir().unwrap();
        let mut runs = 0;
        while make(folder.path(), format, 3, Shard::WHOLE, 10).unwrap().complete.is_none() {
            runs += 1;
            assert!(runs < 40);
        }
        assert!(runs > 5, "{runs} runs");
        assert_same(&tree(folder.path()), &expected);
        // Once more: nothing to do, nothing changes.
        let outcome = make(folder.path(), format, 1, Shard::WHOLE, 0).unwrap();
        assert_eq!((outcome.images_rendered, outcome.skipped.len()), (0, 3));
        assert_same(&tree(folder.path()), &expected);
    }
}

#[test]
fn shards_made_apart_are_finished_together() {
    for format in [Format::Files, Format::Shards] {
        let folder = tempfile::tempdir().unwrap();
        for index in [1, 0] {
            let apart = tempfile::tempdir().unwrap();
            let outcome = make(apart.path(), format, 2, Shard { index, count: 2 }, u64::MAX).unwrap();
            assert!(outcome.complete.is_none() && !outcome.interrupted && outcome.objects_missing > 10);
            let error = Dataset::open(apart.path()).unwrap_err().to_string();
            assert!(error.contains("is not complete"), "{error}");
            for (name, bytes) in tree(apart.path()) {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            }
            if index == 1 {
                let Finished::Missing { objects, .. } = finish(folder.path()).unwrap() else {
                    panic!("half a dataset was finished")
                };
                assert_eq!(objects, 16);
            }
        }
        assert!(matches!(finish(folder.path()).unwrap(), Finished::Complete { .. }));
        assert_same(&tree(folder.path()), &reference(format));
    }
}

#[test]
fn what_was_made_is_read_back() {
    let files = tempfile::tempdir().unwrap();
    let shards = tempfile::tempdir().unwrap();
    make(files.path(), Format::Files, 2, Shard::WHOLE, u64::MAX).unwrap();
    make(shards.path(), Format::Shards, 2, Shard::WHOLE, u64::MAX).unwrap();
    let open = |folder: &tempfile::TempDir| Dataset::open(folder.path()).unwrap();
    let (a, b) = (open(&files), open(&shards));
    assert_eq!(a.objects(), b.objects());
    assert_eq!((a.objects().len(), a.views(), a.side(), a.classes().len()), (28, 3, 16, 4));
    assert_eq!(a.split(Split::Train).len() + a.split(Split::Val).len(), 28);
    assert!(a.split(Split::Val).len() >= 4);
    for object in 0..a.objects().len() {
        for view in 0..3 {
            let jpeg = a.read_jpeg(object, view).unwrap();
            assert_eq!(jpeg, b.read_jpeg(object, view).unwrap());
            let latents = a.latents(object, view);
            assert_eq!(latents, b.latents(object, view));
            assert_eq!(latents, LatentRanges::BENCH_T.sample(5, &a.objects()[object].id(), view as u64));
            let mut pixels = vec![0; 8 * 8 * 3];
            b.image(object, view, 8, &mut pixels).unwrap();
            assert!(pixels[0].abs_diff((latents.floor_hue * 255.0) as u8) < 6);
        }
    }

    // The index is a convenience: without it the archives are read.
    for entry in std::fs::read_dir(shards.path().join("shards")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "npy") {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(open(&shards).read_jpeg(20, 2).unwrap(), a.read_jpeg(20, 2).unwrap());

    // So are card, classes and tables: the published sets have none.
    for name in ["dataset.json", "classes.json", "all_latents_train.npy", "all_latents_val.npy"] {
        std::fs::remove_file(files.path().join(name)).unwrap();
    }
    let published = open(&files);
    assert!(published.card().is_none());
    assert_eq!(published.objects(), a.objects());
    assert_eq!((published.views(), published.side()), (3, 16));
    assert_eq!(published.latent_table(), a.latent_table());
    assert_eq!(published.classes().len(), 4);

    // Damage is named.
    let path = files.path().join(&a.objects()[3].synset).join(&a.objects()[3].name).join("image_1.jpg");
    std::fs::write(&path, b"nonsense").unwrap();
    let error = published.decode(3, 1).unwrap_err().to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
}

#[test]
fn other_settings_and_foreign_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), Format::Files, 1, Shard::WHOLE, 4).unwrap();
    let before = tree(folder.path());
    let source = Fake::new(u64::MAX);
    let options = options(&source.stop);
    let refusal = |settings: Settings, ids: &[(String, String)]| {
        produce(folder.path(), Plan::new(settings, ids), &source, &options).unwrap_err().to_string()
    };
    let with = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings(Format::Files);
        change(&mut settings);
        refusal(settings, &ids())
    };
    assert!(with(&|s| s.views = 4).contains("views is 3 there, 4 was asked for"));
    assert!(
        with(&|s| s.ranges.as_mut().unwrap().floor_hue.high = 0.5)
            .contains("ranges.floor_hue is [0.0,1.0] there, [0.0,0.5]")
    );
    assert!(with(&|s| s.ranges = Some(LatentRanges::BENCH)).contains("ranges.translation is"));
    assert!(with(&|s| s.format = Format::Shards).contains("format is files there, shards was asked for"));
    assert!(with(&|s| s.seed = 6).contains("seed is 5 there, 6 was asked for"));
    assert!(refusal(settings(Format::Files), &ids()[1..]).contains("objects is 31 there, 30 was asked for"));
    let mut renamed = ids();
    renamed[0].1 = "another".to_owned();
    assert!(refusal(settings(Format::Files), &renamed).contains("the list of objects is not the same"));
    assert_same(&tree(folder.path()), &before);

    let foreign = tempfile::tempdir().unwrap();
    std::fs::write(foreign.path().join("thesis.tex"), b"precious").unwrap();
    let error = make(foreign.path(), Format::Files, 1, Shard::WHOLE, 4).unwrap_err().to_string();
    assert!(error.contains("is not empty and holds no dataset"), "{error}");
    assert_eq!(tree(foreign.path()).len(), 1);
}

#[test]
fn names_that_a_dataset_cannot_have_are_refused_before_anything_is_made() {
    let refusal = |format, class: &str, name: &str| {
        let folder = tempfile::tempdir().unwrap();
        let source = Fake::new(u64::MAX);
        let options = options(&source.stop);
        let mut ids = ids();
        ids.push((class.to_owned(), name.to_owned()));
        let made = produce(folder.path(), Plan::new(settings(format), &ids), &source, &options);
        if made.is_err() {
            assert!(tree(folder.path()).is_empty(), "{class}");
        }
        made.err().map(|error| error.to_string())
    };
    for class in [".equicaps", "dataset.json", "Readme.md", "train_images.npy", "checksums_val.npy"] {
        let message = refusal(Format::Files, class, "object").unwrap();
        assert!(message.contains("the dataset has a file of this name; rename the class"), "{message}");
    }
    assert_eq!(refusal(Format::Shards, "dataset.json", "object"), None);
    for name in ["a\\b", "..", "a/b"] {
        assert!(refusal(Format::Shards, "class", name).unwrap().contains("cannot be the name of an object"));
    }
}

#[test]
fn a_damaged_object_is_made_again_while_the_dataset_is_open() {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), Format::Files, 1, Shard::WHOLE, 30).unwrap();
    let made = tree(folder.path()).into_keys().find(|name| name.ends_with("image_1.jpg")).unwrap();
    std::fs::remove_file(folder.path().join(made)).unwrap();
    make(folder.path(), Format::Files, 1, Shard::WHOLE, u64::MAX).unwrap();
    assert_same(&tree(folder.path()), &reference(Format::Files));
}

#[test]
fn archives_hold_samples_that_webdataset_groups() {
    let expected = reference(Format::Shards);
    let archive = &expected["shards/train-000000.tar"];
    let members =
        dataset::tar::members(&mut std::io::Cursor::new(archive), Path::new("train-000000.tar")).unwrap();
    assert_eq!(members.len() % 9, 0, "three members a sample, three samples an object");
    for sample in members.chunks(3) {
        let split = |name: &str| {
            let (folder, file) = name.rsplit_once('/').unwrap();
            let (base, extension) = file.split_once('.').unwrap();
            (format!("{folder}/{base}"), extension.to_owned())
        };
        let names: Vec<_> = sample.iter().map(|member| split(&member.name)).collect();
        assert!(names.iter().all(|(key, _)| *key == names[0].0));
        let extensions: Vec<&str> = names.iter().map(|(_, extension)| extension.as_str()).collect();
        assert_eq!(extensions, ["jpg", "latent.npy", "cls"]);
        let data = |at: usize| {
            &archive[sample[at].offset as usize..(sample[at].offset + sample[at].length) as usize]
        };
        assert_eq!(&data(0)[..2], [0xFF, 0xD8]);
        assert_eq!(dataset::arrays::parse_floats(data(1)).unwrap().0, [10]);
        assert!(std::str::from_utf8(data(2)).unwrap().parse::<u32>().unwrap() < 4);
    }
}

/// Killed in the last step: some lists are written, the card is not; or the card is, and the work folder still there.
#[test]
fn a_dataset_killed_while_it_was_finished_is_finished_again() {
    for format in [Format::Files, Format::Shards] {
        let expected = reference(format);
        let begun = tempfile::tempdir().unwrap();
        make(begun.path(), format, 2, Shard::WHOLE, 4).unwrap();
        let begun = tree(begun.path());
        for (card_written, gone) in [(false, "val_images.npy"), (false, "all_latents_train.npy"), (true, "")]
        {
            let folder = tempfile::tempdir().unwrap();
            make(folder.path(), format, 2, Shard::WHOLE, u64::MAX).unwrap();
            let restore = |name: &str, bytes: &[u8]| {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, bytes).unwrap();
            };
            restore(".equicaps/objects.json", &begun[".equicaps/objects.json"]);
            if !card_written {
                restore("dataset.json", &begun["dataset.json"]);
                std::fs::remove_file(folder.path().join(gone)).unwrap();
                // The skip records are still there at that time.
                let skipped = std::fs::read(folder.path().join("skipped.json")).unwrap();
                let skipped: Vec<serde_json::Value> = serde_json::from_slice(&skipped).unwrap();
                let objects: Vec<Object> = serde_json::from_slice(&begun[".equicaps/objects.json"]).unwrap();
                for record in skipped {
                    let index = objects.iter().position(|o| record["name"] == o.name.as_str()).unwrap();
                    restore(&format!(".equicaps/skipped/{index:07}.json"), record.to_string().as_bytes());
                }
            }
            assert!(matches!(finish(folder.path()).unwrap(), Finished::Complete { .. }));
            assert_same(&tree(folder.path()), &expected);
        }
    }
}

#[test]
fn views_on_the_fly_are_those_that_would_be_written() {
    let size = dataset::ProceduralSize { classes: 3, objects: 2 };
    let set = || dataset::ObjectSet::procedural(size, 5);
    let (quality, side) = (render::Quality::Fast, 32);
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let options = ProduceOptions { jobs: 2, ..options(&stop) };
    let settings = Settings { views: 2, size: side, ..settings(Format::Files) };
    let source = dataset::CpuRenderer::new(set(), quality);
    produce(folder.path(), Plan::new(settings, &set().ids()), &source, &options).unwrap();
    let written = Dataset::open(folder.path()).unwrap();
    let on_the_fly = dataset::OnTheFlyOptions {
        views: 2,
        held_out_views: 0,
        side,
        seed: 5,
        ranges: LatentRanges::BENCH_T,
        memory: 1 << 20,
        prepared: 8,
        ready: false,
    };
    let made = dataset::DataSpec::Procedural(size).open(on_the_fly, quality).unwrap();
    assert_eq!(made.objects(), written.objects());
    assert_eq!(made.classes(), written.classes());
    for object in 0..made.objects().len() {
        for view in 0..2 {
            assert_eq!(made.latents(object, view), written.latents(object, view));
            let image = |views: &dyn Views| {
                let mut pixels = vec![0; side * side * 3];
                views.image(object, view, side, &mut pixels).unwrap();
                pixels
            };
            let (a, b) = (image(&*made), image(&written));
            let mean = a.iter().zip(&b).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / a.len() as f64;
            assert!(mean < 6.0, "object {object}, view {view}: mean difference {mean}");
        }
    }
}
