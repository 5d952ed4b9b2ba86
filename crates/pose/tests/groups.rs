//! Laws that hold for every group of transformations.

use pose::*;
use proptest::prelude::*;
use std::f64::consts::PI;

fn view(space: Space) -> impl Strategy<Value = ViewPose> {
    let small = || [-0.5..0.5, -0.5..0.5, -0.5..0.5];
    let angles = [-PI..PI, -PI..PI, -PI..PI];
    (angles, small(), small(), small(), [-0.2..0.2, -0.2..0.2]).prop_map(
        move |(angles, translation, log_scale, shear, perspective)| ViewPose {
            rotation: match space {
                Space::Object => angles.into(),
                Space::Image => [0.0, 0.0, angles[2]].into(),
            },
            translation,
            deformation: Deformation { log_scale, shear, perspective },
        },
    )
}

fn differ(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn laws(group: Group, [a, b, c]: [ViewPose; 3]) -> Result<(), TestCaseError> {
    let [x, y, z] = [a, b, c].map(|view| group.matrix(&view));
    let identity = Matrix::identity(group.side).to_rows();
    let product = |left: Matrix, right: Matrix| (left * right).to_rows();
    prop_assert_eq!(x.side(), group.side);
    prop_assert!(differ(&product(x * y, z), &product(x, y * z)) < 1e-12, "{}", group);
    let inverse = x.inverse().expect("an inverse");
    prop_assert!(differ(&product(x, inverse), &identity) < 1e-11, "{}", group);
    prop_assert!(differ(&product(inverse, x), &identity) < 1e-11, "{}", group);
    // The relative motion composed with the first pose gives the second; two of them in a row are one.
    let relative = |p: &ViewPose, q: &ViewPose| Matrix::from_rows(&group.relative(p, q)).expect("regular");
    prop_assert!(differ(&product(x, relative(&a, &b)), &y.to_rows()) < 1e-11, "{}", group);
    let along = product(relative(&a, &b), relative(&b, &c));
    prop_assert!(differ(&along, &relative(&a, &c).to_rows()) < 1e-10, "{}", group);
    prop_assert!(differ(&group.relative(&a, &a), &identity) < 1e-11, "{}", group);
    // Parameters: as many as are named, and nothing changes from a view to itself.
    let numbers = group.difference(&a, &b);
    prop_assert_eq!(numbers.len(), group.parameters());
    prop_assert_eq!(group.parameter_names().len(), group.parameters());
    let still = group.difference(&a, &a);
    let at = if group.space == Space::Object { 3 } else { 1 };
    prop_assert!((still[at] - 1.0).abs() < 1e-14);
    prop_assert!(still.iter().enumerate().all(|(i, value)| i == at || value.abs() < 1e-14));
    for part in Part::ALL {
        prop_assert!(part.distance(&a, &a).abs() < 1e-14);
        prop_assert!((part.distance(&a, &b) - part.distance(&b, &a)).abs() < 1e-14);
    }
    // A motion, multiplied in or told by its parameters, leads to the view that differs by it; the rest of the view stays.
    let (origin, moved, shifted) = (ViewPose::default(), group.moved(&a, &b), group.shifted(&a, &b));
    let found = group.relative(&a, &moved);
    // In perspective the length of a matrix means nothing.
    let length = found[found.len() - 1] / y.at(group.side - 1, group.side - 1);
    let found: Vec<f64> = found.iter().map(|entry| entry / length).collect();
    prop_assert!(differ(&found, &y.to_rows()) < 1e-9, "{}", group);
    let (mut found, wanted) = (group.difference(&a, &shifted), group.difference(&origin, &b));
    // A quaternion and its negative are one rotation.
    if group.space == Space::Object && found[..4].iter().zip(&wanted).map(|(a, b)| a * b).sum::<f64>() < 0.0 {
        found[..4].iter_mut().for_each(|entry| *entry = -*entry);
    }
    prop_assert!(differ(&found, &wanted) < 1e-11, "{}", group);
    for second in [moved, shifted] {
        if !group.has(Part::Translation) {
            prop_assert_eq!(second.translation, a.translation);
        }
        if !group.has(Part::Shear) {
            prop_assert!(differ(&second.deformation.shear, &a.deformation.shear) < 1e-14);
        }
        if !group.has(Part::Scale) {
            prop_assert!(differ(&second.deformation.log_scale, &a.deformation.log_scale) < 1e-14);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_group_is_one(
        object in [view(Space::Object), view(Space::Object), view(Space::Object)],
        image in [view(Space::Image), view(Space::Image), view(Space::Image)],
    ) {
        for group in Group::ALL {
            laws(group, if group.space == Space::Object { object } else { image })?;
        }
    }

    #[test]
    fn published_groups_have_the_bits_of_the_published_algebra(
        a in view(Space::Object), b in view(Space::Object)
    ) {
        prop_assert_eq!(
            Group::ROTATION.relative(&a, &b),
            ViewPose::relative_rotation(&a, &b).to_matrix().concat()
        );
        prop_assert_eq!(
            Group::ROTATION.difference(&a, &b),
            ViewPose::relative_quaternion(&a, &b).to_array().to_vec()
        );
        for group in [Group::ROTATION_OBJECT, Group::ROTATION_BASE] {
            prop_assert_eq!(
                group.relative(&a, &b), ViewPose::relative_matrix(group.frame, &a, &b).concat()
            );
            prop_assert_eq!(
                group.difference(&a, &b),
                ViewPose::rotation_and_translation(group.frame, &a, &b).to_vec()
            );
        }
    }

    #[test]
    fn a_rotation_in_four_rows_is_that_of_three(a in view(Space::Object), b in view(Space::Object)) {
        let (three, four) = (Group::ROTATION.relative(&a, &b), Group::ROTATION_4X4.relative(&a, &b));
        for i in 0..4 {
            for j in 0..4 {
                let wanted = if i < 3 && j < 3 { three[3 * i + j] } else { f64::from(u8::from(i == j)) };
                prop_assert_eq!(four[4 * i + j], wanted);
            }
        }
        prop_assert_eq!(Group::ROTATION_4X4.difference(&a, &b), Group::ROTATION.difference(&a, &b));
    }

    #[test]
    fn the_base_frame_places_objects(view in view(Space::Object), p in [-1.0..1.0, -1.0..1.0, -1.0..1.0]) {
        // Shear, scale, translate, turn.
        let ([xy, xz, yz], t) = (view.deformation.shear, view.translation);
        let sheared = [p[0] + xy * p[1] + xz * p[2], p[1] + yz * p[2], p[2]];
        let moved = std::array::from_fn(|i| view.deformation.log_scale[i].exp() * sheared[i] + t[i]);
        let wanted = Rotation::from(view.rotation).apply(moved);
        prop_assert!(differ(&Group::AFFINE_BASE.matrix(&view).apply(p), &wanted) < 1e-13);
    }
}

#[test]
fn matrices_fall_into_a_rotation_and_a_deformation() {
    let view = ViewPose {
        rotation: [0.3, -0.7, 1.9].into(),
        translation: [0.0; 3],
        deformation: Deformation {
            log_scale: [0.3, -0.2, 0.1],
            shear: [0.4, -0.1, 0.2],
            ..Deformation::default()
        },
    };
    let found = ViewPose::from_linear(view.linear()).unwrap();
    assert!(differ(&found.rotation.to_radians(), &view.rotation.to_radians()) < 1e-12);
    assert!(differ(&found.deformation.log_scale, &view.deformation.log_scale) < 1e-12);
    assert!(differ(&found.deformation.shear, &view.deformation.shear) < 1e-12);
    let mirrored = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0]];
    let flat = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]];
    for none in [mirrored, flat, [[0.0; 3]; 3], [[f64::NAN; 3]; 3]] {
        assert_eq!(ViewPose::from_linear(none), None, "{none:?}");
    }
}

