//! The loops over lanes against the formulas of [`bsdf`], one point and one direction at a time; and highlights of a plate
//! that faces the sky against what they reflect.

use scene::{Latents, Material, Mesh, Vertex};

use super::*;
use crate::lights::Spot;
use crate::mesh::PreparedMesh;
use crate::settings::Settings;
use crate::view::View;
use crate::{Quality, sampling};

/// Sixteen points of different surfaces, seen from different directions.
fn lanes() -> (PointLanes, [(Vec3, Vec3, bsdf::Surface); WIDTH]) {
    let points: [(Vec3, Vec3, bsdf::Surface); WIDTH] = std::array::from_fn(|lane| {
        let normal = sampling::sphere(lane, WIDTH, 0.3);
        let aside = sampling::sphere(WIDTH - 1 - lane, WIDTH, 0.7);
        let view = (normal + 0.8 * aside).normalize();
        let roughness = 0.1 + 0.05 * lane as f32;
        (
            normal,
            view,
            bsdf::Surface {
                roughness,
                specular: if lane == 3 { 0.0 } else { 0.06 * lane as f32 },
                metallic: if lane % 5 == 3 { 0.07 * lane as f32 } else { 0.0 },
            },
        )
    });
    let vectors = |value: &dyn Fn(usize) -> Vec3| {
        let mut vectors = [ZERO; 3];
        (0..WIDTH).for_each(|lane| set(&mut vectors, lane, value(lane)));
        vectors
    };
    let floats = |value: &dyn Fn(usize) -> f32| Floats(std::array::from_fn(value));
    let lanes = PointLanes {
        position: [ZERO; 3],
        normal: vectors(&|lane| points[lane].0),
        face: vectors(&|lane| points[lane].0),
        view: vectors(&|lane| points[lane].1),
        n_dot_v: floats(&|lane| points[lane].0.dot(points[lane].1)),
        roughness: floats(&|lane| points[lane].2.roughness),
        reflectance: floats(&|lane| points[lane].2.normal_reflectance()),
        eta: floats(&|lane| points[lane].2.eta()),
        alpha: floats(&|lane| points[lane].2.alpha()),
        metallic: floats(&|lane| points[lane].2.metallic),
        lobe_chance: ZERO,
        diffuse_chance: Floats::splat(1.0),
    };
    (lanes, points)
}

#[test]
fn lanes_reflect_as_single_points_do() {
    let (lanes, points) = lanes();
    let (mut lit_ones, mut metal_ones) = (0, 0);
    for i in 0..40 {
        let l = sampling::sphere(i, 40, 0.1);
        let direction = l.to_array().map(Floats::splat);
        let (mut terms, mut gleam, mut metal) = (Terms::NONE, ZERO, ZERO);
        let lit = evaluate(&lanes, &direction, &mut terms);
        lobe(&lanes, &direction, &lanes.alpha, &mut gleam);
        metal_lobe(&lanes, &direction, &lanes.alpha, &mut metal);
        for (lane, (n, v, surface)) in points.iter().enumerate() {
            let (n_dot_l, n_dot_v, l_dot_v) = (n.dot(l), n.dot(*v), l.dot(*v));
            assert_eq!(lit >> lane & 1 != 0, n_dot_l > 0.0, "lane {lane}");
            let near = |found: f32, expected: f32| (found - expected).abs() <= 1e-5 + 2e-3 * expected.abs();
            assert!(near(terms.cosine.0[lane], n_dot_l.max(0.0)), "lane {lane}: cosine");
            let diffuse = surface.diffuse(n_dot_l, n_dot_v, l_dot_v);
            assert!(near(terms.diffuse.0[lane], diffuse), "lane {lane}: {} {diffuse}", terms.diffuse.0[lane]);
            let specular = surface.specular(*n, l, *v, surface.alpha());
            assert!(near(gleam.0[lane], specular.white), "lane {lane}: {} {specular:?}", gleam.0[lane]);
            assert!(near(metal.0[lane], specular.albedo), "lane {lane}: {} {specular:?}", metal.0[lane]);
            lit_ones += u32::from(specular.white > 1e-3);
            metal_ones += u32::from(specular.albedo > 1e-3);
        }
    }
    assert!(lit_ones > 50 && metal_ones > 10, "{lit_ones} {metal_ones}");
}

