//! The built-in library of objects: the 55 ShapeNet classes, each made from parts by its own code.
//!
//! An instance is a pure function of `(seed, label, index)`. Objects stand upright (z up), face +y, towards the
//! camera of the scene, where they have a front, are centred on their bounding box and have diagonal 1. None looks
//! the same after a quarter or half turn, so that a pose can be read off the image.

mod builder;
mod classes;
mod colour;
mod palette;
mod parts;
mod solid;
mod texture;

use builder::Builder;
use random::{Random, Stream};
use scene::Mesh;

/// One of the 55 classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Rank of the synset id, 0 to 54.
    pub label: usize,
    /// WordNet synset id, as in ShapeNet.
    pub synset: &'static str,
    /// English name.
    pub name: &'static str,
}

/// All classes in label order.
pub fn classes() -> &'static [Class] {
    &classes::CLASSES
}

/// The mesh of instance `index` of class `label` (taken modulo 55) under `seed`.
pub fn build(seed: u64, label: usize, index: u64) -> Mesh {
    assemble(seed, label, index).finish()
}

/// The varied parameters of an instance by name, in the order they were drawn.
pub fn describe(seed: u64, label: usize, index: u64) -> Vec<(&'static str, f64)> {
    assemble(seed, label, index).parameters()
}

fn assemble(seed: u64, label: usize, index: u64) -> Builder {
    let label = label % classes::CLASSES.len();
    let mut key = [0_u8; 16];
    key[..8].copy_from_slice(classes::CLASSES[label].synset.as_bytes());
    key[8..].copy_from_slice(&index.to_le_bytes());
    let mut builder = Builder::new(Random::new(seed, Stream::new("procedural"), random::fnv1a(&key)));
    classes::BUILDERS[label](&mut builder);
    builder
}

/// A fixed set of 20 detailed objects (5,000 to 20,000 triangles each) for benchmarks: of each class in
/// `BENCHMARK_LABELS` the first instance of that size.
pub fn benchmark_set() -> Vec<Mesh> {
    let detailed = |mesh: &Mesh| (5_000..=20_000).contains(&mesh.triangles.len());
    BENCHMARK_LABELS
        .iter()
        .filter_map(|&label| (0..100).map(|index| build(BENCHMARK_SEED, label, index)).find(detailed))
        .collect()
}

const BENCHMARK_SEED: u64 = 3;

/// Classes with detailed instances: vehicles, furniture, electronics, small things.
const BENCHMARK_LABELS: [usize; 20] =
    [0, 3, 5, 6, 11, 16, 17, 18, 23, 27, 36, 38, 40, 43, 46, 47, 48, 50, 51, 52];
