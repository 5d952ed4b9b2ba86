//! Camera rays and points of the floor against the projection, which has tests of its own.

use super::*;

#[test]
fn camera_rays_go_through_the_middles_of_their_parts_of_pixels() {
    let camera = Camera::from(None);
    for supersampling in [2, 3, 4] {
        let region = Region { x0: -3, y0: 5, width: 90, height: 80, supersampling };
        for (x, y) in [(0, 0), (1, 0), (0, 1), (37, 52), (89, 79)] {
            let point = camera.position + 2.0 * region.direction(&camera, x, y, 64);
            let (found_x, found_y, _) = camera.project(point, 64.0).unwrap();
            let middle = |first: f32, ray: usize| first + (ray as f32 + 0.5) / supersampling as f32;
            assert!((found_x - middle(-3.0, x)).abs() < 1e-3, "{supersampling} {x}: {found_x}");
            assert!((found_y - middle(5.0, y)).abs() < 1e-3, "{supersampling} {y}: {found_y}");
        }
    }
}

#[test]
fn points_of_the_floor_are_seen_where_they_are_looked_for() {
    let camera = Camera::from(None);
    for (x, y) in [(0.0, 0.0), (64.0, 0.0), (0.0, 64.0), (64.0, 64.0), (31.5, 40.5), (50.0, 7.5)] {
        let point = floor_row(&camera, y, 64)(x).extend(FLOOR_Z);
        let (found_x, found_y, _) = camera.project(point, 64.0).unwrap();
        assert!((found_x - x).abs() < 1e-3 && (found_y - y).abs() < 1e-3, "{x} {y}: {found_x} {found_y}");
    }
}
