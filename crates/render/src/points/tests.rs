//! The loops over lanes against the formulas of [`bsdf`], one point and one direction at a time.

use super::*;
use crate::sampling;

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
            bsdf::Surface { roughness, specular: if lane == 3 { 0.0 } else { 0.06 * lane as f32 } },
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
    };
    (lanes, points)
}

#[test]
fn lanes_reflect_as_single_points_do() {
    let (lanes, points) = lanes();
    let mut lit_ones = 0;
    for i in 0..40 {
        let l = sampling::sphere(i, 40, 0.1);
        let direction = l.to_array().map(Floats::splat);
        let (mut terms, mut gleam) = (Terms::NONE, ZERO);
        let lit = evaluate(&lanes, &direction, &mut terms);
        lobe(&lanes, &direction, &lanes.alpha, &mut gleam);
        for (lane, (n, v, surface)) in points.iter().enumerate() {
            let (n_dot_l, n_dot_v, l_dot_v) = (n.dot(l), n.dot(*v), l.dot(*v));
            assert_eq!(lit >> lane & 1 != 0, n_dot_l > 0.0, "lane {lane}");
            let near = |found: f32, expected: f32| (found - expected).abs() <= 1e-5 + 2e-3 * expected.abs();
            assert!(near(terms.cosine.0[lane], n_dot_l.max(0.0)), "lane {lane}: cosine");
            let diffuse = surface.diffuse(n_dot_l, n_dot_v, l_dot_v);
            assert!(near(terms.diffuse.0[lane], diffuse), "lane {lane}: {} {diffuse}", terms.diffuse.0[lane]);
            let specular = surface.specular(*n, l, *v, surface.alpha());
            assert!(near(gleam.0[lane], specular), "lane {lane}: {} {specular}", gleam.0[lane]);
            lit_ones += u32::from(specular > 1e-3);
        }
    }
    assert!(lit_ones > 50, "{lit_ones}");
}
