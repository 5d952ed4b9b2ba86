//! Rotations in pose space as images: one object turned about z, rendered here, encoded, and looked up again.

use std::path::Path;
use std::sync::Arc;

use evaluate::pose_space::{self, SweepStep};
use evaluate::prediction::Transformation;
use evaluate::{Encoder, NetworkEncoder};
use render::{PreparedMesh, Quality};
use scene::Latents;
use serde::{Deserialize, Serialize};

use crate::{Bitmap, Result, figures};

/// File of the neighbours found.
pub(crate) const SWEEP: &str = "pose_sweep.json";
/// Images beside it, without their endings.
pub const IMAGES: [&str; 3] = ["inverse_rotation", "forward_rotation", "rotation_errors"];

/// What was found, with the object it was found on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// Name of the class.
    pub object: String,
    /// One entry for each view.
    pub steps: Vec<SweepStep>,
}

/// The object that is turned: an airplane of the built-in library, which has no rotational symmetry.
const LABEL: usize = 0;
const INDEX: u64 = 1_000_003;

/// Renders, encodes and looks up; writes JSON, PNG and SVG into `folder`. Nothing for networks without pose matrices.
/// `seed` is that of the built-in object; `has_translation` as in the views the network was trained on.
pub fn write(encoder: &mut NetworkEncoder, folder: &Path, seed: u64, has_translation: bool) -> Result<()> {
    let Some(Transformation::PoseMatrices(layout)) = encoder.transformation() else { return Ok(()) };
    let side = encoder.side();
    let mesh = PreparedMesh::new(&procedural::build(seed, LABEL, INDEX));
    let mut images = Vec::new();
    let mut pixels = Vec::new();
    for degrees in pose_space::angles() {
        let latents = Latents {
            rotation: [0.0, 0.0, degrees.to_radians()],
            floor_hue: 0.6,
            spot_theta: 0.3,
            spot_phi: 1.0,
            spot_hue: 0.1,
            translation: has_translation.then_some([0.0; 3]),
            ..Latents::default()
        };
        let image = render::render(Some(&mesh), &latents, side as u32, Quality::Standard);
        pixels.extend_from_slice(&image.pixels);
        images.push(Arc::new(Bitmap::new(side as u32, side as u32, image.pixels)?));
    }
    let encoded = encoder.encode(&pixels, images.len())?;
    let steps = pose_space::sweep(layout, &encoded.equivariant);
    let object = procedural::classes().get(LABEL).map_or_else(String::new, |class| class.name.to_owned());
    let cell = 72.0;
    let drawings = [
        figures::sweep("Inverse rotation: P R^-1, nearest view", &steps, &images, false, cell),
        figures::sweep("Forward rotation: P(0) R, nearest view", &steps, &images, true, cell),
        figures::sweep_errors(&steps),
    ];
    for (name, drawing) in IMAGES.iter().zip(&drawings) {
        for ending in ["png", "svg"] {
            drawing.write(&folder.join(format!("{name}.{ending}")))?;
        }
    }
    let sweep = Sweep { object, steps };
    dataset::durable::write(&folder.join(SWEEP), serde_json::to_string_pretty(&sweep)?.as_bytes())?;
    Ok(())
}
