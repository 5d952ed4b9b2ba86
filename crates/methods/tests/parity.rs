//! The published numbers, through the library. The fixtures are those of the published PyTorch code (float64), less
//! what is not needed here.

use engine::Device;
use methods::parity::{Fixture, check};

const INPUTS: &[u8] = include_bytes!("fixtures/inputs.safetensors");

fn parity(fixture: &[u8]) {
    let fixture = Fixture::parse(fixture, INPUTS).expect("a fixture");
    let report = check(&fixture, None, &Device::cpu()).expect("a usable fixture");
    let outside: Vec<_> = report.comparisons.iter().filter(|comparison| !comparison.within).collect();
    for group in ["stat", "grad", "buffer_after", "param_after_adam"] {
        println!("{group}: {:?}", report.worst(group));
    }
    assert!(outside.is_empty(), "{outside:#?}");
    assert!(report.comparisons.len() > 20);
}

#[test]
fn equicaps_3x3() {
    parity(include_bytes!("fixtures/equicaps_3x3.safetensors"));
}

#[test]
fn equicaps_4x4() {
    parity(include_bytes!("fixtures/equicaps_4x4.safetensors"));
}

#[test]
fn sie() {
    parity(include_bytes!("fixtures/sie.safetensors"));
}

#[test]
fn equimod() {
    parity(include_bytes!("fixtures/equimod.safetensors"));
}

#[test]
fn vicreg() {
    parity(include_bytes!("fixtures/vicreg.safetensors"));
}

#[test]
fn simclr() {
    parity(include_bytes!("fixtures/simclr.safetensors"));
}

#[test]
fn simclr_augself() {
    parity(include_bytes!("fixtures/simclr_augself.safetensors"));
}

#[test]
fn sen() {
    parity(include_bytes!("fixtures/sen.safetensors"));
}

/// As many capsules as the paper has; made by `tools/capsule_fixture.py`, which repeats the file of the published code first.
#[test]
fn equicaps_with_32_capsules() {
    parity(include_bytes!("fixtures/equicaps_32.safetensors"));
}

#[test]
fn a_truncated_fixture_is_unusable() {
    let fixture: &[u8] = include_bytes!("fixtures/equicaps_4x4.safetensors");
    for len in [0, 7, 100, fixture.len() / 2, fixture.len() - 1] {
        assert!(Fixture::parse(&fixture[..len], INPUTS).is_err(), "{len}");
    }
}

#[test]
fn nothing_to_compare_is_an_error() {
    let empty = Fixture::parse(INPUTS, INPUTS).unwrap();
    assert!(check(&empty, Some(methods::MethodName::EQUICAPS), &Device::cpu()).is_err());
}
