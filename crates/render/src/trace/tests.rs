//! The hierarchy against brute force, and packets against single rays.

use super::*;
use crate::bvh;
use random::{Random, Stream};

fn vector(random: &mut Random, scale: f64) -> Vec3 {
    Vec3::from(std::array::from_fn::<f32, 3, _>(|_| random.range(-scale, scale) as f32))
}

/// A cloud of random triangles, some flat in an axis, every fifth half transparent.
fn cloud(random: &mut Random, count: usize) -> Geometry {
    let corners: Vec<[Vec3; 3]> = (0..count)
        .map(|i| {
            let centre = vector(random, 0.5);
            let mut corners = [0; 3].map(|_| centre + vector(random, 0.1));
            if i % 4 == 0 {
                corners.iter_mut().for_each(|corner| corner[i / 4 % 3] = centre[i / 4 % 3]);
            }
            corners
        })
        .collect();
    let (nodes, order) = bvh::build(&corners);
    let triangles: Vec<Triangle> = order
        .iter()
        .map(|&index| {
            let transparency = if index % 5 == 0 { 0.5 } else { 0.0 };
            Triangle::new(corners[index as usize], index, transparency)
        })
        .collect();
    let wide = Wide::new(&nodes, &triangles);
    Geometry { nodes, triangles, has_transparency: true, wide, ..Geometry::default() }
}

/// Nearest hit and transmitted share by testing every triangle, in double precision.
fn brute_force(geometry: &Geometry, origin: Vec3, direction: Vec3, limit: f32) -> (f64, f64) {
    let (o, d) = (origin.as_dvec3(), direction.as_dvec3());
    let (mut nearest, mut left) = (f64::INFINITY, 1.0);
    for triangle in &geometry.triangles {
        let corner = Vec3::from(triangle.corner).as_dvec3();
        let (e1, e2) = (Vec3::from(triangle.edge1).as_dvec3(), Vec3::from(triangle.edge2).as_dvec3());
        let p = d.cross(e2);
        let inverse = 1.0 / e1.dot(p);
        let s = o - corner;
        let (u, q) = (s.dot(p) * inverse, s.cross(e1));
        let (v, t) = (d.dot(q) * inverse, e2.dot(q) * inverse);
        if u >= 0.0 && v >= 0.0 && u + v <= 1.0 && t > 1e-6 && t < f64::from(limit) {
            nearest = nearest.min(t);
            left *= f64::from(triangle.transparency);
        }
    }
    (nearest, left)
}

/// The share of rays for which packets and brute force may disagree: those through an edge.
fn check(geometry: &Geometry, packet: &impl Traceable, rays: &[(Vec3, Vec3, f32)]) -> usize {
    let mut hits = Hits::NONE;
    packet.nearest(geometry, &mut hits);
    let open = packet.transmitted(geometry);
    let mut left = Floats::splat(0.0);
    packet.filtered(geometry, &mut left);
    let blocked = packet.blocked(geometry);
    let mut wrong = 0;
    for (lane, &(origin, direction, limit)) in rays.iter().enumerate() {
        if packet.active() >> lane & 1 == 0 {
            assert!(hits.triangle[lane] == MISS && open.0[lane] == 0.0 && blocked >> lane & 1 == 0);
            continue;
        }
        let (nearest, share) = brute_force(geometry, origin, direction, limit);
        let one = geometry.nearest_one(origin, direction, limit);
        let hit = hits.triangle[lane] != MISS;
        assert_eq!(hit, hits.mask >> lane & 1 != 0);
        let agrees = hit == nearest.is_finite()
            && (!hit || (f64::from(hits.t.0[lane]) - nearest).abs() < 1e-4)
            && hit == (one.triangle != MISS)
            && (f64::from(open.0[lane]) - share).abs() < 1e-6
            && (f64::from(geometry.transmitted_one(origin, direction, limit)) - share).abs() < 1e-6
            && (blocked >> lane & 1 != 0) == hit;
        wrong += usize::from(!agrees);
    }
    wrong
}

#[test]
fn packets_find_what_brute_force_finds() {
    let mut random = Random::new(5, Stream::new("trace-test"), 0);
    let geometry = cloud(&mut random, 600);
    let (mut wrong, mut total) = (0, 0);
    for round in 0..300 {
        let mut direction = vector(&mut random, 1.0);
        if round % 3 == 0 {
            direction[round / 3 % 3] = 0.0;
        }
        let start = vector(&mut random, 1.0);
        let active = if round % 2 == 0 { 0xffff } else { 0x5a7d };
        let limit = if round % 5 == 0 { 0.7 } else { f32::INFINITY };
        let points: [Vec3; WIDTH] = std::array::from_fn(|_| start + vector(&mut random, 0.2));
        let lanes = [0, 1, 2].map(|axis| Floats(points.map(|point| point[axis])));
        let parallel = Parallel { origin: lanes, direction, limit: Floats::splat(limit), active };
        wrong += check(&geometry, &parallel, &points.map(|point| (point, direction, limit)));
        let fan = Fan::to_points(direction * 2.0, &lanes, active);
        wrong += check(&geometry, &fan, &points.map(|point| (fan.origin, point - fan.origin, 1.0)));
        total += 2 * WIDTH;
    }
    assert!(wrong * 1000 < total, "{wrong} of {total}");
}

