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

/// exp(x) to about one unit in the last place, in a form that vectorises: x = n ln 2 + r, exp(r) by a polynomial.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let value = p * r * r + r + 1.0;
    value * f32::from_bits(((n as i32 + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    #[test]
    fn exp_is_accurate() {
        for step in -8600..8700 {
            let x = step as f32 * 0.01;
            let wanted = f64::from(x).exp();
            let error = (f64::from(super::exp(x)) - wanted).abs() / wanted;
            assert!(error < 2e-7, "{x}: {error:.1e}");
        }
    }
}
