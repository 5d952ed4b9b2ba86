//! The state of a network in a checkpoint: parameters and Adam's moments by their published names, running statistics,
//! and the number of updates.

use engine::{BufferValue, ParameterStore, State};

use crate::checkpoint::{Checkpoint, Numbers};
use crate::error::{Error, Result};
use crate::learner::Taken;

const FIRST_MOMENT: &str = "optimiser.first_moment.";
const SECOND_MOMENT: &str = "optimiser.second_moment.";
const STEPS: &str = "optimiser.steps";

/// Adds the whole state of `store` to a checkpoint.
pub(crate) fn save(store: &ParameterStore, checkpoint: &mut Checkpoint) -> Result<()> {
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
pub(crate) fn load(store: &mut ParameterStore, checkpoint: &Checkpoint) -> Result<()> {
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
    load_buffers(store, checkpoint, true)?;
    let steps = whole(checkpoint, STEPS).ok_or_else(|| missing(STEPS))?;
    store.set_steps(steps);
    Ok(())
}

/// Takes the weights that fit. Those of the backbone must: the rest is of little use without them.
pub(crate) fn load_weights(store: &mut ParameterStore, checkpoint: &Checkpoint) -> Result<Taken> {
    let mut fitting = Vec::new();
    let mut taken = Taken::default();
    for id in store.parameters() {
        let (name, dims) = (store.name(id), store.shape(id).dims().to_vec());
        let found = match floats(checkpoint, name, &dims) {
            Ok(Some(values)) => Ok(values.to_vec()),
            Ok(None) => Err(missing(name)),
            Err(error) => positions(checkpoint, name, &dims).ok_or(error),
        };
        match found {
            Ok(values) => fitting.push((id, values)),
            Err(error) if name.starts_with("backbone.") => {
                return Err(Error::Request(format!("the backbone of the checkpoint does not fit: {error}")));
            }
            // Heads for other classes, or projectors of other sizes, stay as they are.
            Err(_) => {
                taken.anew.insert(name.split('.').next().unwrap_or(name).to_owned());
            }
        }
    }
    taken.count = fitting.len();
    for (id, values) in fitting {
        store.import(State::Value, id, &values)?;
    }
    taken.count += load_buffers(store, checkpoint, false)?;
    Ok(taken)
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

/// Takes over running statistics; all of them where `strict`, those that fit otherwise. Says how many.
fn load_buffers(store: &mut ParameterStore, checkpoint: &Checkpoint, strict: bool) -> Result<usize> {
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
                    Err(error) if strict => return Err(error),
                    _ => false,
                }
            }
        };
        if strict && !found {
            return Err(missing(&name));
        }
        count += usize::from(found);
    }
    Ok(count)
}
