//! The weights of a network in a checkpoint, by their published names: the whole state with Adam's moments and the
//! number of updates, to go on with a run ([`save`], [`load`]); those that fit another network, to begin with
//! (`load_fitting`); those of a network that is only used ([`load_frozen`]). Files are read and written by
//! [`Checkpoint`] alone, which verifies every one; nothing here changes a network by halves.

use std::collections::BTreeSet;

use engine::{BufferValue, ParameterId, ParameterStore, State};

use crate::checkpoint::{Checkpoint, Numbers};
use crate::error::{Error, Result};

/// What was taken from the checkpoint of another run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// So many tensors.
    pub count: usize,
    /// Parts of the network of which not everything was taken: `projector`, `evaluator`, ...
    pub anew: BTreeSet<String>,
}

/// What a checkpoint held for a network that is only used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Everything.
    Whole,
    /// The backbone alone: the projector is not there, or is for images of another size.
    BackboneOnly,
}

const BACKBONE: &str = "backbone.";

const FIRST_MOMENT: &str = "optimiser.first_moment.";
const SECOND_MOMENT: &str = "optimiser.second_moment.";
const STEPS: &str = "optimiser.steps";

/// Adds the whole state of `store` to a checkpoint.
pub fn save(store: &ParameterStore, checkpoint: &mut Checkpoint) -> Result<()> {
    for id in store.parameters() {
        let (name, shape) = (store.name(id), store.shape(id));
        for (prefix, state) in
            [("", State::Value), (FIRST_MOMENT, State::FirstMoment), (SECOND_MOMENT, State::SecondMoment)]
        {
            checkpoint.insert(
                format!("{prefix}{name}"),
                shape.dims(),
                Numbers::F32(store.export(state, id)?),
            );
        }
    }
    for id in store.buffers() {
        let name = store.buffer_name(id);
        match store.buffer(id) {
            BufferValue::Tensor(tensor) => {
                checkpoint.insert(name, tensor.dims(), Numbers::F32(tensor.to_f32()?));
            }
            BufferValue::Count(count) => checkpoint.insert(name, &[], Numbers::I64(vec![*count as i64])),
        }
    }
    checkpoint.insert(STEPS, &[], Numbers::I64(vec![store.steps() as i64]));
    Ok(())
}

/// Takes the whole state from a checkpoint.
pub fn load(store: &mut ParameterStore, checkpoint: &Checkpoint) -> Result<()> {
    for id in store.parameters() {
        for (prefix, state) in
            [("", State::Value), (FIRST_MOMENT, State::FirstMoment), (SECOND_MOMENT, State::SecondMoment)]
        {
            let name = format!("{prefix}{}", store.name(id));
            let dims = store.shape(id).dims().to_vec();
            let values = floats(checkpoint, &name, &dims)?.ok_or_else(|| missing(&name))?;
            store.import(state, id, values)?;
        }
    }
    load_buffers(store, checkpoint, |_| true)?;
    let steps = whole(checkpoint, STEPS).ok_or_else(|| missing(STEPS))?;
    store.set_steps(steps);
    Ok(())
}

/// Takes the weights that fit. Those of the backbone must: the rest is of little use without them.
pub(crate) fn load_fitting(store: &mut ParameterStore, checkpoint: &Checkpoint) -> Result<Taken> {
    let mut fitting = Vec::new();
    let mut taken = Taken::default();
    for id in store.parameters() {
        match fitted(store, checkpoint, id) {
            Ok(values) => fitting.push((id, values)),
            Err(error) if store.name(id).starts_with(BACKBONE) => {
                return Err(Error::Request(format!("the backbone of the checkpoint does not fit: {error}")));
            }
            // Heads for other classes, or projectors of other sizes, stay as they are.
            Err(_) => {
                let name = store.name(id);
                taken.anew.insert(name.split('.').next().unwrap_or(name).to_owned());
            }
        }
    }
    taken.count = fitting.len();
    for (id, values) in fitting {
        store.import(State::Value, id, &values)?;
    }
    taken.count += load_buffers(store, checkpoint, |_| false)?;
    Ok(taken)
}

