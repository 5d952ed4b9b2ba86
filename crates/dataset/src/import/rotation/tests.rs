//! Rotations that were computed by hand.

use super::*;
use std::f64::consts::{FRAC_PI_2, PI};

type Matrix = [[f64; 3]; 3];

fn product(a: Matrix, b: Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

fn near(a: Matrix, b: Matrix) -> bool {
    a.iter().flatten().zip(b.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-12)
}

fn matrix(pose: Pose) -> Matrix {
    Rotation::from(TaitBryan::from(pose.rotation)).to_matrix()
}

/// Elementary rotations written out.
fn elementary(axis: usize, angle: f64) -> Matrix {
    let (s, c) = angle.sin_cos();
    match axis {
        0 => [[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]],
        1 => [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]],
        _ => [[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]],
    }
}

#[test]
fn all_orders_are_products_of_their_elementary_rotations() {
    let angles = [0.4, -1.1, 2.3];
    let orders = ["xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz"];
    for lower in orders {
        for text in [lower.to_owned(), lower.to_uppercase()] {
            let order: EulerOrder = text.parse().unwrap();
            assert_eq!(order.to_string(), text);
            let [a, b, c] =
                std::array::from_fn(|k| elementary(lower.as_bytes()[k] as usize - b'x' as usize, angles[k]));
            let wanted = if text == lower { product(c, product(b, a)) } else { product(a, product(b, c)) };
            assert!(near(order.rotation(angles).to_matrix(), wanted), "{text}");
            // And through the latents, in either unit.
            let conventions = Conventions::default();
            let found = conventions.pose(Given::Angles(angles, order, AngleUnit::Radians), None).unwrap();
            assert!(near(matrix(found), wanted), "{text}");
            let degrees = angles.map(f64::to_degrees);
            let found = conventions.pose(Given::Angles(degrees, order, AngleUnit::Degrees), None).unwrap();
            assert!(near(matrix(found), wanted), "{text} in degrees");
        }
    }
    for wrong in ["", "xy", "xxy", "xyZ", "xya", "xyzx", "XyZ"] {
        assert!(wrong.parse::<EulerOrder>().is_err(), "{wrong}");
    }
}

