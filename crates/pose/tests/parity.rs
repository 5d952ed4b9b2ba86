//! Agreement with numbers computed by the published code (SciPy, float64).

use pose::*;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().expect("a number")],
    }
}

fn vector(value: &Value) -> [f64; 3] {
    numbers(value).try_into().expect("three numbers")
}

fn close(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len());
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= tolerance, "{actual:?} against {expected:?}");
    }
}

#[test]
fn agrees_with_the_published_algebra() {
    let fixture: Value = serde_json::from_str(include_str!("pose_algebra.json")).expect("JSON");
    let count = fixture["angles_1"].as_array().expect("an array").len();
    assert_eq!(count, 64);
    for i in 0..count {
        let at = |key: &str| &fixture[key][i];
        let first = ViewPose::rigid(vector(at("angles_1")), vector(at("translation_1")));
        let second = ViewPose::rigid(vector(at("angles_2")), vector(at("translation_2")));
        let check = |actual: &[f64], key: &str| close(actual, &numbers(at(key)), 1e-12);
        check(Rotation::from(first.rotation).to_matrix().as_flattened(), "matrix_1");
        check(&first.quaternion().to_array(), "quat_1_xyzw");
        check(&ViewPose::relative_quaternion(&first, &second).to_array(), "rel_quat_xyzw");
        check(ViewPose::relative_rotation(&first, &second).to_matrix().as_flattened(), "rel_matrix");
        let object = ViewPose::relative_motion::<ObjectFrame>(&first, &second).to_matrix();
        check(object.as_flattened(), "rel_object_frame_4x4");
        assert_eq!(object, ViewPose::relative_matrix(FrameKind::Object, &first, &second));
        let base = ViewPose::relative_motion::<BaseFrame>(&first, &second).to_matrix();
        check(base.as_flattened(), "rel_base_frame_4x4");
        assert_eq!(base, ViewPose::relative_matrix(FrameKind::Base, &first, &second));
        let target = ViewPose::translation_difference(FrameKind::Object, &first, &second);
        check(&target, "translation_target_object");
        check(&first.translation_in::<BaseFrame>(), "base_translation_1");
    }
}

#[test]
fn agrees_with_the_worked_example() {
    let first = ViewPose::rigid([0.3, -0.7, 1.1], [0.1, -0.2, 0.4]);
    let second = ViewPose::rigid([-1.2, 0.4, -0.5], [-0.3, 0.25, 0.05]);
    let check = |actual: &[f64], expected: &[f64]| close(actual, expected, 6e-7);
    check(&first.quaternion().to_array(), &[0.296892, -0.215672, 0.529170, 0.765062]);
    check(&second.quaternion().to_array(), &[-0.495617, 0.295782, -0.091431, 0.811491]);
    check(
        &ViewPose::relative_quaternion(&first, &second).to_array(),
        &[-0.483303, 0.636428, -0.480291, 0.361522],
    );
    check(
        Rotation::from(first.rotation).to_matrix().as_flattened(),
        &[0.346929, -0.937758, -0.015794, 0.681633, 0.263669, -0.682536, 0.644218, 0.226026, 0.730682],
    );
    check(
        ViewPose::relative_rotation(&first, &second).to_matrix().as_flattened(),
        &[-0.271440, -0.267904, 0.924417, -0.962447, 0.071477, -0.261892, 0.004087, -0.960791, -0.277245],
    );
    let object = ViewPose::relative_motion::<ObjectFrame>(&first, &second);
    check(&object.translation(), &[-0.057513, 0.414645, -0.556562]);
    let base = ViewPose::relative_motion::<BaseFrame>(&first, &second);
    check(&base.translation(), &[-0.039323, 0.493509, -0.655286]);
    let z = ViewPose::rotation_and_translation(FrameKind::Base, &first, &second);
    check(&z[4..], &[-0.466085, 0.550575, -0.392592]);
    check(&z[..4], &ViewPose::relative_quaternion(&first, &second).to_array());
}

#[test]
fn hues_do_not_wrap_and_distances_ignore_signs() {
    close(&hue_difference([0.9, 0.1], [0.1, 0.4]), &[-0.8, 0.3], 1e-15);
    let q = Quaternion::from(TaitBryan::new(Degrees(20.0), Degrees(-70.0), Radians(0.5)));
    let minus_q = Quaternion::from(q.to_array().map(|entry| -entry));
    assert!(rotation_distance(q, minus_q).abs() < 1e-15);
    let half_turn = q * Quaternion { x: 0.0, y: 1.0, z: 0.0, w: 0.0 };
    assert!((rotation_distance(q, half_turn) - 1.0).abs() < 1e-15);
    assert!((translation_distance([0.0, 1.0, 0.5], [0.5, 1.0, 0.0]) - 0.5).abs() < 1e-15);
}

#[test]
fn published_precision_rounds_angles_first() {
    let pose = ViewPose::published_precision([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]);
    assert_eq!(pose.rotation.to_radians(), [0.1_f32, 0.2, 0.3].map(f64::from));
    assert_ne!(pose.rotation.x.0, 0.1);
    assert_eq!(pose.translation, [0.1, 0.2, 0.3]);
}

#[test]
fn frames_have_names() {
    assert_eq!("base".parse(), Ok(FrameKind::Base));
    assert_eq!("object".parse(), Ok(FrameKind::Object));
    assert!("world".parse::<FrameKind>().expect_err("no such frame").to_string().contains("\"world\""));
    assert_eq!((ObjectFrame::KIND, BaseFrame::KIND), (FrameKind::Object, FrameKind::Base));
}

#[test]
fn types_survive_json() {
    let rotation = Rotation::from(TaitBryan::from([0.1, 0.2, 0.3]));
    let text = serde_json::to_string(&rotation).expect("serialises");
    let back = serde_json::from_str::<Rotation>(&text).expect("parses");
    close(back.to_matrix().as_flattened(), rotation.to_matrix().as_flattened(), 1e-15);
    assert!(serde_json::from_str::<Rotation>("[[1,0,0],[0,1,0],[0,0,-1]]").is_err());
    assert_eq!(serde_json::to_string(&Quaternion::IDENTITY).expect("serialises"), "[0.0,0.0,0.0,1.0]");
}
