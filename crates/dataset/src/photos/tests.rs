//! Photographs in folders, and what the borders of their views give away.

use super::*;
use crate::jpeg::Image;
use crate::object::Split;
use image::RgbImage;
use random::{Random, Stream};

fn options(group: Group) -> PhotosOptions {
    let ranges = WarpRanges::default();
    PhotosOptions { group, ranges, views: 6, held_out_views: 0, side: 16, seed: 4, memory: 1 << 20 }
}

#[test]
fn folders_of_sides_are_the_split_and_not_classes() {
    let open = |files: &[&str], held_out_views: usize| {
        let root = tempfile::tempdir().unwrap();
        for name in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"x").unwrap();
        }
        let photos =
            Photos::open(root.path(), PhotosOptions { held_out_views, ..options(Group::IMAGE_AFFINE) });
        let photos = photos.map_err(|error| error.to_string())?;
        let objects = photos.objects().iter().map(|object| (object.id(), object.split == Split::Val));
        Ok::<_, String>((objects.collect::<std::collections::BTreeMap<_, _>>(), photos))
    };
    let files = ["train/cats/a.png", "train/dogs/b.png", "val/cats/a.png", "notes/x.txt"];
    let (objects, photos) = open(&files, 0).unwrap();
    let expected = [("cats/train/a.png", false), ("cats/val/a.png", true), ("dogs/train/b.png", false)];
    assert_eq!(objects, expected.map(|(id, held_out)| (id.to_owned(), held_out)).into());
    assert_eq!((photos.classes().len(), photos.split(Split::Val).len()), (2, 1));
    assert!(photos.description().starts_with("3 photographs of 2 classes, "), "{}", photos.description());
    assert!(photos.description().ends_with("; the split is that of the folders"));
    assert!(photos.files[photos.split(Split::Val).start].ends_with("val/cats/a.png"));
    // Views of all photographs are held out where that is asked for.
    assert!(open(&files, 2).unwrap().0.values().all(|held_out| !held_out));
    // Without classes there is one; a third folder of images makes all of them classes.
    let (objects, _) = open(&["train/a.png", "test/b.png"], 0).unwrap();
    assert!(objects["photographs/test/b.png"]);
    let (_, photos) = open(&["train/a.png", "test/b.png", "extra/c.png"], 0).unwrap();
    assert!(photos.classes().len() == 3 && photos.description().ends_with("as extra lies beside them"));
    let wrong = open(&["train/a.png", "test/b.png", "c.png"], 0).err().unwrap();
    assert!(wrong.contains("c.png: lies on no side of the split"), "{wrong}");
}

/// A photograph of smooth noise, which looks alike in every direction.
fn noise(seed: u64, side: usize) -> Image {
    let mut random = Random::new(seed, Stream::new("test-photographs"), 0);
    let waves: Vec<([f64; 2], f64, [f64; 3])> = (0..6)
        .map(|_| {
            let (sin, cos) = random.range(0.0, std::f64::consts::TAU).sin_cos();
            let length = random.range(4.0, 25.0);
            let colour = std::array::from_fn(|_| random.range(-40.0, 40.0));
            ([length * cos, length * sin], random.range(0.0, std::f64::consts::TAU), colour)
        })
        .collect();
    let mut pixels = Vec::with_capacity(3 * side * side);
    for at in 0..side * side {
        let (x, y) = ((at % side) as f64 / side as f64, (at / side) as f64 / side as f64);
        let mut sum = [128.0; 3];
        for ([kx, ky], phase, colour) in &waves {
            let wave = (kx * x + ky * y + phase).sin();
            (0..3).for_each(|c| sum[c] += wave * colour[c]);
        }
        pixels.extend(sum.map(|value| value.clamp(0.0, 255.0) as u8));
    }
    Image { width: side, height: side, pixels }
}

