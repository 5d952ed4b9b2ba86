//! Loops over equally long slices.

use crate::adam::AdamStep;

multiversion! {
    /// `target += source`.
    pub(crate) fn add_assign(target: &mut [f32], source: &[f32]) {
        for (target, source) in target.iter_mut().zip(source) {
            *target += source;
        }
    }
}

multiversion! {
    /// One Adam update of a chunk; see [`crate::AdamConfig`].
    pub(crate) fn adam(step: AdamStep, p: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32]) {
        for (((p, g), m), v) in p.iter_mut().zip(g).zip(m).zip(v) {
            let gradient = g + step.weight_decay * *p;
            *m = step.beta1.0 * *m + step.beta1.1 * gradient;
            *v = step.beta2.0 * *v + step.beta2.1 * gradient * gradient;
            *p -= step.step_size * *m / (v.sqrt() * step.root_scale + step.epsilon);
        }
    }
}
