//! The same elements under another shape; nothing is copied.

use crate::error::Result;
use crate::shape::Shape;
use crate::tape::{Tape, Var};

/// `x` with another shape of the same length.
pub fn reshape(tape: &mut Tape<'_>, x: &Var, shape: impl Into<Shape>) -> Result<Var> {
    let y = x.value().reshape(shape)?;
    let (dx, before) = (x.gradient(), x.shape());
    Ok(tape.record("reshape", &[dx], y, move |context, dy| {
        let gradient = dy.reshape(before)?;
        drop(dy);
        context.add(dx, gradient)
    }))
}
