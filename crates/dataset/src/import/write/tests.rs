//! Interrupted imports, and images that are left where they are.

use super::*;
use crate::import::{Conventions, Fit, import};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Nine small images of three objects, and a table of them.
fn photographs(root: &Path) -> PathBuf {
    let mut text = "file,class,object,qx,qy,qz,qw\n".to_owned();
    for number in 0..9_u32 {
        let name = format!("{number}.png");
        let image =
            image::RgbImage::from_fn(12 + number, 10, |x, y| image::Rgb([(x * 9) as u8, (y * 20) as u8, 77]));
        image.save(root.join(&name)).unwrap();
        text += &format!("{name},cup,{},0,0,0,1\n", number % 3);
    }
    std::fs::write(root.join("t.csv"), text).unwrap();
    root.join("t.csv")
}

fn run(table: &Path, out: &Path, stop: &AtomicBool, after: u64, reference: bool) -> Result<Outcome> {
    run_where(table, out, stop, after, reference, false)
}

/// Leaves out images that cannot be used, if `skip_bad`.
fn run_where(
    table: &Path,
    out: &Path,
    stop: &AtomicBool,
    after: u64,
    reference: bool,
    skip_bad: bool,
) -> Result<Outcome> {
    let done = AtomicU64::new(0);
    let options = Options {
        conventions: Conventions::default(),
        fit: Fit::Pad,
        size: 16,
        reference,
        split: Some(SplitBy::Objects),
        seed: 3,
        skip_bad,
        stop,
        on_begin: &|_| {},
        on_images: &|images| {
            if done.fetch_add(images, Ordering::Relaxed) + images >= after {
                stop.store(true, Ordering::Relaxed);
            }
        },
    };
    import(table, out, &options)
}

fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = walkdir::WalkDir::new(root).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            (entry.path().strip_prefix(root).unwrap().to_path_buf(), std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn an_interrupted_import_goes_on_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let table = photographs(folder.path());
    for reference in [false, true] {
        let out = |name: &str| folder.path().join(format!("{name}-{reference}"));
        run(&table, &out("whole"), &AtomicBool::new(false), u64::MAX, reference).unwrap();
        let stopped = run(&table, &out("parts"), &AtomicBool::new(false), 4, reference);
        assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
        let message = crate::Dataset::open(&out("parts")).unwrap_err().to_string();
        assert!(message.contains("is not complete"), "{message}");
        run(&table, &out("parts"), &AtomicBool::new(false), u64::MAX, reference).unwrap();
        assert_eq!(files(&out("parts")), files(&out("whole")));
        assert!(
            run(&table, &out("parts"), &AtomicBool::new(false), u64::MAX, reference).unwrap().was_complete
        );
    }
    // Copied or not, the pixels are the same up to what JPEG loses.
    let [copied, referred] = [false, true]
        .map(|reference| crate::Dataset::open(&folder.path().join(format!("whole-{reference}"))).unwrap());
    for view in 0..3 {
        let [a, b] = [&copied, &referred].map(|data| data.decode(1, view).unwrap().pixels);
        assert!(a.iter().zip(&b).all(|(a, b)| a.abs_diff(*b) < 60) && a.len() == b.len());
    }
    assert!(crate::check::check(&referred, &|| {}).problems.is_empty());
    // A file that was changed since is noticed.
    std::fs::copy(folder.path().join("1.png"), folder.path().join("0.png")).unwrap();
    let problems = crate::check::check(&referred, &|| {}).problems;
    assert!(problems.len() == 1 && problems[0].contains("0.png: is damaged"), "{problems:?}");
}

