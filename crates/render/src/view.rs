//! One view: the object placed in the world, and the floor and the lights around it.

use glam::{DMat3, Mat3, Vec2, Vec3};
use scene::Latents;

use crate::bsdf::{Surface, valid_normal};
use crate::camera::Camera;
use crate::colour;
use crate::lights::{FLOOR_Z, Spot};
use crate::mesh::{ObjectPoint, PreparedMesh, Shape};
use crate::outline;
use crate::simplify;
use crate::trace::Hit;

/// Distance by which rays start above the surface, against meeting it again.
pub(crate) const LIFT: f32 = 2e-4;

/// The scene of one view.
pub(crate) struct View<'a> {
    pub mesh: &'a PreparedMesh,
    /// `p_world = world_from_object (p_object + translation)`: a rotation, or a rotation after scale and shear. What is
    /// computed in the object's frame has rays whose length is that of the world, whatever the object's shape.
    pub world_from_object: Mat3,
    pub object_from_world: Mat3,
    /// In the object's own frame, before scale and shear.
    pub translation: Vec3,
    /// Whether lengths are those of the mesh.
    pub is_rigid: bool,
    /// What a unit of the world's volume is in the object.
    pub object_volume: f32,
    /// The largest factor by which a length changes.
    pub stretch: f32,
    /// Centre of the bounding sphere, in the object.
    pub middle: Vec3,
    /// Radius of the bounding sphere around [`Self::centre`] in the world.
    pub radius: f32,
    pub floor_albedo: Vec3,
    pub spot: Spot,
    pub camera: Camera,
    /// Whether rays that look for light see the simplified object, where there is one.
    pub simple: bool,
}

/// A point on the object's surface in the world, seen from one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SurfacePoint {
    pub position: Vec3,
    /// Unit normal of the triangle, towards the viewer.
    pub face_normal: Vec3,
    /// Unit shading normal, on the same side as `face_normal`.
    pub normal: Vec3,
    pub uv: Vec2,
    /// Area in texture coordinates of what the point stands for; 0 for the point alone.
    pub footprint: f32,
    pub material: u32,
}

impl<'a> View<'a> {
    pub fn new(mesh: &'a PreparedMesh, latents: &Latents) -> Self {
        Self::within(mesh, latents, |shape, stretch| {
            (!mesh.is_empty()).then(|| outline::sphere(&mesh.geometry, shape, stretch))
        })
    }

    /// A view whose object, where `sphere` knows, has the sphere that it gives for a deformation and the largest factor by
    /// which that changes a length: see [`outline::sphere`].
    pub fn within(
        mesh: &'a PreparedMesh,
        latents: &Latents,
        sphere: impl FnOnce(Mat3, f32) -> Option<(Vec3, f32)>,
    ) -> Self {
        // The rows of a rotation are the columns of its inverse.
        let rows = latents.world_from_object().rotation().to_f32();
        let inverse_rotation = Mat3::from_cols_array_2d(&rows);
        let translation = Vec3::from(latents.translation.unwrap_or_default().map(|value| value as f32));
        let placed = Placement::of(inverse_rotation, translation, latents);
        let stretch = placed.stretch.unwrap_or(1.0);
        // The same scale along all axes moves the sphere with the object.
        let (middle, radius) = placed
            .uneven
            .and_then(|shape| sphere(shape, stretch))
            .unwrap_or((mesh.centre, stretch * mesh.radius));
        Self {
            mesh,
            world_from_object: placed.world_from_object,
            object_from_world: placed.object_from_world,
            translation: placed.translation,
            is_rigid: placed.stretch.is_none(),
            object_volume: if placed.stretch.is_none() {
                1.0
            } else {
                placed.object_from_world.determinant()
            },
            stretch,
            middle,
            radius,
            floor_albedo: colour::floor_albedo(latents.floor_hue),
            spot: Spot::new(latents),
            camera: Camera::from(latents.camera),
            simple: false,
        }
    }

    #[inline]
    pub fn to_object(&self, point: Vec3) -> Vec3 {
        self.object_from_world * point - self.translation
    }

    #[inline]
    pub fn to_world(&self, point: Vec3) -> Vec3 {
        self.world_from_object * (point + self.translation)
    }

    /// A unit normal of the object in the world: by the inverse transpose of what moves points.
    #[inline(always)]
    fn normal_to_world(&self, normal: Vec3) -> Vec3 {
        if self.is_rigid {
            return self.world_from_object * normal;
        }
        (self.object_from_world.transpose() * normal).normalize_or(normal)
    }

    /// Area in the object over area in the world, of a surface with this normal in the world.
    pub fn area_ratio(&self, face_normal: Vec3) -> f32 {
        if self.is_rigid {
            return 1.0;
        }
        self.object_volume * (self.world_from_object.transpose() * face_normal).length()
    }

    /// Centre of the object's bounding sphere in the world.
    pub fn centre(&self) -> Vec3 {
        self.to_world(self.middle)
    }

