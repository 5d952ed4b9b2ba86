//! What the ranges of latents promise.

use super::*;

#[test]
fn draws_depend_on_seed_object_and_view_only() {
    let draw = |seed, object, view| LatentRanges::BENCH_T.sample(seed, object, view);
    let base = draw(1, "chair/a", 3);
    assert_eq!(base, draw(1, "chair/a", 3));
    for other in [draw(2, "chair/a", 3), draw(1, "chair/b", 3), draw(1, "chair/a", 4)] {
        assert!(base.to_vec().iter().zip(other.to_vec()).all(|(a, b)| *a != b));
    }
    let rotated = LatentRanges::BENCH.sample(1, "chair/a", 3);
    assert_eq!(rotated.to_vec(), base.to_vec()[..7]);
}

#[test]
fn draws_fill_their_ranges() {
    let ranges = LatentRanges::BENCH_T;
    let text = serde_json::to_string(&ranges).expect("serialises");
    let angles = "[-1.5707963267948966,1.5707963267948966]";
    let published = format!(
        "{{\"rotation\":[{angles},{angles},{angles}],\"floor_hue\":[0.0,1.0],\"spot_theta\":[0.0,0.7853981633974483],\
         \"spot_phi\":[0.0,6.283185307179586],\"spot_hue\":[0.0,1.0],\
         \"translation\":[[-0.5,0.5],[-0.5,0.5],[-0.5,0.5]]}}"
    );
    assert_eq!(text, published);
    let bounds: Vec<Range> = ranges
        .rotation
        .into_iter()
        .chain([ranges.floor_hue, ranges.spot_theta, ranges.spot_phi, ranges.spot_hue])
        .chain(ranges.translation.expect("the -T preset translates"))
        .collect();
    let views: Vec<Vec<f64>> = (0..4000).map(|view| ranges.sample(7, "mug/x", view).to_vec()).collect();
    for (i, Range { low, high }) in bounds.into_iter().enumerate() {
        let values = views.iter().map(|view| view[i]);
        assert!(values.clone().all(|value| (low..high).contains(&value)));
        let mean = values.clone().sum::<f64>() / 4000.0;
        assert!((mean - 0.5 * (low + high)).abs() < 0.03 * (high - low), "mean of latent {i}: {mean}");
        let smallest = values.clone().fold(f64::MAX, f64::min);
        let largest = values.fold(f64::MIN, f64::max);
        assert!(largest - smallest > 0.99 * (high - low));
    }
}

#[test]
fn angles_out_of_range_are_uniform_on_both_sides_of_the_gap() {
    let ranges = LatentRanges::BENCH_OOD;
    assert_eq!(ranges.validate(), Ok(()));
    let views: Vec<Latents> = (0..4000).map(|view| ranges.sample(7, "mug/x", view)).collect();
    for axis in 0..3 {
        let angles: Vec<f64> = views.iter().map(|view| view.rotation[axis]).collect();
        assert!(angles.iter().all(|angle| (FRAC_PI_2..=PI).contains(&angle.abs())));
        // Four parts of an eighth of a turn each, two on either side.
        for (low, high) in
            [(-PI, -0.75 * PI), (-0.75 * PI, -FRAC_PI_2), (FRAC_PI_2, 0.75 * PI), (0.75 * PI, PI)]
        {
            let count = angles.iter().filter(|angle| (low..high).contains(*angle)).count();
            assert!((900..1100).contains(&count), "axis {axis}, {low} to {high}: {count}");
        }
    }
    // All else is drawn as in 3DIEBench.
    let other = LatentRanges::BENCH.sample(7, "mug/x", 3);
    assert_eq!(views[3].to_vec()[3..], other.to_vec()[3..]);
    let text = serde_json::to_string(&ranges).expect("serialises");
    assert!(text.contains("\"rotation_gap\":[-1.5707963267948966,1.5707963267948966]"), "{text}");
    assert_eq!(serde_json::from_str::<LatentRanges>(&text).expect("parses"), ranges);
    let narrow = LatentRanges { rotation: [Range { low: 0.0, high: PI }; 3], ..ranges };
    assert!(narrow.validate().expect_err("no room").to_string().contains("not inside the range"));
}

#[test]
fn ranges_are_checked_and_serialise_as_pairs() {
    assert_eq!(LatentRanges::BENCH_T.validate(), Ok(()));
    let mut ranges = LatentRanges::BENCH;
    ranges.spot_theta = Range { low: 1.0, high: 0.0 };
    assert!(ranges.validate().expect_err("wrong order").to_string().contains("spot theta"));
    let text = serde_json::to_string(&LatentRanges::BENCH).expect("serialises");
    assert!(text.contains("\"floor_hue\":[0.0,1.0]") && !text.contains("translation"));
    let text_t = serde_json::to_string(&LatentRanges::BENCH_T).expect("serialises");
    assert_eq!(serde_json::from_str::<LatentRanges>(&text_t).expect("parses"), LatentRanges::BENCH_T);
    assert!(serde_json::from_str::<LatentRanges>(&text.replace("floor_hue", "flor_hue")).is_err());
}

