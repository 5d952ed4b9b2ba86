//! A dataset without images: every "image" names its object and view, and encoders look the rest up.
#![allow(dead_code)]

use std::sync::Arc;

use dataset::{Class, Object, Split, Views};
use random::{Random, Stream};
use scene::Latents;

pub struct Synthetic {
    objects: Vec<Object>,
    classes: Vec<Class>,
    views: usize,
    held_out_views: usize,
    seed: u64,
}

pub fn synthetic(train: usize, val: usize, classes: u32, views: usize, seed: u64) -> Arc<Synthetic> {
    let object = |index: usize| Object {
        synset: format!("{:08}", index as u32 % classes),
        name: format!("o{index}"),
        label: index as u32 % classes,
        split: if index < train { Split::Train } else { Split::Val },
    };
    let class = |label| Class { label, synset: format!("{label:08}"), name: format!("class {label}") };
    Arc::new(Synthetic {
        objects: (0..train + val).map(object).collect(),
        classes: (0..classes).map(class).collect(),
        views,
        held_out_views: 0,
        seed,
    })
}

/// The same with a split by views.
pub fn by_views(
    objects: usize,
    classes: u32,
    views: usize,
    held_out_views: usize,
    seed: u64,
) -> Arc<Synthetic> {
    let Synthetic { objects, classes, .. } =
        Arc::into_inner(synthetic(objects, 0, classes, views, seed)).unwrap();
    Arc::new(Synthetic { objects, classes, views, held_out_views, seed })
}

impl Views for Synthetic {
    fn objects(&self) -> &[Object] {
        &self.objects
    }
    fn classes(&self) -> &[Class] {
        &self.classes
    }
    fn views(&self) -> usize {
        self.views
    }
    fn held_out_views(&self) -> usize {
        self.held_out_views
    }
    fn side(&self) -> usize {
        2
    }
    fn has_translation(&self) -> bool {
        true
    }
    fn latents(&self, object: usize, view: usize) -> Latents {
        let mut random =
            Random::new(self.seed, Stream::new("synthetic"), (object * self.views + view) as u64);
        let half = std::f64::consts::FRAC_PI_2;
        Latents {
            rotation: [0; 3].map(|_| random.range(-half, half)),
            floor_hue: random.uniform(),
            spot_theta: random.uniform(),
            spot_phi: random.uniform(),
            spot_hue: random.uniform(),
            translation: Some([0; 3].map(|_| random.range(-0.5, 0.5))),
            ..Latents::default()
        }
    }
    fn image(&self, object: usize, view: usize, _: usize, pixels: &mut [u8]) -> dataset::Result<()> {
        pixels.fill(0);
        pixels[..2].copy_from_slice(&(object as u16).to_le_bytes());
        pixels[2..4].copy_from_slice(&(view as u16).to_le_bytes());
        Ok(())
    }
    fn description(&self) -> String {
        "synthetic".to_owned()
    }
}

/// Object and view of each image of a batch.
pub fn items(pixels: &[u8]) -> Vec<(usize, usize)> {
    let number = |bytes: &[u8]| usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    pixels.chunks_exact(12).map(|p| (number(&p[..2]), number(&p[2..4]))).collect()
}
