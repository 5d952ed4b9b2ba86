//! Properties that hold for every rotation and motion.

use pose::*;
use proptest::prelude::*;
use std::f64::consts::{FRAC_PI_2, PI};

fn angle() -> impl Strategy<Value = f64> {
    // Exact quarter turns and angles next to them hit gimbal lock and the borders of every branch.
    prop_oneof![
        4 => -PI..PI,
        1 => prop::sample::select(vec![-PI, -FRAC_PI_2, 0.0, FRAC_PI_2, PI]),
        1 => (-1e-9..1e-9).prop_map(|epsilon: f64| FRAC_PI_2 + epsilon),
        1 => (-1e-9..1e-9).prop_map(|epsilon: f64| -FRAC_PI_2 + epsilon),
    ]
}

fn angles() -> impl Strategy<Value = TaitBryan> {
    [angle(), angle(), angle()].prop_map(TaitBryan::from)
}

fn vector() -> impl Strategy<Value = [f64; 3]> {
    [-2.0..2.0, -2.0..2.0, -2.0..2.0]
}

fn view() -> impl Strategy<Value = ViewPose> {
    (angles(), vector()).prop_map(|(rotation, translation)| ViewPose::rigid(rotation, translation))
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn rotations_differ(a: Rotation, b: Rotation) -> f64 {
    difference(a.to_matrix().as_flattened(), b.to_matrix().as_flattened())
}

fn motions_differ<F: Frame>(a: Motion<F>, b: Motion<F>) -> f64 {
    difference(a.to_matrix().as_flattened(), b.to_matrix().as_flattened())
}

fn group_laws<F: Frame>(a: &ViewPose, b: &ViewPose, c: &ViewPose, p: [f64; 3]) -> Result<(), TestCaseError> {
    let (a, b, c): (Motion<F>, Motion<F>, Motion<F>) = (a.motion(), b.motion(), c.motion());
    prop_assert!(motions_differ((a * b) * c, a * (b * c)) < 1e-13);
    prop_assert!(motions_differ(a * a.inverse(), Motion::IDENTITY) < 1e-13);
    prop_assert!(motions_differ(a.inverse() * a, Motion::IDENTITY) < 1e-13);
    prop_assert!(motions_differ(a * Motion::relative(&a, &b), b) < 1e-13);
    let along = Motion::relative(&a, &b) * Motion::relative(&b, &c);
    prop_assert!(motions_differ(along, Motion::relative(&a, &c)) < 1e-13);
    prop_assert!(difference(&(a * b).apply(p), &a.apply(b.apply(p))) < 1e-13);
    Ok(())
}

proptest! {
    #[test]
    fn the_angle_between_orientations_is_that_of_the_turn(first in view(), degrees in 0.0..180.0) {
        let turn = ViewPose { rotation: TaitBryan::new(Degrees(degrees), Degrees(0.0), Degrees(0.0)), ..ViewPose::default() };
        let second = Group::ROTATION.moved(&first, &turn);
        let Degrees(angle) = rotation_angle(first.quaternion(), second.quaternion());
        prop_assert!((angle - degrees).abs() < 1e-6, "{angle} {degrees}");
    }

    #[test]
    fn angles_quaternions_and_matrices_are_one_rotation(angles in angles()) {
        let matrix = Rotation::from(angles);
        prop_assert!(Rotation::try_from(matrix.to_matrix()).is_ok());
        let quaternion = Quaternion::from(angles);
        prop_assert!((quaternion.norm() - 1.0).abs() < 1e-14);
        prop_assert!(rotations_differ(quaternion.into(), matrix) < 1e-14);
        prop_assert!(rotations_differ(Quaternion::from(matrix).into(), matrix) < 1e-14);
        prop_assert!(rotations_differ(TaitBryan::from(matrix).into(), matrix) < 1e-14);
        prop_assert!(rotations_differ(TaitBryan::from(quaternion).into(), matrix) < 1e-14);
        prop_assert!((Quaternion::from(matrix).dot(quaternion).abs() - 1.0).abs() < 1e-14);
    }

    #[test]
    fn latent_angles_come_back(
        angles in [-1.57..1.57, -1.57..1.57, -1.57..1.57]
    ) {
        let back = TaitBryan::from(Rotation::from(TaitBryan::from(angles))).to_radians();
        prop_assert!(difference(&back, &angles) < 1e-11);
        prop_assert!(Quaternion::from(TaitBryan::from(angles)).w > 0.0);
    }

    #[test]
    fn rotations_are_elementary_turns_in_order(angles in angles(), p in vector()) {
        let about = |axis: usize| {
            let mut only = [0.0; 3];
            only[axis] = angles.to_radians()[axis];
            Rotation::from(TaitBryan::from(only))
        };
        let stepwise = about(2).apply(about(1).apply(about(0).apply(p)));
        prop_assert!(difference(&stepwise, &Rotation::from(angles).apply(p)) < 1e-14);
    }

    #[test]
    fn quaternions_multiply_like_matrices(a in angles(), b in angles()) {
        let product = Quaternion::from(a) * Quaternion::from(b);
        prop_assert!(rotations_differ(product.into(), Rotation::from(a) * Rotation::from(b)) < 1e-14);
        let relative = Quaternion::relative(a.into(), b.into());
        prop_assert!(rotations_differ(relative.into(), Rotation::relative(&a.into(), &b.into())) < 1e-14);
        let d = rotation_distance(a.into(), b.into());
        prop_assert!((-1e-14..=1.0).contains(&d));
        prop_assert!((d - (1.0 - relative.w * relative.w)).abs() < 1e-14);
    }

    #[test]
    fn motions_form_a_group(a in view(), b in view(), c in view(), p in vector()) {
        group_laws::<ObjectFrame>(&a, &b, &c, p)?;
        group_laws::<BaseFrame>(&a, &b, &c, p)?;
    }

    #[test]
    fn the_base_frame_translates_before_it_rotates(view in view(), p in vector()) {
        let shifted = std::array::from_fn(|i| p[i] + view.translation[i]);
        let expected = Rotation::from(view.rotation).apply(shifted);
        prop_assert!(difference(&view.motion::<BaseFrame>().apply(p), &expected) < 1e-14);
        prop_assert_eq!(view.motion::<ObjectFrame>().translation(), view.translation);
    }

    #[test]
    fn degrees_and_radians_convert(degrees in -720.0..720.0) {
        let there = Radians::from(Degrees(degrees));
        prop_assert!((there.0 - degrees * PI / 180.0).abs() < 1e-12);
        prop_assert!((Degrees::from(there).0 - degrees).abs() < 1e-12);
    }
}