/// The table without some of its lines.
fn without_lines(table: &Path, name: &str, left_out: &[usize]) -> PathBuf {
    let text = std::fs::read_to_string(table).unwrap();
    let lines = text.lines().enumerate().filter(|(number, _)| !left_out.contains(number));
    let path = table.with_file_name(name);
    std::fs::write(&path, lines.map(|(_, line)| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

#[test]
fn what_cannot_be_used_is_named_together_and_left_out_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let table = photographs(root);
    // One of object 1, all of object 2.
    for number in [4, 2, 5, 8] {
        std::fs::write(root.join(format!("{number}.png")), b"nothing").unwrap();
    }
    let go = |table: &Path, name: &str, after: u64, reference: bool, skip_bad: bool| {
        run_where(table, &root.join(name), &AtomicBool::new(false), after, reference, skip_bad)
    };
    for reference in [false, true] {
        let name = |what: &str| format!("{what}-{reference}");
        let message = go(&table, &name("fail"), u64::MAX, reference, false).unwrap_err().to_string();
        assert!(message.contains("4 of 9 images cannot be used"), "{message}");
        let all = ["line 4: 2.png: ", "line 6: 4.png: ", "line 7: 5.png: ", "line 10: 8.png: "];
        assert!(all.iter().all(|one| message.contains(one)), "{message}");

        let skipping = go(&table, &name("skip"), u64::MAX, reference, true).unwrap();
        let counts = skipping.card.counts.clone().unwrap();
        assert_eq!((counts.classes, skipping.classes), (1, 1));
        assert_eq!((counts.images, counts.skipped_images, counts.skipped_objects), (5, 4, 1));
        let said = |skipped: &Skipped| {
            (skipped.name.clone(), skipped.file.clone(), skipped.place.clone(), skipped.reason.clone())
        };
        let said: Vec<_> = skipping.skipped.iter().map(said).collect();
        let name_of = |object: &str| object.to_owned();
        assert_eq!(said.len(), 5);
        assert_eq!(said[0].1.as_deref(), Some("4.png"));
        assert_eq!(said[1], (name_of("2"), None, None, "none of its 3 images can be used".to_owned()));
        assert_eq!(said[2].2.as_deref(), Some("line 4"));
        assert!(!said[2].3.contains("2.png"), "the file is named beside it: {}", said[2].3);
        let dataset = crate::Dataset::open(&root.join(name("skip"))).unwrap();
        assert!(crate::check::check(&dataset, &|| {}).problems.is_empty());
        // Asked again, it says the same, whichever way it is asked.
        for skip_bad in [true, false] {
            let again = go(&table, &name("skip"), u64::MAX, reference, skip_bad).unwrap();
            assert!(again.was_complete && again.skipped == skipping.skipped);
        }
        // An interruption, or a failure before, changes nothing.
        assert!(go(&table, &name("parts"), 3, reference, true).is_err());
        go(&table, &name("parts"), u64::MAX, reference, true).unwrap();
        go(&table, &name("fail"), u64::MAX, reference, true).unwrap();
        for other in ["parts", "fail"] {
            assert_eq!(files(&root.join(name(other))), files(&root.join(name("skip"))), "{other}");
        }
    }
    let message = go(&without_lines(&table, "t2.csv", &[1, 2, 4, 7, 8]), "none", u64::MAX, false, true);
    let message = message.unwrap_err().to_string();
    assert!(message.contains("none of the images can be used: line 2: 2.png"), "{message}");
}

#[test]
fn the_readme_counts_the_classes_of_which_something_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let table = photographs(folder.path());
    let text = std::fs::read_to_string(&table).unwrap();
    // Objects 1 and 2 become classes of their own, and nothing of the last one can be read.
    std::fs::write(&table, text.replace("cup,1", "jug,1").replace("cup,2", "pan,2")).unwrap();
    let go = |name: &str| {
        let out = folder.path().join(name);
        let outcome = run_where(&table, &out, &AtomicBool::new(false), u64::MAX, false, true).unwrap();
        (outcome, std::fs::read_to_string(out.join(README)).unwrap())
    };
    let (whole, said) = go("whole");
    assert_eq!(whole.classes, 3);
    assert!(said.contains("\n3 classes.\n") && !said.contains("Left out"), "{said}");
    for number in [1, 2, 5, 8] {
        std::fs::write(folder.path().join(format!("{number}.png")), b"nothing").unwrap();
    }
    let (part, said) = go("part");
    assert_eq!((part.classes, part.card.counts.unwrap().classes), (2, 3));
    let left_out = "\n2 classes.\n\nLeft out (`skipped.json`): images 4, objects of which nothing is left 1, classes 1, which \
                    keep their labels.\n";
    assert!(said.contains(left_out), "{said}");
}

#[test]
fn an_import_goes_on_without_images_that_were_removed_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let table = photographs(root);
    std::fs::write(root.join("7.png"), b"nothing").unwrap();
    let go =
        |table: &Path, name: &str| run(table, &root.join(name), &AtomicBool::new(false), u64::MAX, false);
    assert!(go(&table, "parts").is_err());
    let of_object_0 = || std::fs::metadata(root.join("parts/cup/0/image_0.jpg")).unwrap().modified().unwrap();
    let before = of_object_0();
    // The broken image of object 1, and all of object 2, are gone from the table.
    let less = without_lines(&table, "less.csv", &[3, 6, 8, 9]);
    let whole = go(&less, "whole").unwrap();
    std::fs::rename(&less, &table).unwrap();
    let outcome = go(&table, "parts").unwrap();
    assert!(outcome.notes.iter().any(|note| note.contains("has changed since")), "{:?}", outcome.notes);
    assert_eq!(of_object_0(), before, "what was copied is kept");
    assert_eq!(outcome.card.counts, whole.card.counts);
    let differ = |name: &Path| name.ends_with(CARD) || name.ends_with(README);
    let only_images = |name: &str| -> BTreeMap<PathBuf, Vec<u8>> {
        files(&root.join(name)).into_iter().filter(|(name, _)| !differ(name)).collect()
    };
    assert_eq!(only_images("parts"), only_images("whole"), "but for the name of the table");
}

#[test]
fn an_import_goes_on_with_pictures_that_were_replaced_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let table = photographs(root);
    let seven = std::fs::read(root.join("7.png")).unwrap();
    std::fs::write(root.join("7.png"), b"nothing").unwrap();
    let go = |name: &str| run(&table, &root.join(name), &AtomicBool::new(false), u64::MAX, false);
    assert!(go("parts").is_err());
    let of_object_2 = || std::fs::metadata(root.join("parts/cup/2/image_0.jpg")).unwrap().modified().unwrap();
    let before = of_object_2();
    // Two pictures change places; the names and the table stay.
    let [zero, three] = ["0.png", "3.png"].map(|name| std::fs::read(root.join(name)).unwrap());
    for (name, bytes) in [("0.png", three), ("3.png", zero), ("7.png", seven)] {
        std::fs::write(root.join(name), bytes).unwrap();
    }
    go("parts").unwrap();
    go("whole").unwrap();
    assert_eq!(of_object_2(), before, "what did not change is kept");
    assert_eq!(files(&root.join("parts")), files(&root.join("whole")));
}
