//! Gradients, updates and memory of a store.

use super::*;
use crate::ops;
use crate::tape::{Tape, Var};

fn store() -> (ParameterStore, ParameterId, ParameterId) {
    let mut builder = StoreBuilder::new();
    let normal = Initialise::Normal { std: 1.0 };
    let conv = builder.parameter("conv.weight", [2, 3, 1, 2], Layout::Convolution, normal);
    let linear = builder.parameter("linear.weight", [4, 3], Layout::Published, normal);
    (builder.build(&Device::cpu(), 3).unwrap(), conv, linear)
}

#[test]
fn convolutions_are_turned_inside_and_back() {
    let (mut store, conv, _) = store();
    let published: Vec<f32> = (0..12).map(|v| v as f32).collect();
    store.import(State::Value, conv, &published).unwrap();
    assert_eq!(store.value(conv).dims(), [2, 1, 2, 3]);
    // Element (out 0, in 1, column 1) lies at (out 0, column 1, in 1).
    assert_eq!(store.value(conv).as_slice::<f32>().unwrap()[4], 3.0);
    assert_eq!(store.export(State::Value, conv).unwrap(), published);
}

#[test]
fn wrong_lengths_are_refused_by_name() {
    let (mut store, _, linear) = store();
    let error = store.import(State::Value, linear, &[0.0; 5]).unwrap_err();
    assert!(error.to_string().contains("linear.weight"), "{error}");
}

#[test]
fn two_uses_add_their_gradients_and_memory_stays_flat() {
    let (mut store, _, linear) = store();
    let device = store.device().clone();
    let x = Tensor::from_slice(&device, [2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let mut gradients = Vec::new();
    let mut reserved = Vec::new();
    for passes in [1, 2, 2] {
        store.clear_gradients();
        let mut tape = Tape::training(&mut store);
        for _ in 0..passes {
            let weight = tape.parameter(linear);
            let y = ops::linear(&mut tape, &Var::constant(x.clone()), &weight, None).unwrap();
            let seed = Tensor::from_slice(&device, y.shape(), &[1.0_f32; 8]).unwrap();
            tape.backward_from(&y, seed).unwrap();
        }
        drop(tape);
        gradients.push(store.export(State::Gradient, linear).unwrap());
        reserved.push(device.memory().reserved);
    }
    assert_eq!(gradients[0][..3], [5.0, 7.0, 9.0]);
    assert_eq!(gradients[1][..3], [10.0, 14.0, 18.0]);
    assert_eq!(reserved[1], reserved[2]);
}

#[test]
fn the_first_update_moves_by_the_learning_rate_and_unused_parameters_only_decay() {
    let (mut store, conv, linear) = store();
    let before = store.export(State::Value, linear).unwrap();
    let conv_before = store.export(State::Value, conv).unwrap();
    store.import(State::Gradient, linear, &[0.5; 12]).unwrap();
    store.update(&AdamConfig { weight_decay: 0.0, ..AdamConfig::default() }).unwrap();
    let after = store.export(State::Value, linear).unwrap();
    for (before, after) in before.iter().zip(&after) {
        assert!((before - after - 1e-3).abs() < 1e-6);
    }
    assert_eq!(conv_before, store.export(State::Value, conv).unwrap());
    assert_eq!(store.steps(), 1);
}

#[test]
fn chosen_parameters_learn_more_slowly() {
    let (mut store, conv, linear) = store();
    store.slow_down(0.25, |name| name.starts_with("linear."));
    let values = |store: &ParameterStore| [conv, linear].map(|id| store.export(State::Value, id).unwrap()[0]);
    let before = values(&store);
    for id in [conv, linear] {
        store.import(State::Gradient, id, &[0.5; 12]).unwrap();
    }
    store.update(&AdamConfig { weight_decay: 0.0, ..AdamConfig::default() }).unwrap();
    let after = values(&store);
    assert!((before[0] - after[0] - 1e-3).abs() < 1e-6);
    assert!((before[1] - after[1] - 0.25e-3).abs() < 1e-6);
}

#[test]
fn an_update_waits_until_no_tape_holds_a_parameter() {
    let (mut store, _, linear) = store();
    let held = Tape::training(&mut store).parameter(linear);
    assert!(store.update(&AdamConfig::default()).is_err());
    drop(held);
    store.update(&AdamConfig::default()).unwrap();
}