#[test]
fn shapes_are_drawn_after_all_else_and_all_ratios_are_as_likely() {
    for (ranges, width) in [(LatentRanges::BENCH_S, 13), (LatentRanges::BENCH_A, 16)] {
        assert_eq!((ranges.validate(), ranges.width()), (Ok(()), width));
        let views: Vec<Latents> = (0..4000).map(|view| ranges.sample(7, "mug/x", view)).collect();
        assert_eq!(views[3].to_vec()[..10], LatentRanges::BENCH_T.sample(7, "mug/x", 3).to_vec());
        assert_eq!(Latents::try_from(&views[3].to_vec()[..]), Ok(views[3]));
        for (axis, Range { low, high }) in ranges.scale.unwrap().axes().into_iter().enumerate() {
            let scales: Vec<f64> = views.iter().map(|view| view.shape.unwrap().scale[axis]).collect();
            assert!(scales.iter().all(|scale| (low..=high).contains(scale)));
            let mean = scales.iter().map(|scale| scale.ln()).sum::<f64>() / 4000.0;
            assert!(mean.abs() < 0.02, "{mean}");
        }
        let is_uniform = |view: &Latents| view.shape.is_some_and(|s| s.scale[0] == s.scale[2]);
        assert_eq!(views.iter().all(is_uniform), ranges.shear.is_none());
        let text = serde_json::to_string(&ranges).unwrap();
        assert_eq!(serde_json::from_str::<LatentRanges>(&text).unwrap(), ranges);
    }
}

#[test]
fn cameras_are_drawn_last_and_checked_against_the_largest_object() {
    let ranges = LatentRanges {
        camera_distance: Some([2.0, 3.0].into()),
        camera_elevation: Some([0.1, FRAC_PI_2].into()),
        ..LatentRanges::BENCH_T
    };
    assert_eq!((ranges.validate(), ranges.width()), (Ok(()), 12));
    let view = ranges.sample(7, "mug/x", 3);
    assert_eq!(view.to_vec()[..10], LatentRanges::BENCH_T.sample(7, "mug/x", 3).to_vec());
    assert_eq!(Latents::try_from(&view.to_vec()[..]), Ok(view));
    let camera = view.camera.unwrap();
    assert!((2.0..3.0).contains(&camera.distance) && (0.1..FRAC_PI_2).contains(&camera.elevation));
    let text = serde_json::to_string(&ranges).unwrap();
    assert!(text.contains("\"camera_distance\":[2.0,3.0]"), "{text}");
    assert_eq!(serde_json::from_str::<LatentRanges>(&text).unwrap(), ranges);
    // A range of one value is that value.
    let still = LatentRanges {
        camera_distance: Some([2.5, 2.5].into()),
        camera_elevation: Some([FRAC_PI_4, FRAC_PI_4].into()),
        ..ranges
    };
    assert_eq!(still.sample(7, "mug/x", 3).camera, Some(Camera::PUBLISHED));
    // Corners of objects that are half a unit away along each axis reach 1.37.
    let near = LatentRanges { camera_distance: Some([1.3, 3.0].into()), ..ranges };
    assert!(near.validate().unwrap_err().to_string().contains("can be inside the object"));
    assert_eq!(LatentRanges { translation: None, ..near }.validate(), Ok(()));
    let half = LatentRanges { camera_distance: None, ..ranges };
    let needed = half.validate().unwrap_err().to_string();
    assert_eq!(needed, "camera elevation needs a range of camera distance, too ([2.5, 2.5] for none)");
}

#[test]
fn normal_values_stay_in_their_range_and_crowd_in_the_middle() {
    let mut ranges = LatentRanges::BENCH;
    ranges.distribution.floor_hue = Distribution::Normal;
    let hues: Vec<f64> = (0..4000).map(|view| ranges.sample(7, "mug/x", view).floor_hue).collect();
    assert!(hues.iter().all(|hue| (0.0..=1.0).contains(hue)));
    let middle = hues.iter().filter(|hue| (0.25..0.75).contains(*hue)).count();
    // Within one standard deviation of those within two: 0.683 / 0.954.
    assert!((2750..2980).contains(&middle), "{middle}");
}

#[test]
fn shapes_that_make_no_sense_are_refused() {
    let refusal = |change: fn(&mut LatentRanges)| {
        let mut ranges = LatentRanges::BENCH_A;
        change(&mut ranges);
        ranges.validate().unwrap_err().to_string()
    };
    let none = refusal(|ranges| ranges.translation = None);
    assert_eq!(none, "scale needs a range of translation, too ([0, 0] for none)");
    assert!(refusal(|ranges| ranges.scale = None).starts_with("shear needs a range of scale"));
    let negative = refusal(|ranges| ranges.scale = Some(ScaleRange::Uniform([0.0, 1.0].into())));
    assert_eq!(negative, "the range of scale is 0 to 1, expected bounds above 0");
    assert!(refusal(|ranges| ranges.shear = Some([[1.0, 0.0].into(); 3])).contains("ascending"));
    let log = refusal(|ranges| ranges.distribution.shear = Distribution::LogUniform);
    assert!(log.starts_with("the range of shear xy is -0.4 to 0.4, expected bounds above 0"), "{log}");
    let mut gap = LatentRanges::BENCH_OOD;
    gap.distribution.rotation = Distribution::Normal;
    assert_eq!(gap.validate(), Err(LatentError::GapDistribution));
}