#[test]
fn a_relative_scale_is_the_ratio_of_scales() {
    let scaled = |log: f64| ViewPose {
        deformation: Deformation { log_scale: [log; 3], ..Deformation::default() },
        ..ViewPose::rigid([0.0; 3], [0.0; 3])
    };
    let (a, b) = (scaled(0.2), scaled(-0.3));
    let relative = Group::SIMILARITY.relative(&a, &b);
    assert!((relative[0] - (-0.5_f64).exp()).abs() < 1e-15 && relative[15] == 1.0);
    assert!((Group::SIMILARITY.difference(&a, &b)[7] + 0.5).abs() < 1e-15);
}

#[test]
fn names_are_unique_and_matrices_that_are_none_are_refused() {
    for (index, group) in Group::ALL.iter().enumerate() {
        assert!(Group::ALL[..index].iter().all(|other| other.name != group.name), "{group}");
    }
    assert_eq!(Matrix::from_rows(&[1.0; 4]), Err(NotAMatrix::Count(4)));
    assert_eq!(Matrix::from_rows(&[1.0; 9]), Err(NotAMatrix::Singular));
    let mut entries = Matrix::identity(4).to_rows();
    assert_eq!(Matrix::from_rows(&entries), Ok(Matrix::identity(4)));
    entries[6] = f64::NAN;
    let error = Matrix::from_rows(&entries).unwrap_err();
    assert_eq!(error.to_string(), "row 2, column 3 of the matrix is not a finite number");
    let nearly = [1.0, 1.0, 0.0, 1.0, 1.0 + 1e-12, 0.0, 0.0, 0.0, 1.0];
    assert_eq!(Matrix::from_rows(&nearly), Err(NotAMatrix::Singular));
    let small = [1e-6, 0.0, 0.0, 0.0, 1e-6, 0.0, 0.0, 0.0, 1.0];
    assert!(Matrix::from_rows(&small).is_ok());
}