    /// How far from below the object's centre its influence on the floor's irradiance reaches.
    pub fn irradiance_reach(&self) -> f32 {
        let height = (self.centre().z - FLOOR_Z).max(0.0);
        // The sun's cone reaches as far as the object is high; light reflected by the object a little farther.
        (height + std::f32::consts::SQRT_2 * self.radius + 0.7).min(4.5)
    }

    /// The object as the camera sees it.
    #[inline]
    pub fn shape(&self) -> Shape<'_> {
        self.mesh.shape()
    }

    /// The object as rays that look for light see it.
    #[inline]
    pub fn light_shape(&self) -> Shape<'_> {
        let simple = if self.simple { self.mesh.simple_shape() } else { None };
        simple.unwrap_or(self.mesh.shape())
    }

    /// Distance by which rays that look for light start above the surface.
    #[inline]
    pub fn lift(&self) -> f32 {
        if self.simple && self.mesh.simple_shape().is_some() {
            // A larger object is larger by what was left out of it, too.
            simplify::LIFT * self.stretch.max(1.0)
        } else {
            LIFT
        }
    }

    /// The surface at a hit of a ray with the world direction `direction`.
    #[inline(always)]
    pub fn surface_point(&self, shape: &Shape<'_>, hit: &Hit, direction: Vec3) -> SurfacePoint {
        self.placed(&shape.point(hit), direction)
    }

    /// The same for a camera ray whose neighbours pass at the distance `spacing`, with what the material's maps make of
    /// it.
    #[inline]
    pub fn camera_point(&self, shape: &Shape<'_>, hit: &Hit, direction: Vec3, spacing: f32) -> SurfacePoint {
        let mut point = shape.point(hit);
        let material = &self.mesh.materials[point.material as usize];
        if !material.has_maps() {
            return self.placed(&point, direction).facing(direction);
        }
        let density = shape.uv_density(hit.triangle);
        let footprint = if self.is_rigid {
            let along = self.object_from_world * direction;
            let cos = point.face_normal.dot(along).abs() / along.length();
            density * spacing * spacing / cos.max(0.05)
        } else {
            let face = self.normal_to_world(point.face_normal);
            let cos = face.dot(direction).abs() / direction.length();
            density * self.area_ratio(face) * spacing * spacing / cos.max(0.05)
        };
        if material.normal_map.is_some() {
            point.normal = self.mesh.mapped_normal(shape, hit, &point, footprint);
        }
        SurfacePoint { footprint, ..self.placed(&point, direction).facing(direction) }
    }

    #[inline(always)]
    fn placed(&self, point: &ObjectPoint, direction: Vec3) -> SurfacePoint {
        let face_normal = self.normal_to_world(point.face_normal);
        let normal = self.normal_to_world(point.normal);
        let side = if face_normal.dot(direction) > 0.0 { -1.0 } else { 1.0 };
        SurfacePoint {
            position: self.to_world(point.position),
            face_normal: side * face_normal,
            normal: side * normal,
            uv: point.uv,
            footprint: 0.0,
            material: point.material,
        }
    }

    pub fn albedo(&self, point: &SurfacePoint) -> Vec3 {
        self.mesh.albedo(point.material, point.uv, point.footprint)
    }

    pub fn surface(&self, point: &SurfacePoint) -> Surface {
        self.mesh.surface(point.material, point.uv, point.footprint)
    }

    pub fn alpha(&self, point: &SurfacePoint) -> f32 {
        self.mesh.alpha(point.material, point.uv, point.footprint)
    }

    pub fn emission(&self, point: &SurfacePoint) -> Vec3 {
        self.mesh.emission(point.material, point.uv, point.footprint)
    }
}

/// How an object is put into the world.
struct Placement {
    world_from_object: Mat3,
    object_from_world: Mat3,
    translation: Vec3,
    /// The largest factor by which a length changes; `None` where none does.
    stretch: Option<f32>,
    /// The shape, where not all lengths change alike.
    uneven: Option<Mat3>,
}

impl Placement {
    /// By a rotation, given by its inverse, after a translation, after the shape in `latents`: the centre of the object
    /// stays where the translation puts it.
    fn of(inverse_rotation: Mat3, translation: Vec3, latents: &Latents) -> Self {
        let deformation = latents.deformation();
        let rows = deformation.matrix();
        let columns: [[f64; 3]; 3] = std::array::from_fn(|j| std::array::from_fn(|i| rows[i][j]));
        let shape = DMat3::from_cols_array_2d(&columns);
        if deformation.is_none() {
            return Self {
                world_from_object: inverse_rotation.transpose(),
                object_from_world: inverse_rotation,
                translation,
                stretch: None,
                uneven: None,
            };
        }
        let inverse = shape.inverse();
        let (rotation, narrow) = (inverse_rotation.transpose().as_dmat3(), |m: DMat3| m.as_mat3());
        Self {
            world_from_object: narrow(rotation * shape),
            object_from_world: narrow(inverse * rotation.transpose()),
            translation: (inverse * translation.as_dvec3()).as_vec3(),
            stretch: Some(largest_factor(shape) as f32),
            uneven: (shape != shape.x_axis.x * DMat3::IDENTITY).then(|| narrow(shape)),
        }
    }
}