/// Direction from the plate to the viewer, and where a mirror would look.
const VIEWER: Vec3 = Vec3::new(0.287_347_9, 0.0, 0.957_826_3);
const MIRRORED: Vec3 = Vec3::new(-0.287_347_9, 0.0, 0.957_826_3);

/// Calls `look` with a point of a plate of this roughness and its surface; the spot stands where a mirror would show it.
fn on_a_plate<T>(roughness: f32, look: impl FnOnce(&LitScene<'_>, &PointPacket, &bsdf::Surface) -> T) -> T {
    on_a_plate_in_a_beam(-MIRRORED, roughness, look)
}

/// The same with a beam along `axis`.
fn on_a_plate_in_a_beam<T>(
    axis: Vec3,
    roughness: f32,
    look: impl FnOnce(&LitScene<'_>, &PointPacket, &bsdf::Surface) -> T,
) -> T {
    let corner = |x: f32, y: f32| Vertex { position: [x, y, 0.0], normal: [0.0, 0.0, 1.0], uv: [0.0; 2] };
    let plate = Mesh {
        vertices: vec![corner(-0.3, -0.3), corner(0.3, -0.3), corner(0.3, 0.3), corner(-0.3, 0.3)],
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        triangle_materials: vec![0, 0],
        materials: vec![Material { roughness, specular: 1.0, ..Material::default() }],
    };
    let plate = PreparedMesh::new(&plate);
    let latents = Latents { floor_hue: 0.5, spot_hue: 0.5, ..Latents::default() };
    let mut view = View::new(&plate, &latents);
    view.spot = Spot { position: 4.0 * MIRRORED, axis, intensity: Vec3::ONE };
    let scene = LitScene::new(&view, Settings::new(Quality::Reference), &mut 0);
    let (position, up) = (Vec3::ZERO, Vec3::Z);
    let (uv, footprint) = (glam::Vec2::ZERO, 0.0);
    let point = SurfacePoint { position, face_normal: up, normal: up, uv, footprint, material: 0 };
    let packet = PointPacket::new(&scene, &[(point, VIEWER, Vec3::splat(0.8))]);
    look(&scene, &packet, &bsdf::Surface { roughness, specular: 1.0, metallic: 0.0 })
}

fn is_near(found: f32, expected: f32, share: f32) -> bool {
    (found - expected).abs() < share * expected.abs()
}

#[test]
fn a_wide_lobe_reflects_the_whole_sun() {
    on_a_plate(0.6, |scene, packet, surface| {
        let mut shades = [Shade::default(); WIDTH];
        let share = packet.add_sun(scene, (&mut shades, &mut [Vec3::ZERO; WIDTH]), &mut 0)[0];
        let count = 100_000;
        let sum: f32 = (0..count)
            .map(|i| sampling::sphere(i, count, 0.0))
            .map(|l| lights::sun_radiance(l) * surface.specular(Vec3::Z, l, VIEWER, surface.alpha()).white)
            .sum();
        let expected = sum * 4.0 * PI / count as f32;
        assert!(is_near(share, 1.0, 1e-3) && is_near(shades[0].specular.x, expected, 0.05), "{expected}");
    });
}

#[test]
fn a_narrow_lobe_is_a_mirror_of_world_and_sun() {
    on_a_plate(0.1, |scene, packet, surface| {
        let reflected = surface.fresnel(VIEWER.z).white;
        for share in [0.0, 0.5, 1.0] {
            let expected = reflected * (WORLD_RADIANCE + share * lights::sun_radiance(MIRRORED));
            let found = packet.gleam(scene, &[share; WIDTH]).white.0[0];
            assert!(is_near(found, expected, 0.05), "{share}: {found} {expected}");
        }
    });
}

#[test]
fn a_mirror_shows_the_disc_of_the_lamp() {
    let spot = Spot { position: 4.0 * MIRRORED, axis: -MIRRORED, intensity: Vec3::ONE };
    let shown =
        |aside: f32, alpha: f32| spot.mirrored(Vec3::ZERO, (MIRRORED + aside * Vec3::Y).normalize(), alpha);
    // All of the intensity comes from the disc.
    let radiance = 1.0 / (PI * LAMP_RADIUS * LAMP_RADIUS);
    assert!(is_near(shown(0.0, 1e-3), radiance, 0.02), "{}", shown(0.0, 1e-3));
    assert!(is_near(shown(0.05, 1e-3), radiance, 0.02) && shown(0.07, 1e-3) == 0.0);
    // A wider lobe makes it darker and softer.
    assert!(shown(0.0, 0.02) < 0.8 * radiance && shown(0.07, 0.02) > 0.1 * radiance);
    // Where the lamp's points take over, it is as bright to a factor.
    let alpha = 0.999 * LAMP_LOBE;
    let mirrored = on_a_plate(0.03, |_, _, surface| surface.fresnel(VIEWER.z).white * shown(0.0, alpha));
    let sampled = on_a_plate(1.001 * LAMP_LOBE.sqrt(), |scene, packet, _| {
        let mut shades = [Shade::default(); WIDTH];
        packet.add_spot(scene, (&mut shades, &mut [Vec3::ZERO; WIDTH]), &mut 0);
        shades[0].specular.x
    });
    assert!(is_near(mirrored, sampled, 0.35), "{mirrored} {sampled}");
}

#[test]
fn lobes_narrower_than_the_lamp_leave_it_to_the_samples() {
    let shade = |roughness: f32| {
        on_a_plate(roughness, |scene, packet, _| {
            let mut shades = [Shade::default(); WIDTH];
            packet.add_spot(scene, (&mut shades, &mut [Vec3::ZERO; WIDTH]), &mut 0);
            shades[0]
        })
    };
    // The lamp is above the plate with nothing in between.
    let mirror = shade(0.999 * LAMP_LOBE.sqrt());
    assert!(mirror.specular == Vec3::ZERO && mirror.lamp == 1.0 && mirror.diffuse.x > 0.0, "{mirror:?}");
    let glossy = shade(1.001 * LAMP_LOBE.sqrt());
    assert!(glossy.specular.x > 0.1 && glossy.lamp == 0.0, "{glossy:?}");
}

#[test]
fn all_of_the_lamp_arrives_where_nothing_is_in_between_also_at_the_edge_of_the_beam() {
    let share = |aside: f32| {
        let axis = (-MIRRORED + aside * Vec3::Y).normalize();
        on_a_plate_in_a_beam(axis, 0.03, |scene, packet, _| {
            let is_inside = scene.view.spot.is_inside(Vec3::ZERO);
            let mut shades = [Shade::default(); WIDTH];
            packet.add_spot(scene, (&mut shades, &mut [Vec3::ZERO; WIDTH]), &mut 0);
            (is_inside, shades[0].lamp)
        })
    };
    assert_eq!(share(0.0), (true, 1.0));
    // 11 degrees aside, where a part of the lamp's points shine.
    for aside in [0.17, 0.19, 0.21] {
        let (is_inside, share) = share(aside);
        assert!(!is_inside && is_near(share, 1.0, 1e-4), "{aside}: {share}");
    }
}

#[test]
fn light_of_surfaces_counts_less_where_the_lobe_is_likely() {
    let (mut lanes, points) = lanes();
    lanes.lobe_chance = Floats::splat(0.1);
    let mut shares = ZERO;
    for i in 0..40 {
        let l = sampling::sphere(i, 40, 0.1);
        let direction = l.to_array().map(Floats::splat);
        let mut terms = Terms::NONE;
        let lit = evaluate(&lanes, &direction, &mut terms);
        counted_share(&lanes, &direction, &terms, &mut shares);
        for lane in lanes_of(lit) {
            let (n, v, surface) = points[lane];
            let half = (l + v).normalize();
            let a2 = surface.alpha() * surface.alpha();
            let d = n.dot(half).powi(2) * (a2 - 1.0) + 1.0;
            let expected = n.dot(l) / (n.dot(l) + 0.1 * a2 / (d * d));
            assert!((shares.0[lane] - expected).abs() < 2e-3, "{} {expected}", shares.0[lane]);
        }
    }
    lanes.lobe_chance = ZERO;
    let up = [ZERO, ZERO, Floats::splat(1.0)];
    let mut terms = Terms::NONE;
    let lit = evaluate(&lanes, &up, &mut terms);
    counted_share(&lanes, &up, &terms, &mut shares);
    assert!(lit != 0 && lanes_of(lit).all(|lane| shares.0[lane] == 1.0));
}
