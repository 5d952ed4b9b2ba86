//! Datasets whose split holds out views: both sides have all objects, in files and in shards, and every row is right.

use std::path::Path;

use dataset::card::{Format, Settings};
use dataset::work::Shard;
use dataset::{Dataset, Split, SplitBy, Views, arrays};

use super::{assert_same, make_with, settings, tree};

const VIEWS: usize = 6;

fn by_views(format: Format, split: SplitBy) -> Settings {
    Settings { views: VIEWS, split, ..settings(format) }
}

fn make(root: &Path, format: Format, split: SplitBy) -> Dataset {
    let made = make_with(root, by_views(format, split), 2, Shard::WHOLE, u64::MAX).unwrap();
    assert!(made.complete.is_some());
    Dataset::open(root).unwrap()
}

#[test]
fn both_sides_have_all_objects_and_every_row_is_right() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let files = make(folders[0].path(), Format::Files, SplitBy::Views);
    let shards = make(folders[1].path(), Format::Shards, SplitBy::Views);
    let by_objects = make(folders[2].path(), Format::Files, SplitBy::Objects);
    for dataset in [&files, &shards] {
        assert_eq!(dataset.split_by(), SplitBy::Views);
        assert_eq!([Split::Train, Split::Val].map(|side| dataset.split(side)), [0..28, 0..28]);
        assert_eq!([Split::Train, Split::Val].map(|side| dataset.views_of(side, 0)), [0..4, 4..6]);
        let report = dataset::check::check(dataset, &|| {});
        assert_eq!((report.problems.as_slice(), report.images), ([].as_slice(), 28 * VIEWS));
        assert_eq!(dataset::stats::class_counts(dataset)[0].1, [7, 7]);
        let counts = dataset.card().unwrap().counts.clone().unwrap();
        assert_eq!((counts.train_objects, counts.val_objects, counts.images), (28, 28, 28 * VIEWS));
        let text = dataset.card().unwrap().to_markdown(dataset.classes().len());
        assert!(text.contains("| train | 28 | 112 |\n| val | 28 | 56 |"), "{text}");
        assert!(text.contains("views 0 to 3 are for training, views 4 to 5 are held out"), "{text}");
    }
    // The same objects, latents and images as with the split by objects, and in the same order.
    for object in 0..28 {
        assert_eq!(files.objects()[object].id(), by_objects.objects()[object].id());
        for view in 0..VIEWS {
            let image = files.read_jpeg(object, view).unwrap();
            assert_eq!(image, shards.read_jpeg(object, view).unwrap());
            assert_eq!(image, by_objects.read_jpeg(object, view).unwrap());
            assert_eq!(files.latents(object, view), by_objects.latents(object, view));
        }
    }
    // Row `views * object + view` of both tables belongs to `image_VIEW.jpg` of that row of the lists.
    for side in ["train", "val"] {
        let root = folders[0].path();
        let folders = arrays::read_strings(&root.join(format!("{side}_images.npy"))).unwrap();
        let (shape, rows) = arrays::read_floats(&root.join(format!("all_latents_{side}.npy"))).unwrap();
        assert_eq!((folders.len(), shape), (28, vec![28 * VIEWS, 10]));
        let single = root.join(folders[9].trim_matches('/')).join("latent_5.npy");
        assert_eq!(arrays::read_floats(&single).unwrap().1, rows[(9 * VIEWS + 5) * 10..][..10]);
    }
    // A shard of each side: its images are the views of that side alone.
    let names = tree(folders[1].path()).into_keys().filter(|name| name.ends_with(".tar")).collect::<Vec<_>>();
    assert_eq!(names.len(), 16, "{names:?}");
    let (shape, _) = arrays::read_integers(&folders[1].path().join("shards/val-000000.npy")).unwrap();
    assert!(shape[0] <= 4 * 2 && shape[0] % 2 == 0, "{shape:?}");

    // A file of the other side that differs is found.
    let wrong = folders[0].path().join("val_labels.npy");
    std::fs::write(&wrong, b"nonsense").unwrap();
    let problems = dataset::check::check(&Dataset::open(folders[0].path()).unwrap(), &|| {}).problems;
    assert_eq!(problems, [format!("{}: not the same as train_labels.npy", wrong.display())]);
}

#[test]
fn jobs_shards_and_interruptions_do_not_change_a_byte() {
    for format in [Format::Files, Format::Shards] {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        make(folders[0].path(), format, SplitBy::Views);
        let expected = tree(folders[0].path());
        let asked = || by_views(format, SplitBy::Views);
        std::thread::scope(|scope| {
            for index in [2, 0, 1] {
                let root = folders[1].path();
                scope.spawn(move || {
                    make_with(root, asked(), 2, Shard { index, count: 3 }, u64::MAX).unwrap();
                });
            }
        });
        assert_same(&tree(folders[1].path()), &expected);
        let mut runs = 0;
        while make_with(folders[2].path(), asked(), 3, Shard::WHOLE, 15).unwrap().complete.is_none() {
            runs += 1;
            assert!(runs < 40);
        }
        assert!(runs > 5, "{runs} runs");
        assert_same(&tree(folders[2].path()), &expected);
        let other = make_with(folders[2].path(), by_views(format, SplitBy::Objects), 1, Shard::WHOLE, 1);
        let refusal = other.unwrap_err().to_string();
        assert!(refusal.contains("split is views there, objects was asked for"), "{refusal}");
    }
}

#[test]
fn a_dataset_made_by_objects_can_hold_out_views_but_not_the_other_way_round() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let by_objects = make(folders[0].path(), Format::Shards, SplitBy::Objects);
    let image = by_objects.read_jpeg(27, 5).unwrap();
    let changed = by_objects.with_split(SplitBy::Views).unwrap();
    let by_views = make(folders[1].path(), Format::Shards, SplitBy::Views);
    assert_eq!(changed.objects(), by_views.objects());
    assert_eq!((changed.split(Split::Val), changed.views_of(Split::Val, 0)), (0..28, 4..6));
    assert_eq!(changed.read_jpeg(27, 5).unwrap(), image);
    let refusal = by_views.with_split(SplitBy::Objects).unwrap_err().to_string();
    assert!(refusal.contains("was rendered with --split views"), "{refusal}");
    make_with(folders[2].path(), settings(Format::Files), 1, Shard::WHOLE, u64::MAX).unwrap();
    let few = Dataset::open(folders[2].path()).unwrap().with_split(SplitBy::Views);
    let refusal = few.unwrap_err().to_string();
    assert!(refusal.contains("has 3 views of every object, but a split by views needs 4"), "{refusal}");
}