#[test]
fn folders_are_classes_and_views_are_known_warps() {
    let root = tempfile::tempdir().unwrap();
    for (index, name) in
        ["cats/a.png", "cats/old/b.png", "dogs/a.png", "dogs/c.png", "e.png"].iter().enumerate()
    {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let Image { width, height, pixels } = noise(index as u64, 48);
        RgbImage::from_raw(width as u32, height as u32, pixels).unwrap().save(path).unwrap();
    }
    let photos = Photos::open(root.path(), options(Group::IMAGE_AFFINE)).unwrap();
    let names: Vec<&str> = photos.classes().iter().map(|class| class.name.as_str()).collect();
    assert_eq!((photos.objects().len(), names.as_slice()), (5, ["cats", "dogs", "photographs"].as_slice()));
    assert_eq!(photos.split(Split::Val).len(), 1);
    assert!(photos.objects().iter().any(|object| object.id() == "cats/old/b.png"));
    let mut found = vec![vec![0; 16 * 16 * 3]; 2];
    photos.image(2, 3, 16, &mut found[0]).unwrap();
    // The same whatever is kept in memory, and wherever the folder lies.
    let forgetful =
        Photos::open(root.path(), PhotosOptions { memory: 0, ..options(Group::IMAGE_AFFINE) }).unwrap();
    forgetful.image(2, 3, 16, &mut found[1]).unwrap();
    assert_eq!(found[0], found[1]);
    assert_eq!(forgetful.bytes.load(Ordering::Relaxed), 0);
    assert!(photos.bytes.load(Ordering::Relaxed) > 0);
    photos.image(2, 4, 16, &mut found[1]).unwrap();
    assert_ne!(found[0], found[1]);
    assert_eq!(photos.pose(2, 3), photos.warp(2, 3).pose);
    assert!(photos.has(Part::Shear) && !photos.has(Part::Perspective) && !photos.has_light());
    // Colours alone make other images.
    let ranges = WarpRanges { hue: [0.0, 0.0].into(), ..WarpRanges::default() };
    let other = PhotosOptions { ranges, ..options(Group::IMAGE_AFFINE) };
    let grey = Photos::open(root.path(), other.clone()).unwrap();
    assert_eq!(photos.pose(2, 3), grey.pose(2, 3));
    assert_ne!(photos.images_digest(), grey.images_digest());
    let ranges = WarpRanges { hue: [1.0, 0.0].into(), ..ranges };
    let wrong = Photos::open(root.path(), PhotosOptions { ranges, ..other }).err().unwrap().to_string();
    assert!(wrong.contains("photos.hue is 1 to 0: it ends before it begins"), "{wrong}");
    let ranges = WarpRanges { scale: [0.02, 1.0].into(), ..WarpRanges::default() };
    let far = PhotosOptions { ranges, ..options(Group::IMAGE_AFFINE) };
    let wrong = Photos::open(root.path(), far).err().unwrap().to_string();
    assert!(wrong.contains("at least 0.05 is needed"), "{wrong}");
    let nothing = tempfile::tempdir().unwrap();
    let message = Photos::open(nothing.path(), options(Group::IMAGE_AFFINE)).err().unwrap().to_string();
    assert!(message.contains("holds no images (jpg, jpeg, png, webp)"), "{message}");
    std::fs::write(root.path().join("dogs/z.jpg"), b"nothing").unwrap();
    let photos = Photos::open(root.path(), options(Group::IMAGE_AFFINE)).unwrap();
    let broken = photos.objects().iter().position(|object| object.name == "z.jpg").unwrap();
    let message = photos.prepare(broken).unwrap_err().to_string();
    assert!(message.contains("z.jpg") && message.contains("neither a JPEG"), "{message}");
}

#[test]
fn what_was_prepared_or_handed_over_is_not_decoded_again() {
    let root = tempfile::tempdir().unwrap();
    let path = |index: usize| root.path().join(format!("{index}.png"));
    for index in 0..3 {
        RgbImage::from_pixel(9, 9, image::Rgb([index as u8; 3])).save(path(index)).unwrap();
    }
    let photos =
        Photos::open(root.path(), PhotosOptions { memory: 0, ..options(Group::IMAGE_ROTATION) }).unwrap();
    let [a, b, c] = [0, 1, 2].map(|index| photos.files.iter().position(|file| *file == path(index)).unwrap());
    photos.prepare(a).unwrap();
    photos.prepare(b).unwrap();
    (0..3).for_each(|index| std::fs::remove_file(path(index)).unwrap());
    photos.prepare(a).unwrap();
    assert!(photos.picture(a).unwrap().pixels.iter().all(|value| *value == 0));
    assert!(photos.hand_over(b).unwrap().pixels.iter().all(|value| *value == 1));
    // Who has it need not have it prepared; the others are gone once they were given away.
    photos.prepare(b).unwrap();
    for gone in [a, c] {
        assert!(photos.prepare(gone).is_err() && photos.picture(gone).is_err());
    }
    assert!(photos.prepared().is_empty());
}

#[test]
fn a_split_by_views_holds_out_warps_of_all_photographs() {
    let root = tempfile::tempdir().unwrap();
    for index in 0..3 {
        RgbImage::from_pixel(9, 9, image::Rgb([index; 3]))
            .save(root.path().join(format!("{index}.png")))
            .unwrap();
    }
    let by_views = PhotosOptions { held_out_views: 2, ..options(Group::IMAGE_ROTATION) };
    let photos = Photos::open(root.path(), by_views).unwrap();
    assert_eq!((photos.views(), photos.split(Split::Train), photos.split(Split::Val)), (8, 0..3, 0..3));
    assert_eq!(photos.views_of(Split::Val, 1), 6..8);
}

