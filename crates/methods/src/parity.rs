//! Parity with the published code: a fixture holds a tiny network's weights and inputs and what the published PyTorch
//! code made of them in float64; the same network is built here, run, and compared tensor by tensor.
//!
//! Method and settings come from the fixture's metadata, sizes from the shapes of its tensors. Groups that a fixture
//! does not have are not compared.

mod compare;
mod fixture;

use engine::{AdamConfig, BufferValue, Device, State};

pub use compare::{Comparison, ParityReport};
pub use fixture::{Fixture, FixtureError};

use crate::registry::MethodName;
use crate::step::{Step, StepOptions};
use compare::Bounds;

/// Runs the network of `fixture` on `device` and compares everything the fixture has.
pub fn check(
    fixture: &Fixture,
    method: Option<MethodName>,
    device: &Device,
) -> Result<ParityReport, FixtureError> {
    let config = fixture.config(method)?;
    let mut step = Step::new(&config, device, 0, StepOptions::default())?;
    fixture.load(&mut step.network_mut().store)?;
    let batch = fixture.batch(device, &config)?;
    let bounds = Bounds::of(device.precision());
    let mut comparisons = Vec::new();

    let compared = ["stat/", "grad/", "buffer_after/", "param_after_adam/"];
    if !compared.iter().any(|prefix| fixture.group(prefix).next().is_some()) {
        let detail = format!("there is nothing to compare (none of {})", compared.join(", "));
        return Err(FixtureError::Unusable(detail));
    }
    let shown = step.gradients(&batch)?.read()?;
    let store = &mut step.network_mut().store;
    for (name, reference) in fixture.group("stat/") {
        let term = || shown.terms.iter().find(|(term, _)| *term == name).map(|(_, value)| *value);
        let found = if name == "loss" { Some(shown.loss) } else { term() };
        let found =
            found.ok_or_else(|| FixtureError::Tensor(format!("stat/{name}"), "no such term".into()))?;
        comparisons.push(bounds.stat(name, found as f32, reference.values[0]));
    }

    let mut gradients = Vec::new();
    for (name, reference) in fixture.group("grad/") {
        let id = store.find(name);
        let id =
            id.ok_or_else(|| FixtureError::Tensor(format!("grad/{name}"), "no such parameter".into()))?;
        gradients.push((name, store.export(State::Gradient, id)?, &reference.values));
    }
    comparisons.extend(bounds.gradients(&gradients));

    for (name, reference) in fixture.group("buffer_after/") {
        let refuse = || FixtureError::Tensor(format!("buffer_after/{name}"), "no such buffer".into());
        let id = store.find_buffer(name).ok_or_else(refuse)?;
        let found = match store.buffer(id) {
            BufferValue::Tensor(tensor) => tensor.to_f32()?,
            BufferValue::Count(count) => vec![*count as f32],
        };
        comparisons.push(bounds.buffer(name, &found, &reference.values));
    }

    // Adam on its own: fed with the fixture's parameters and gradients.
    if fixture.group("param_after_adam/").next().is_some() {
        store.clear_gradients();
        for (name, gradient) in fixture.group("grad/") {
            if let Some(id) = store.find(name) {
                store.import(State::Gradient, id, &gradient.values)?;
            }
        }
        store.update(&AdamConfig::default())?;
        for (name, reference) in fixture.group("param_after_adam/") {
            let (Some(id), Some(gradient)) = (store.find(name), fixture.get(&format!("grad/{name}"))) else {
                let name = format!("param_after_adam/{name}");
                return Err(FixtureError::Tensor(name, "has no parameter or no gradient".into()));
            };
            let found = store.export(State::Value, id)?;
            comparisons.push(bounds.adam(name, &found, &reference.values, &gradient.values));
        }
    }
    let precision = device.precision().name();
    Ok(ParityReport { method: config.name.name(), device: device.name(), precision, comparisons })
}
