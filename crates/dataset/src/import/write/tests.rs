//! Interrupted imports, and images that are left where they are.

use super::*;
use crate::import::{Conventions, Fit, import};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};

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
    let done = AtomicU64::new(0);
    let options = Options {
        conventions: Conventions::default(),
        fit: Fit::Pad,
        size: 16,
        reference,
        split: Some(SplitBy::Objects),
        seed: 3,
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