/// R2 on held-out pairs of a linear probe (ridge regression) on the border pixels of both views, for all parameters.
fn border_r2(warps: &Warps, draw: &dyn Fn(&Warps, u64, u64) -> Warp, frame: bool) -> f64 {
    const SIDE: usize = 12;
    let (pairs, train) = (900_u64, 720);
    let is_border = |at: usize| {
        let (x, y) = (at % SIDE, at / SIDE);
        x == 0 || y == 0 || x == SIDE - 1 || y == SIDE - 1
    };
    let mut rows: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let mut view = vec![0; 3 * SIDE * SIDE];
    for pair in 0..pairs {
        let mut photo = noise(pair, 28);
        if frame {
            // What lies beyond the photograph is black.
            for at in 0..28 * 28 {
                let edge = [at % 28, at / 28].iter().any(|&x| !(2..26).contains(&x));
                photo.pixels[3 * at..3 * at + 3].iter_mut().filter(|_| edge).for_each(|value| *value = 0);
            }
        }
        let picture = Picture::new(&photo, 28);
        let mut inputs = vec![1.0];
        let poses = [0, 1].map(|number| {
            let warp = draw(warps, pair, number);
            picture.view(&warp, SIDE, &mut view);
            let border = view.chunks_exact(3).enumerate().filter(|(at, _)| is_border(*at));
            inputs
                .extend(border.map(|(_, rgb)| rgb.iter().map(|&v| f64::from(v)).sum::<f64>() / 765.0 - 0.5));
            warp.pose
        });
        rows.push((inputs, warps.group().difference(&poses[0], &poses[1])));
    }
    let (width, outputs) = (rows[0].0.len(), rows[0].1.len());
    // Normal equations, by elimination.
    let mut system = vec![vec![0.0; width + outputs]; width];
    for (inputs, targets) in &rows[..train] {
        for (i, line) in system.iter_mut().enumerate() {
            for (to, value) in line.iter_mut().zip(inputs.iter().chain(targets)) {
                *to += inputs[i] * value;
            }
        }
    }
    (0..width).for_each(|i| system[i][i] += 10.0);
    for column in 0..width {
        let pivot = system[column][column];
        let line: Vec<f64> = system[column].iter().map(|value| value / pivot).collect();
        for (row, other) in system.iter_mut().enumerate() {
            if row != column {
                let factor = other[column];
                other.iter_mut().zip(&line).for_each(|(to, value)| *to -= factor * value);
            }
        }
        system[column] = line;
    }
    let (mut residual, mut spread) = (0.0, 0.0);
    let means: Vec<f64> =
        (0..outputs).map(|k| rows[..train].iter().map(|(_, t)| t[k]).sum::<f64>() / train as f64).collect();
    let scale: Vec<f64> = (0..outputs)
        .map(|k| rows.iter().map(|(_, t)| (t[k] - means[k]).powi(2)).sum::<f64>().max(1e-12))
        .collect();
    for (inputs, targets) in &rows[train..] {
        for k in 0..outputs {
            let said: f64 = inputs.iter().zip(&system).map(|(x, line)| x * line[width + k]).sum();
            residual += (targets[k] - said).powi(2) / scale[k];
            spread += (targets[k] - means[k]).powi(2) / scale[k];
        }
    }
    1.0 - residual / spread
}

#[test]
fn borders_of_views_give_nothing_away() {
    let drawn = |warps: &Warps, pair: u64, number: u64| warps.draw(5, &format!("x/{pair}"), number);
    for group in [Group::IMAGE_ROTATION, Group::IMAGE_HOMOGRAPHY] {
        let warps = Warps::of(group);
        let r2 = border_r2(&warps, &drawn, false);
        assert!(r2 < 0.03, "{group}: R2 {r2}");
    }
    // The probe can tell: with windows as large as photographs and black around them it learns from the borders.
    let too_far = |warps: &Warps, pair: u64, number: u64| {
        let warp = drawn(warps, pair, number);
        let mut wide = warp.photo_from_view;
        wide[..6].iter_mut().for_each(|value| *value /= warps.reach() as f32);
        Warp { photo_from_view: wide, ..warp }
    };
    let r2 = border_r2(&Warps::of(Group::IMAGE_SIMILARITY), &too_far, true);
    assert!(r2 > 0.15, "R2 {r2}");
}