/// The largest factor by which a matrix changes a length, or a hundredth of a percent more: the trace of the Gram matrix is
/// at most three times the square of it, and roots of traces of its powers come as near as one likes. The bounds of an object
/// decide where grids begin, so that they should be those of the same object made beforehand, where they can be.
fn largest_factor(matrix: DMat3) -> f64 {
    let mut gram = matrix.transpose() * matrix;
    let (mut logarithm, mut weight) = (0.0, 0.5);
    for _ in 0..13 {
        let trace = gram.x_axis.x + gram.y_axis.y + gram.z_axis.z;
        logarithm += weight * trace.ln();
        weight *= 0.5;
        gram *= 1.0 / trace;
        gram = gram * gram;
    }
    logarithm.exp()
}

impl SurfacePoint {
    /// With a normal that can be seen along `direction`.
    #[inline]
    fn facing(mut self, direction: Vec3) -> Self {
        self.normal = valid_normal(self.face_normal, -direction.normalize(), self.normal);
        self
    }

    /// Where rays leave from.
    #[inline]
    pub fn lifted(&self, lift: f32) -> Vec3 {
        self.position + lift * self.face_normal
    }
}

/// Distance along a ray to the floor, infinite where it does not come down.
#[inline]
pub(crate) fn floor_distance(origin: Vec3, direction: Vec3) -> f32 {
    if direction.z < 0.0 && origin.z > FLOOR_Z { (FLOOR_Z - origin.z) / direction.z } else { f32::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scene::LatentRanges;

    #[test]
    fn translation_comes_first_then_the_extrinsic_rotation() {
        let mesh = PreparedMesh::default();
        let latents = Latents {
            rotation: [std::f64::consts::FRAC_PI_2, 0.0, std::f64::consts::FRAC_PI_2],
            translation: Some([0.0, 0.5, 0.0]),
            ..Latents::default()
        };
        let view = View::new(&mesh, &latents);
        // y -> z about x, z stays about z; x -> y about z.
        assert!((view.to_world(Vec3::ZERO) - Vec3::new(0.0, 0.0, 0.5)).length() < 1e-6);
        assert!((view.to_world(Vec3::X) - Vec3::new(0.0, 1.0, 0.5)).length() < 1e-6);
        assert!((view.to_object(view.to_world(Vec3::ONE)) - Vec3::ONE).length() < 1e-5);
    }

    #[test]
    fn views_are_placed_as_the_pose_algebra_says() {
        let mesh = PreparedMesh::default();
        for view in 0..100 {
            let latents = LatentRanges::BENCH_T.sample(9, "placed", view);
            let placed = View::new(&mesh, &latents);
            let motion = latents.world_from_object();
            for point in [[0.0, 0.0, 0.0], [0.3, -0.2, 0.7]] {
                let wanted = Vec3::from(motion.apply(point).map(|value| value as f32));
                let found = placed.to_world(Vec3::from(point.map(|value| value as f32)));
                assert!((found - wanted).length() < 1e-6, "{view}: {found} {wanted}");
                assert!(
                    (placed.to_object(wanted) - Vec3::from(point.map(|value| value as f32))).length() < 1e-6
                );
            }
        }
    }

    #[test]
    fn the_largest_factor_is_never_too_small_and_hardly_too_large() {
        for (matrix, expected) in [
            (DMat3::IDENTITY * 1.6, 1.6),
            (DMat3::from_diagonal(glam::DVec3::new(0.5, 3.0, 2.9)), 3.0),
            (DMat3::from_diagonal(glam::DVec3::new(1e-3, 1e-3, 1e3)), 1e3),
            // A shear by 1: the golden ratio.
            (DMat3::from_cols_array(&[1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0]), 1.618_033_988_749_895),
        ] {
            let found = largest_factor(matrix);
            assert!(found >= expected * (1.0 - 1e-12) && found <= expected * 1.0002, "{found} {expected}");
        }
    }

    /// `Rz (Ry Rx)` by elementary rotations, as the first data sets were rendered.
    fn product_of_elementary_rotations(angles: [f64; 3]) -> [[f32; 3]; 3] {
        type Rows = [[f64; 3]; 3];
        let multiply = |a: &Rows, b: &Rows| -> Rows {
            std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
        };
        let [x, y, z] = angles.map(f64::sin_cos);
        let about_x = [[1.0, 0.0, 0.0], [0.0, x.1, -x.0], [0.0, x.0, x.1]];
        let about_y = [[y.1, 0.0, y.0], [0.0, 1.0, 0.0], [-y.0, 0.0, y.1]];
        let about_z = [[z.1, -z.0, 0.0], [z.0, z.1, 0.0], [0.0, 0.0, 1.0]];
        multiply(&about_z, &multiply(&about_y, &about_x)).map(|row| row.map(|value| value as f32))
    }

    #[test]
    fn rotations_have_the_bits_of_the_product_of_elementary_ones() {
        for view in 0..20_000 {
            let latents = LatentRanges::BENCH.sample(4, "bits", view);
            let rows = latents.world_from_object().rotation().to_f32();
            assert_eq!(rows, product_of_elementary_rotations(latents.rotation), "{view}");
        }
    }
}
