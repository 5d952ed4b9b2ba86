//! The latents of a view: the scene parameters that 3DIEBench and 3DIEBench-T vary.

/// Scene parameters of one view, in radians and scene units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latents {
    /// Object rotation about X, Y, Z: Tait-Bryan angles, extrinsic xyz.
    pub rotation: [f64; 3],
    /// Hue of the floor in `[0, 1]`.
    pub floor_hue: f64,
    /// Polar angle of the spot light from +Z.
    pub spot_theta: f64,
    /// Azimuth of the spot light.
    pub spot_phi: f64,
    /// Hue of the spot light in `[0, 1]`.
    pub spot_hue: f64,
    /// Object-frame translation `t`, applied before the rotation; `None` in 3DIEBench.
    pub translation: Option<[f64; 3]>,
}