/// Takes the weights and running statistics of a network that is only used: all of them, or those of the backbone where
/// nothing else is there or fits images of this size.
pub fn load_frozen(store: &mut ParameterStore, checkpoint: &Checkpoint) -> Result<Loaded> {
    let is_backbone = |name: &str| name.starts_with(BACKBONE);
    let (mut found, mut lacking, mut misfits) = (Vec::new(), Vec::new(), 0);
    for id in store.parameters() {
        let name = store.name(id);
        match fitted(store, checkpoint, id) {
            Ok(values) => match values.iter().find(|value| !value.is_finite()) {
                Some(value) => {
                    return Err(Error::Request(format!("tensor {name} of the checkpoint holds {value}")));
                }
                None => found.push((id, values)),
            },
            Err(error) if is_backbone(name) => return Err(error),
            Err(_) if checkpoint.tensors.contains_key(name) => misfits += 1,
            Err(error) => lacking.push(error),
        }
    }
    let is_partial = found.iter().any(|(id, _)| !is_backbone(store.name(*id)));
    let loaded = match lacking.pop() {
        None if misfits == 0 => Loaded::Whole,
        Some(error) if is_partial => return Err(error),
        _ => Loaded::BackboneOnly,
    };
    for (id, values) in found {
        if loaded == Loaded::Whole || is_backbone(store.name(id)) {
            store.import(State::Value, id, &values)?;
        }
    }
    load_buffers(store, checkpoint, |name| loaded == Loaded::Whole || is_backbone(name))?;
    Ok(loaded)
}

/// The values of a parameter in a checkpoint; a position table for images of another size is interpolated.
fn fitted(store: &ParameterStore, checkpoint: &Checkpoint, id: ParameterId) -> Result<Vec<f32>> {
    let (name, dims) = (store.name(id), store.shape(id).dims().to_vec());
    match floats(checkpoint, name, &dims) {
        Ok(Some(values)) => Ok(values.to_vec()),
        Ok(None) => Err(missing(name)),
        Err(error) => positions(checkpoint, name, &dims).ok_or(error),
    }
}

fn missing(name: &str) -> Error {
    Error::Request(format!("the checkpoint has no tensor {name}"))
}

/// The numbers of the tensor `name`, which must have this shape.
fn floats<'a>(checkpoint: &'a Checkpoint, name: &str, dims: &[usize]) -> Result<Option<&'a [f32]>> {
    match checkpoint.tensors.get(name) {
        None => Ok(None),
        Some(stored) => match &stored.numbers {
            Numbers::F32(values) if stored.shape == dims => Ok(Some(values)),
            _ => Err(Error::Request(format!(
                "tensor {name} of the checkpoint has shape {:?}, but the network's has {dims:?}",
                stored.shape
            ))),
        },
    }
}

/// The position table `name` of a network for another image size, interpolated to this shape.
fn positions(checkpoint: &Checkpoint, name: &str, dims: &[usize]) -> Option<Vec<f32>> {
    let stored = checkpoint.tensors.get(name)?;
    let Numbers::F32(values) = &stored.numbers else { return None };
    model::fit_positions(name, &stored.shape, values, dims)
}

fn whole(checkpoint: &Checkpoint, name: &str) -> Option<u64> {
    match &checkpoint.tensors.get(name)?.numbers {
        Numbers::I64(values) => u64::try_from(*values.first()?).ok(),
        _ => None,
    }
}

