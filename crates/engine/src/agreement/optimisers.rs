//! Updates of parameters: three of them, by Adam alone and with Muon for all but a vector.

use random::{Random, Stream};

use super::{Agreement, Outcome, agree};
use crate::adam::AdamConfig;
use crate::device::{Device, Precision};
use crate::error::Result;
use crate::initialise::Initialise;
use crate::muon::MuonConfig;
use crate::parameters::{Layout, State, StoreBuilder};

/// What is still right of Muon in bf16: five products of rounded matrices, one after the other.
const BF16_BOUND: f64 = 5e-2;

pub(super) fn compare(device: &Device, cpu: &Device) -> Vec<Agreement> {
    let muon_bound = if device.precision() == Precision::Mixed { BF16_BOUND } else { 1e-3 };
    [("adam", false, 1e-4), ("muon", true, muon_bound)]
        .into_iter()
        .flat_map(|(name, muon, bound)| agree(name, bound, [cpu, device, device], |device| run(device, muon)))
        .collect()
}

/// How far parameters of several shapes go in three updates.
fn run(device: &Device, muon: bool) -> Result<Outcome> {
    let shapes: [(&str, &[usize], Layout); 6] = [
        ("512x4608", &[512, 512, 3, 3], Layout::Convolution),
        ("64x576", &[64, 64, 3, 3], Layout::Convolution),
        ("128x64", &[128, 64, 1, 1], Layout::Convolution),
        ("24x33", &[24, 33], Layout::Published),
        ("33x24", &[33, 24], Layout::Published),
        ("vector", &[77], Layout::Published),
    ];
    let mut builder = StoreBuilder::new();
    let start = Initialise::Constant(0.0);
    let ids =
        shapes.map(|(name, shape, layout)| builder.parameter(name, crate::Shape::new(shape), layout, start));
    let mut store = builder.build(device, 1)?;
    if muon {
        store.orthogonalise(MuonConfig::default(), |name, _| name != "vector");
    }
    for step in 0..3 {
        for (index, id) in ids.into_iter().enumerate() {
            let mut random = Random::new(step, Stream::new("agreement-update"), index as u64);
            let values: Vec<f32> =
                (0..store.shape(id).len()).map(|_| random.range(-1.0, 1.0) as f32).collect();
            store.import(State::Gradient, id, &values)?;
        }
        store.update(&AdamConfig::default())?;
    }
    ids.into_iter()
        .zip(shapes)
        .map(|(id, (name, ..))| Ok((name.to_owned(), store.export(State::Value, id)?)))
        .collect()
}
