//! A view that somebody asks for: an object with the parameters of a scene, or one of its stored views.

use pose::Part;
use scene::{Latents, Shape};
use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::refusal::Refusal;

/// A view in the words of the page: angles in degrees, hues from 0 to 1, translations in scene units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SceneQuery {
    /// The object's number.
    pub object: usize,
    /// The stored view; none where the scene is described by the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<usize>,
    /// Rotation about x.
    pub rx: f64,
    /// Rotation about y.
    pub ry: f64,
    /// Rotation about z.
    pub rz: f64,
    /// Translation along x, y, z.
    pub tx: f64,
    /// See `tx`.
    pub ty: f64,
    /// See `tx`.
    pub tz: f64,
    /// Hue of the floor.
    pub floor_hue: f64,
    /// Angle of the spot light from the vertical.
    pub spot_theta: f64,
    /// Azimuth of the spot light.
    pub spot_phi: f64,
    /// Hue of the spot light.
    pub spot_hue: f64,
    /// Factors along x, y, z.
    pub scale_x: f64,
    /// See `scale_x`.
    pub scale_y: f64,
    /// See `scale_x`.
    pub scale_z: f64,
    /// Shears xy, xz, yz.
    pub shear_xy: f64,
    /// See `shear_xy`.
    pub shear_xz: f64,
    /// See `shear_xy`.
    pub shear_yz: f64,
}

/// Factors that an object can be scaled by.
const SCALES: std::ops::RangeInclusive<f64> = 0.05..=20.0;

impl Default for SceneQuery {
    /// The first object, neither turned nor moved nor deformed.
    fn default() -> Self {
        let latents = Latents::default();
        Self::of(0, None, &latents)
    }
}

impl SceneQuery {
    /// The words for `latents`.
    pub fn of(object: usize, view: Option<usize>, latents: &Latents) -> Self {
        let [rx, ry, rz] = latents.rotation.map(f64::to_degrees);
        let [tx, ty, tz] = latents.translation.unwrap_or_default();
        let [scale_x, scale_y, scale_z] = latents.shape.map_or([1.0; 3], |shape| shape.scale);
        let [shear_xy, shear_xz, shear_yz] = latents.shape.and_then(|shape| shape.shear).unwrap_or_default();
        Self {
            object,
            view,
            rx,
            ry,
            rz,
            tx,
            ty,
            tz,
            floor_hue: latents.floor_hue,
            spot_theta: latents.spot_theta.to_degrees(),
            spot_phi: latents.spot_phi.to_degrees(),
            spot_hue: latents.spot_hue,
            scale_x,
            scale_y,
            scale_z,
            shear_xy,
            shear_xz,
            shear_yz,
        }
    }

    /// The parameters of the scene: those of the stored view, or what is said here.
    pub fn latents(&self, data: &Data) -> Result<Latents, Refusal> {
        let count = data.views.objects().len();
        if self.object >= count {
            return Err(Refusal::Wrong(format!("there is no object {} (there are {count})", self.object)));
        }
        if let Some(view) = self.view {
            let views = data.views.views_in(self.object);
            if view >= views {
                return Err(Refusal::Wrong(format!("there is no view {view} (the object has {views})")));
            }
            return Ok(data.views.latents(self.object, view));
        }
        let bounded = [
            ("rx", self.rx, 360.0),
            ("ry", self.ry, 360.0),
            ("rz", self.rz, 360.0),
            ("tx", self.tx, 2.0),
            ("ty", self.ty, 2.0),
            ("tz", self.tz, 2.0),
            ("floor_hue", self.floor_hue, 1.0),
            ("spot_theta", self.spot_theta, 90.0),
            ("spot_phi", self.spot_phi, 720.0),
            ("spot_hue", self.spot_hue, 1.0),
            ("shear_xy", self.shear_xy, 10.0),
            ("shear_xz", self.shear_xz, 10.0),
            ("shear_yz", self.shear_yz, 10.0),
        ];
        if let Some((name, value, most)) =
            bounded.iter().find(|(_, value, most)| value.is_nan() || value.abs() > *most)
        {
            return Err(Refusal::Wrong(format!(
                "{name} is {value}, expected a number from -{most} to {most}"
            )));
        }
        let scale = [self.scale_x, self.scale_y, self.scale_z];
        if let Some(wrong) = scale.iter().find(|factor| !SCALES.contains(factor)) {
            let (least, most) = SCALES.into_inner();
            return Err(Refusal::Wrong(format!("a scale is {wrong}, expected {least} to {most}")));
        }
        let translation = [self.tx, self.ty, self.tz];
        let has = |part: Part| data.truth.has[part];
        let has_translation = has(Part::Translation) || translation != [0.0; 3];
        let shear = [self.shear_xy, self.shear_xz, self.shear_yz];
        let has_shear = has(Part::Shear) || shear != [0.0; 3];
        let has_shape = has_shear || has(Part::Scale) || scale != [1.0; 3];
        Ok(Latents {
            rotation: [self.rx, self.ry, self.rz].map(f64::to_radians),
            floor_hue: self.floor_hue.rem_euclid(1.0),
            spot_theta: self.spot_theta.to_radians(),
            spot_phi: self.spot_phi.to_radians(),
            spot_hue: self.spot_hue.rem_euclid(1.0),
            translation: has_translation.then_some(translation),
            shape: has_shape.then_some(Shape { scale, shear: has_shear.then_some(shear) }),
            camera: None,
        })
    }
}
