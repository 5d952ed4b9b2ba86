//! Rotations in pose space as images: one object turned about z, rendered here, encoded, and looked up again. It is one of
//! the data's own where these are meshes, so that a network is asked about what it was made for.

use std::path::Path;
use std::sync::Arc;

use dataset::{ObjectSet, Split, Views};
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
    /// The class of a built-in object, or `CLASS/OBJECT` of the data.
    pub object: String,
    /// Whether it is one of the data's own objects.
    #[serde(default)]
    pub is_own: bool,
    /// One entry for each view.
    pub steps: Vec<SweepStep>,
}

impl Sweep {
    /// The object in words.
    pub(crate) fn object_in_words(&self) -> String {
        match self.is_own {
            true => format!("the object {}", self.object),
            false => format!("an object of class {} of the built-in library", self.object),
        }
    }
}

/// Of so many of the data's objects one is chosen, by views of this size at these angles.
const CANDIDATES: usize = 8;
const LOOK_PX: usize = 64;
const LOOK_DEGREES: [f64; 4] = [0.0, 30.0, 60.0, 90.0];

/// Where the data are no meshes: an airplane of the built-in library, which has no rotational symmetry.
const LABEL: usize = 0;
const INDEX: u64 = 1_000_003;

/// An object to be turned, with its name.
struct Turned {
    name: String,
    is_own: bool,
    mesh: PreparedMesh,
}

impl Turned {
    fn built_in(seed: u64) -> Self {
        let name = procedural::classes().get(LABEL).map_or_else(String::new, |class| class.name.to_owned());
        Self { name, is_own: false, mesh: PreparedMesh::new(&procedural::build(seed, LABEL, INDEX)) }
    }

    /// Of some held-out objects of `views`, whose meshes are in `set`, the one that changes most when it is turned: of one
    /// that looks the same from all sides nothing could be told.
    fn own(set: &ObjectSet, views: &dyn Views) -> Option<Self> {
        let held_out = views.split(Split::Val);
        let all = if held_out.is_empty() { 0..views.objects().len() } else { held_out };
        let step = all.len().div_ceil(CANDIDATES).max(1);
        let mut best: Option<(u64, Self)> = None;
        for object in all.step_by(step).filter_map(|index| views.objects().get(index)) {
            let Ok(mesh) = set.load(object, |_| ()) else { continue };
            let turned = Self { name: object.id(), is_own: true, mesh: PreparedMesh::new(&mesh) };
            let change = turned.change();
            if best.as_ref().is_none_or(|(most, _)| change > *most) {
                best = Some((change, turned));
            }
        }
        best.map(|(_, turned)| turned)
    }

    /// How much its views at other angles differ from the first one, at least.
    fn change(&self) -> u64 {
        let [first, others @ ..] =
            LOOK_DEGREES.map(|degrees| self.view(degrees, LOOK_PX, false, Quality::Fast));
        let apart = |other: &Vec<u8>| first.iter().zip(other).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        others.iter().map(apart).min().unwrap_or(0)
    }

    /// Its pixels when it is turned by `degrees` about z.
    fn view(&self, degrees: f64, side: usize, has_translation: bool, quality: Quality) -> Vec<u8> {
        let latents = Latents {
            rotation: [0.0, 0.0, degrees.to_radians()],
            floor_hue: 0.6,
            spot_theta: 0.3,
            spot_phi: 1.0,
            spot_hue: 0.1,
            translation: has_translation.then_some([0.0; 3]),
            ..Latents::default()
        };
        render::render(Some(&self.mesh), &latents, side as u32, quality).pixels
    }
}

/// Renders, encodes and looks up; writes JSON, PNG and SVG into `folder`. Nothing for networks without pose matrices.
/// `own` are the data's views with the meshes of their objects, where they have any; `seed` is that of the built-in object
/// otherwise; `has_translation` as in the views the network was trained on.
pub fn write(
    encoder: &mut NetworkEncoder,
    folder: &Path,
    own: Option<(&ObjectSet, &dyn Views)>,
    seed: u64,
    has_translation: bool,
) -> Result<()> {
    let Some(Transformation::PoseMatrices(layout)) = encoder.transformation() else { return Ok(()) };
    let side = encoder.side();
    let turned =
        own.and_then(|(set, views)| Turned::own(set, views)).unwrap_or_else(|| Turned::built_in(seed));
    let mut images = Vec::new();
    let mut pixels = Vec::new();
    for degrees in pose_space::angles() {
        let image = turned.view(degrees, side, has_translation, Quality::Standard);
        pixels.extend_from_slice(&image);
        images.push(Arc::new(Bitmap::new(side as u32, side as u32, image)?));
    }
    let encoded = encoder.encode(&pixels, images.len())?;
    let steps = pose_space::sweep(layout, &encoded.equivariant);
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
    let sweep = Sweep { object: turned.name, is_own: turned.is_own, steps };
    dataset::durable::write(&folder.join(SWEEP), serde_json::to_string_pretty(&sweep)?.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataset::{CpuRenderer, OnTheFly, OnTheFlyOptions};
    use scene::LatentRanges;

    #[test]
    fn an_object_that_looks_different_from_its_sides_is_chosen() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("class");
        std::fs::create_dir(&class).unwrap();
        // A square pillar looks nearly the same after a quarter of a turn; a wedge does not.
        let pillar = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)];
        let wedge = [(-3.0, -1.0), (1.0, -1.0), (1.0, 0.5), (-3.0, -0.8)];
        for (name, corners) in [("a_pillar", pillar), ("b_wedge", wedge), ("c_pillar", pillar)] {
            let mut text = String::new();
            for z in [0.0, 1.5] {
                corners.iter().for_each(|(x, y)| text += &format!("v {x} {z} {y}\n"));
            }
            for side in 0..4 {
                let (a, b) = (side + 1, (side + 1) % 4 + 1);
                text += &format!("f {a} {b} {} {}\n", b + 4, a + 4);
            }
            text += "f 5 6 7 8\nf 1 2 3 4\n";
            std::fs::write(class.join(format!("{name}.obj")), text).unwrap();
        }
        let of = |root: &Path| ObjectSet::meshes(root, None, None).unwrap();
        let set = of(root.path());
        let options = OnTheFlyOptions {
            views: 1,
            held_out_views: 1,
            side: 16,
            seed: 0,
            ranges: LatentRanges::BENCH,
            memory: 0,
            prepared: 1,
            ready: false,
        };
        let views = OnTheFly::new(CpuRenderer::new(of(root.path()), Quality::Fast), &set.ids(), options);
        let chosen = Turned::own(&set, &views).unwrap();
        assert_eq!((chosen.name.as_str(), chosen.is_own), ("class/b_wedge", true));
        let sweep = Sweep { object: chosen.name, is_own: true, steps: Vec::new() };
        assert_eq!(sweep.object_in_words(), "the object class/b_wedge");
        // Files of before have no word for it.
        let old: Sweep = serde_json::from_str(r#"{"object": "airplane", "steps": []}"#).unwrap();
        assert_eq!(old.object_in_words(), "an object of class airplane of the built-in library");
    }
}