#[test]
fn quarter_turns_by_hand() {
    let conventions = Conventions::default();
    let order = |text: &str| text.parse::<EulerOrder>().unwrap();
    let turned = |given| matrix(conventions.pose(given, None).unwrap());
    // A quarter about z: x goes to y, y to -x.
    let about_z = [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
    assert!(near(turned(Given::Angles([0.0, 0.0, 90.0], order("xyz"), AngleUnit::Degrees)), about_z));
    let half = 0.5_f64.sqrt();
    assert!(near(turned(Given::Quaternion([0.0, 0.0, half, half])), about_z));
    assert!(near(turned(Given::Quaternion([0.0, 0.0, -half, -half])), about_z), "the sign does not matter");
    assert!(near(turned(Given::Matrix(about_z)), about_z));
    // First a quarter about x, then about z, both standing still: x -> y, y -> z -> z, z -> -y -> x.
    let both = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    assert!(near(turned(Given::Angles([FRAC_PI_2, 0.0, FRAC_PI_2], order("xyz"), AngleUnit::Radians)), both));
    // About axes that turn along: first about x, then about the new z, which points to -y.
    let along = [[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]];
    assert!(near(
        turned(Given::Angles([FRAC_PI_2, 0.0, FRAC_PI_2], order("XYZ"), AngleUnit::Radians)),
        along
    ));
}

#[test]
fn own_angles_come_back_bit_for_bit() {
    let conventions = Conventions::default();
    let angles = [0.1 + 0.2, -1.234_567_890_123_456_7, 3.0];
    assert_eq!(conventions.pose(Given::Own(angles), None).unwrap().rotation, angles);
    let given = Given::Angles(angles, EulerOrder::OWN, AngleUnit::Radians);
    assert_eq!(conventions.pose(given, None).unwrap().rotation, angles);
    let backwards =
        Given::Angles([angles[2], angles[1], angles[0]], "ZYX".parse().unwrap(), AngleUnit::Radians);
    assert_eq!(conventions.pose(backwards, None).unwrap().rotation, angles);
}

#[test]
fn what_is_no_rotation_is_refused_and_what_was_rounded_is_not() {
    let conventions = Conventions::default();
    let wrong = |given| conventions.pose(given, None).unwrap_err();
    assert_eq!(
        wrong(Given::Quaternion([0.0, 0.0, 0.5, 0.5])),
        "the quaternion (0, 0, 0.5, 0.5) has length 0.7071, expected 1"
    );
    assert!(wrong(Given::Quaternion([0.0; 4])).contains("length 0.0000"));
    assert!(wrong(Given::Quaternion([f64::NAN, 0.0, 0.0, 1.0])).contains("expected 1"));
    let mirror = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]];
    let scaled = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]];
    let sheared = [[1.0, 0.01, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    for matrix in [mirror, scaled, sheared, [[0.0; 3]; 3], [[f64::NAN; 3]; 3]] {
        assert!(wrong(Given::Matrix(matrix)).contains("not a rotation matrix"), "{matrix:?}");
    }
    // Four decimals of a rotation by 30 degrees about x.
    let rounded = [[1.0, 0.0, 0.0], [0.0, 0.8660, -0.5], [0.0, 0.5, 0.8660]];
    let found = conventions.pose(Given::Matrix(rounded), None).unwrap().rotation;
    assert!(
        (found[0] - PI / 6.0).abs() < 1e-4 && found[1].abs() < 1e-4 && found[2].abs() < 1e-4,
        "{found:?}"
    );
    let found = conventions.pose(Given::Quaternion([0.259, 0.0, 0.0, 0.966]), None).unwrap().rotation;
    assert!((found[0] - PI / 6.0).abs() < 1e-3, "{found:?}");
}

#[test]
fn frames_of_cameras_lead_to_the_world_of_the_renderer() {
    let identity = Given::Matrix([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    let s = 0.5_f64.sqrt();
    // In OpenCV's frame the object's x points to the right, y down, z away from the camera at (0, 1, 1).
    let opencv = Conventions { frame: PoseFrame::Opencv, ..Conventions::default() };
    let wanted = [[-1.0, 0.0, 0.0], [0.0, s, -s], [0.0, -s, -s]];
    assert!(near(matrix(opencv.pose(identity, None).unwrap()), wanted));
    // In OpenGL's y points up, z to the camera.
    let opengl = Conventions { frame: PoseFrame::Opengl, ..opencv };
    let wanted = [[-1.0, 0.0, 0.0], [0.0, -s, s], [0.0, s, s]];
    assert!(near(matrix(opengl.pose(identity, None).unwrap()), wanted));
    // The change from one view to another is the same in every frame.
    let angles = |z| Given::Angles([0.3, -0.2, z], EulerOrder::OWN, AngleUnit::Radians);
    let change = |conventions: Conventions| {
        let [first, second] = [angles(0.1), angles(1.4)]
            .map(|given| Rotation::from(TaitBryan::from(conventions.pose(given, None).unwrap().rotation)));
        Rotation::relative(&first, &second).to_matrix()
    };
    assert!(near(change(opencv), change(Conventions::default())));
}

#[test]
fn translations_are_brought_into_the_object_s_frame() {
    let order = EulerOrder::OWN;
    let given = Given::Angles([0.0, 0.0, 90.0], order, AngleUnit::Degrees);
    let mm = Conventions { scale: 0.001, frame: PoseFrame::Opencv, ..Conventions::default() };
    // p_frame = R p + t; R takes x to y, so t along y is along the object's x.
    let pose = mm.pose(given, Some([0.0, 250.0, 100.0])).unwrap();
    let found = pose.translation.unwrap();
    assert!(
        (found[0] - 0.25).abs() < 1e-12 && found[1].abs() < 1e-12 && (found[2] - 0.1).abs() < 1e-12,
        "{found:?}"
    );
    // p_world = R (p + t) is W (R p + t) of the frame.
    let world = Rotation::from(TaitBryan::from(pose.rotation)).apply(found);
    let expected = PoseFrame::Opencv.to_world().apply([0.0, 0.25, 0.1]);
    assert!(world.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
    // The inverse of a pose, given as such, is the pose.
    let forward = Conventions::default().pose(given, Some([1.0, 2.0, 3.0])).unwrap();
    let inverse = Conventions { inverse: true, ..Conventions::default() };
    // p = R^T p_frame - R^T t, where R^T takes y to x: -(2, -1, 3).
    let back = Given::Angles([0.0, 0.0, -90.0], order, AngleUnit::Degrees);
    let again = inverse.pose(back, Some([-2.0, 1.0, -3.0])).unwrap();
    assert!(near(matrix(forward), matrix(again)));
    let [a, b] = [forward, again].map(|pose| pose.translation.unwrap());
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{a:?} {b:?}");
}
