//! Parity with the published code: a fixture holds a tiny network's weights and inputs and what the published PyTorch
//! code made of them in float64; the same network is built here, run, and compared tensor by tensor.
//!
//! Method and settings come from the fixture's metadata, sizes from the shapes of its tensors. Groups that a fixture
//! does not have are not compared.

mod compare;
mod fixture;

use engine::{AdamConfig, BufferValue, Device, Precision, State};

pub use compare::{Comparison, ParityReport};
pub use fixture::{Fixture, FixtureError};

use crate::config::MethodName;
use crate::network::Network;
use compare::Bounds;

/// Runs the network of `fixture` on `device` and compares everything the fixture has.
pub fn check(
    fixture: &Fixture,
    method: Option<MethodName>,
    device: &Device,
) -> Result<ParityReport, FixtureError> {
    let config = fixture.config(method)?;
    let mut network = Network::build(&config, device, 0)?;
    fixture.load(&mut network.store)?;
    let batch = fixture.batch(device, &config)?;
    let bounds = Bounds::of(device.precision());
    let mut comparisons = Vec::new();

    let compared = ["stat/", "grad/", "buffer_after/", "param_after_adam/"];
    if !compared.iter().any(|prefix| fixture.group(prefix).next().is_some()) {
        let detail = format!("there is nothing to compare (none of {})", compared.join(", "));
        return Err(FixtureError::Unusable(detail));
    }
    let report = network.gradients(&batch)?;
    for (name, reference) in fixture.group("stat/") {
        let term = || report.terms.iter().find(|(term, _)| *term == name).map(|(_, value)| *value);
        let found = if name == "loss" { Some(report.loss) } else { term() };
        let found =
            found.ok_or_else(|| FixtureError::Tensor(format!("stat/{name}"), "no such term".into()))?;
        comparisons.push(bounds.stat(name, found, reference.values[0]));
    }

    let mut gradients = Vec::new();
    for (name, reference) in fixture.group("grad/") {
        let id = network.store.find(name);
        let id =
            id.ok_or_else(|| FixtureError::Tensor(format!("grad/{name}"), "no such parameter".into()))?;
        gradients.push((name, network.store.export(State::Gradient, id)?, &reference.values));
    }
    comparisons.extend(bounds.gradients(&gradients));

    for (name, reference) in fixture.group("buffer_after/") {
        let refuse = || FixtureError::Tensor(format!("buffer_after/{name}"), "no such buffer".into());
        let id = network.store.find_buffer(name).ok_or_else(refuse)?;
        let found = match network.store.buffer(id) {
            BufferValue::Tensor(tensor) => tensor.to_f32()?,
            BufferValue::Count(count) => vec![*count as f32],
        };
        comparisons.push(bounds.buffer(name, &found, &reference.values));
    }

    // Adam on its own: fed with the fixture's parameters and gradients.
    if fixture.group("param_after_adam/").next().is_some() {
        network.store.clear_gradients();
        for (name, gradient) in fixture.group("grad/") {
            if let Some(id) = network.store.find(name) {
                network.store.import(State::Gradient, id, &gradient.values)?;
            }
        }
        network.store.adam_step(&AdamConfig::default())?;
        for (name, reference) in fixture.group("param_after_adam/") {
            let (Some(id), Some(gradient)) = (network.store.find(name), fixture.get(&format!("grad/{name}")))
            else {
                let name = format!("param_after_adam/{name}");
                return Err(FixtureError::Tensor(name, "has no parameter or no gradient".into()));
            };
            let found = network.store.export(State::Value, id)?;
            comparisons.push(bounds.adam(name, &found, &reference.values, &gradient.values));
        }
    }
    let precision = if device.precision() == Precision::Bf16 { "bf16" } else { "f32" };
    Ok(ParityReport { method: config.method.name(), device: device.name(), precision, comparisons })
}