/// Loads running statistics; those that `must` names have to be there and fit. Returns how many were loaded.
fn load_buffers(
    store: &mut ParameterStore,
    checkpoint: &Checkpoint,
    must: impl Fn(&str) -> bool,
) -> Result<usize> {
    let mut count = 0;
    for id in store.buffers() {
        let name = store.buffer_name(id).to_owned();
        let found = match store.buffer_mut(id) {
            BufferValue::Count(current) => whole(checkpoint, &name).map(|value| *current = value).is_some(),
            BufferValue::Tensor(tensor) => {
                let dims = tensor.dims().to_vec();
                match floats(checkpoint, &name, &dims) {
                    Ok(Some(values)) => {
                        tensor.write(values)?;
                        true
                    }
                    Err(error) if must(&name) => return Err(error),
                    _ => false,
                }
            }
        };
        if must(&name) && !found {
            return Err(missing(&name));
        }
        count += usize::from(found);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Device, StoreBuilder};
    use model::{CapsuleProjectorConfig, ResNet18Config};

    /// A narrow network; its projector is for maps of `map_size`.
    fn network(seed: u64, map_size: usize) -> ParameterStore {
        let mut builder = StoreBuilder::new();
        ResNet18Config { width: 8 }.init(&mut builder, "backbone.");
        CapsuleProjectorConfig { input: 64, map_size, capsules: 4, pose: 9, routing_std: 0.0 }
            .init(&mut builder, "projector.");
        builder.build(&Device::cpu(), seed).unwrap()
    }

    fn saved(store: &ParameterStore) -> Checkpoint {
        let mut checkpoint = Checkpoint::default();
        save(store, &mut checkpoint).unwrap();
        checkpoint
    }

    /// All values whose names begin with `prefix`.
    fn values(store: &ParameterStore, prefix: &str) -> Vec<Vec<f32>> {
        let own = store.parameters().filter(|&id| store.name(id).starts_with(prefix));
        own.map(|id| store.export(State::Value, id).unwrap()).collect()
    }

    #[test]
    fn a_frozen_network_takes_everything_or_the_backbone() {
        let mut donor = network(1, 2);
        let count = donor.find_buffer("backbone.bn1.num_batches_tracked").unwrap();
        *donor.buffer_mut(count) = BufferValue::Count(7);
        let whole = saved(&donor);
        let mut same = network(2, 2);
        assert_eq!(load_frozen(&mut same, &whole).unwrap(), Loaded::Whole);
        assert_eq!(values(&same, ""), values(&donor, ""));
        assert!(matches!(same.buffer(count), BufferValue::Count(7)));
        // Without a projector, or with one for images of another size.
        let mut backbone = whole.clone();
        backbone.tensors.retain(|name, _| name.contains("backbone."));
        for (checkpoint, map_size) in [(&backbone, 2), (&whole, 3)] {
            let (mut other, before) = (network(2, map_size), network(2, map_size));
            assert_eq!(load_frozen(&mut other, checkpoint).unwrap(), Loaded::BackboneOnly);
            assert_eq!(values(&other, "backbone."), values(&donor, "backbone."));
            assert_eq!(values(&other, "projector."), values(&before, "projector."));
        }
    }

    #[test]
    fn what_is_missing_or_no_number_is_refused_and_changes_nothing() {
        let whole = saved(&network(1, 2));
        let without = |name: &str| {
            let mut checkpoint = whole.clone();
            checkpoint.tensors.remove(name).unwrap();
            checkpoint
        };
        let mut broken = whole.clone();
        let stored = broken.tensors.get_mut("projector.fc.W1").unwrap();
        let Numbers::F32(numbers) = &mut stored.numbers else { panic!("weights are float32") };
        numbers[3] = f32::NAN;
        let mut wide = StoreBuilder::new();
        ResNet18Config { width: 16 }.init(&mut wide, "backbone.");
        let wide = saved(&wide.build(&Device::cpu(), 0).unwrap());
        for (checkpoint, message) in [
            (without("projector.fc.W1"), "the checkpoint has no tensor projector.fc.W1"),
            (without("backbone.bn1.weight"), "the checkpoint has no tensor backbone.bn1.weight"),
            (broken, "tensor projector.fc.W1 of the checkpoint holds NaN"),
            (
                wide,
                "tensor backbone.conv1.weight of the checkpoint has shape [16, 3, 7, 7], but the network's has [8, 3, 7, 7]",
            ),
        ] {
            let mut store = network(2, 2);
            assert_eq!(load_frozen(&mut store, &checkpoint).unwrap_err().to_string(), message);
            assert_eq!(values(&store, ""), values(&network(2, 2), ""));
        }
        let mut store = network(2, 2);
        let statistics = without("backbone.bn1.running_var");
        let message = load_frozen(&mut store, &statistics).unwrap_err().to_string();
        assert_eq!(message, "the checkpoint has no tensor backbone.bn1.running_var");
    }
}