#[test]
fn scattered_rays_have_the_bits_of_single_ones() {
    let mut random = Random::new(8, Stream::new("trace-test"), 2);
    let geometry = cloud(&mut random, 400);
    let mut found = 0;
    for round in 0..100 {
        let rays: [(Vec3, Vec3); WIDTH] =
            std::array::from_fn(|_| (vector(&mut random, 0.7), vector(&mut random, 1.0)));
        let mut packet = Scattered::NONE;
        for lane in (0..WIDTH).filter(|lane| round % 2 == 0 || lane % 3 == 1) {
            packet.set(lane, rays[lane].0, rays[lane].1, 0.8);
        }
        let mut hits = Hits::NONE;
        geometry.nearest_of(&packet, &mut hits);
        for (lane, &(origin, direction)) in rays.iter().enumerate() {
            let is_active = packet.active >> lane & 1 != 0;
            let (many, one) = (hits.lane(lane), geometry.nearest_one(origin, direction, 0.8));
            assert_eq!(many.triangle, if is_active { one.triangle } else { MISS });
            if many.triangle != MISS {
                assert_eq!((many.t, many.u, many.v), (one.t, one.u, one.v));
                found += 1;
            }
        }
    }
    assert!(found > 100, "{found}");
}

multiversion! {
    /// Nearest hits of both packets, and what the fan's rays meet and what is left of their light, at one level.
    unsafe fn find_at<S>(
        level: Level;
        geometry: &Geometry,
        packets: (&Parallel, &Fan),
        hits: &mut [Hits; 2],
        left: &mut Floats,
    ) -> Mask {
        let (parallel, fan) = packets;
        nearest::<S::Sixteen>(geometry, &ParallelRays::new(parallel), &mut hits[0]);
        nearest::<S::Sixteen>(geometry, &FanRays::new(fan), &mut hits[1]);
        filtered::<S::Sixteen>(geometry, &FanRays::new(fan), left);
        blocked::<S::Sixteen>(geometry, &FanRays::new(fan))
    }
}

#[test]
fn every_level_gives_the_same_bits() {
    let mut random = Random::new(6, Stream::new("trace-test"), 1);
    let geometry = cloud(&mut random, 300);
    for _ in 0..50 {
        let points: [Vec3; WIDTH] = std::array::from_fn(|_| vector(&mut random, 1.0));
        let origin = [0, 1, 2].map(|axis| Floats(points.map(|point| point[axis])));
        let direction = vector(&mut random, 1.0);
        let parallel = Parallel { origin, direction, limit: Floats::splat(f32::INFINITY), active: 0xffff };
        let fan = Fan::to_points(direction, &origin, 0xffff);
        let (mut here, mut left_here) = ([Hits::NONE; 2], Floats::splat(0.0));
        parallel.nearest(&geometry, &mut here[0]);
        fan.nearest(&geometry, &mut here[1]);
        fan.filtered(&geometry, &mut left_here);
        for level in simd::available() {
            let (mut hits, mut left) = ([Hits::NONE; 2], Floats::splat(0.0));
            // SAFETY: the level is one of this processor's.
            let met = unsafe { find_at(level, &geometry, (&parallel, &fan), &mut hits, &mut left) };
            for (here, there) in here.iter().zip(&hits) {
                assert_eq!((here.triangle, here.mask), (there.triangle, there.mask), "{level:?}");
                if here.mask != 0 {
                    assert_eq!((here.t, here.u, here.v), (there.t, there.u, there.v), "{level:?}");
                }
            }
            assert_eq!((fan.blocked(&geometry), left_here), (met, left), "{level:?}");
        }
    }
}

#[test]
fn an_empty_geometry_stops_nothing() {
    let geometry = Geometry::default();
    let packet = Fan::to_points(Vec3::ZERO, &[Floats::splat(1.0); 3], 0xffff);
    assert_eq!(packet.transmitted(&geometry), Floats::splat(1.0));
    assert_eq!(geometry.nearest_one(Vec3::ZERO, Vec3::X, 1.0).triangle, MISS);
}
