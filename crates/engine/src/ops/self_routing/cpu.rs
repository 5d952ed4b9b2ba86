//! Self-routing on the CPU: 16 samples side by side in vector lanes, so that every weight is read once for all of
//! them. Forward sums over fixed chunks of lower capsules and adds the chunks in order; in backward a task owns its
//! lower capsules, whose gradients nobody else touches.

use rayon::prelude::*;

use super::RoutingGeometry;
use crate::cpu::{SendPtr, exp};
use crate::error::Result;
use crate::ops::operation::To;
use crate::tape::Target;

/// Samples side by side.
const LANES: usize = 16;
type Lanes = [f32; LANES];

/// Lower capsules per task.
const CHUNK: usize = 16;

#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub geometry: RoutingGeometry,
    pub a: &'a [f32],
    pub u: &'a [f32],
    pub w1: Option<&'a [f32]>,
    pub w2: &'a [f32],
    pub b2: &'a [f32],
}

/// What forward gave, and its gradients.
pub(super) struct Outputs<'a> {
    pub a: &'a [f32],
    pub u: &'a [f32],
    pub total: &'a [f32],
    pub da: Option<&'a [f32]>,
    pub du: Option<&'a [f32]>,
}

impl Inputs<'_> {
    /// Activation and pose of lower capsule `i` for the samples from `first` on; zeros beyond the batch.
    #[inline(always)]
    fn load(&self, first: usize, i: usize, u: &mut [Lanes]) -> Lanes {
        let RoutingGeometry { batch, lower, pose, .. } = self.geometry;
        let mut a = [0.0; LANES];
        u.fill([0.0; LANES]);
        for lane in 0..LANES.min(batch - first) {
            let index = (first + lane) * lower + i;
            a[lane] = self.a[index];
            for (u, value) in u.iter_mut().zip(&self.u[index * pose..(index + 1) * pose]) {
                u[lane] = *value;
            }
        }
        a
    }

    /// The routing coefficients r of lower capsule `i`.
    #[inline(always)]
    fn coefficients(&self, i: usize, u: &[Lanes], r: &mut [Lanes]) {
        let RoutingGeometry { upper, pose, .. } = self.geometry;
        let mut largest = [f32::NEG_INFINITY; LANES];
        for (j, r) in r.iter_mut().enumerate() {
            let mut logit = [self.b2[i * upper + j]; LANES];
            for (weight, u) in self.w2[(i * upper + j) * pose..][..pose].iter().zip(u) {
                for lane in 0..LANES {
                    logit[lane] += weight * u[lane];
                }
            }
            for lane in 0..LANES {
                largest[lane] = if logit[lane] > largest[lane] { logit[lane] } else { largest[lane] };
            }
            *r = logit;
        }
        let mut sum = [0.0; LANES];
        for r in r.iter_mut() {
            for lane in 0..LANES {
                r[lane] = exp(r[lane] - largest[lane]);
                sum[lane] += r[lane];
            }
        }
        for r in r.iter_mut() {
            for lane in 0..LANES {
                r[lane] /= sum[lane];
            }
        }
    }
}

/// Sums of one chunk for 16 samples: sum a, then for every upper capsule sum c and sum c v.
fn sums_width(geometry: &RoutingGeometry, poses: bool) -> usize {
    1 + geometry.upper * if poses { 1 + geometry.pose } else { 1 }
}

pub(super) fn forward(inputs: &Inputs<'_>, a: &mut [f32], u: &mut [f32], total: &mut [f32]) {
    let RoutingGeometry { batch, lower, upper, pose } = inputs.geometry;
    let width = sums_width(&inputs.geometry, inputs.w1.is_some());
    let chunks = lower.div_ceil(CHUNK);
    let groups = batch.div_ceil(LANES);
    let mut sums = vec![[0.0; LANES]; groups * chunks * width];
    sums.par_chunks_mut(width).enumerate().for_each(|(task, sums)| {
        let (group, chunk) = (task / chunks, task % chunks);
        let (first, last) = (chunk * CHUNK, ((chunk + 1) * CHUNK).min(lower));
        add_votes(inputs, group * LANES, first, last, sums);
    });
    for (group, sums) in sums.chunks_exact(chunks * width).enumerate() {
        let mut all = vec![[0.0_f64; LANES]; width];
        for sums in sums.chunks_exact(width) {
            for (all, sum) in all.iter_mut().zip(sums) {
                (0..LANES).for_each(|lane| all[lane] += f64::from(sum[lane]));
            }
        }
        for (lane, n) in (group * LANES..batch).take(LANES).enumerate() {
            total[n] = all[0][lane] as f32;
            for j in 0..upper {
                let weight = all[1 + j][lane];
                a[n * upper + j] = (weight / all[0][lane]) as f32;
                if inputs.w1.is_some() {
                    for p in 0..pose {
                        let sum = all[1 + upper + j * pose + p][lane];
                        u[(n * upper + j) * pose + p] = (sum / weight) as f32;
                    }
                }
            }
        }
    }
}

multiversion! {
    fn add_votes(inputs: &Inputs<'_>, group: usize, first: usize, last: usize, sums: &mut [Lanes]) {
        let RoutingGeometry { upper, pose, .. } = inputs.geometry;
        let mut u = vec![[0.0; LANES]; pose];
        let mut weighted = vec![[0.0; LANES]; pose];
        let mut r = vec![[0.0; LANES]; upper];
        let (total, sums) = sums.split_at_mut(1);
        let (weights, poses) = sums.split_at_mut(upper);
        for i in first..last {
            let a = inputs.load(group, i, &mut u);
            inputs.coefficients(i, &u, &mut r);
            (0..LANES).for_each(|lane| total[0][lane] += a[lane]);
            for j in 0..upper {
                let c: Lanes = std::array::from_fn(|lane| a[lane] * r[j][lane]);
                (0..LANES).for_each(|lane| weights[j][lane] += c[lane]);
                let Some(w1) = inputs.w1 else { continue };
                for (weighted, u) in weighted.iter_mut().zip(&u) {
                    *weighted = std::array::from_fn(|lane| c[lane] * u[lane]);
                }
                let w1 = &w1[(i * upper + j) * pose * pose..][..pose * pose];
                for (row, sum) in w1.chunks_exact(pose).zip(&mut poses[j * pose..(j + 1) * pose]) {
                    let mut vote = *sum;
                    for (weight, u) in row.iter().zip(&weighted) {
                        (0..LANES).for_each(|lane| vote[lane] += weight * u[lane]);
                    }
                    *sum = vote;
                }
            }
        }
    }
}

/// Gradients of the sums that forward divided: dm_j (pose), dD_j, and dA, for 16 samples.
struct SumGradients {
    pose: Vec<Lanes>,
    weight: Vec<Lanes>,
    total: Lanes,
}

fn sum_gradients(inputs: &Inputs<'_>, outputs: &Outputs<'_>, first: usize) -> SumGradients {
    let RoutingGeometry { batch, upper, pose, .. } = inputs.geometry;
    let mut gradients = SumGradients {
        pose: vec![[0.0; LANES]; upper * pose],
        weight: vec![[0.0; LANES]; upper],
        total: [0.0; LANES],
    };
    for lane in 0..LANES.min(batch - first) {
        let n = first + lane;
        let total = outputs.total[n];
        for j in 0..upper {
            let a = outputs.a[n * upper + j];
            let da = outputs.da.map_or(0.0, |da| da[n * upper + j]);
            let mut weight = da / total;
            gradients.total[lane] -= da * a / total;
            if let Some(du) = outputs.du.filter(|_| inputs.w1.is_some()) {
                let sum = a * total;
                for p in 0..pose {
                    let index = (n * upper + j) * pose + p;
                    let m = du[index] / sum;
                    gradients.pose[j * pose + p][lane] = m;
                    weight -= m * outputs.u[index];
                }
            }
            gradients.weight[j][lane] = weight;
        }
    }
    gradients
}

/// Pointers to the gradients of one lower capsule's tensors; `None` where unwanted.
struct Sinks {
    a: Option<SendPtr<f32>>,
    u: Option<SendPtr<f32>>,
    w1: Option<SendPtr<f32>>,
    w2: Option<SendPtr<f32>>,
    b2: Option<SendPtr<f32>>,
}

pub(super) fn backward(inputs: &Inputs<'_>, outputs: &Outputs<'_>, [a, u, w2, b2, w1]: To<5>) -> Result<()> {
    let RoutingGeometry { batch, lower, .. } = inputs.geometry;
    // Everything is added below, so what is unspecified starts at zero.
    let sink = |target: Option<&mut Target>| -> Result<Option<SendPtr<f32>>> {
        let Some(target) = target else { return Ok(None) };
        Ok(Some(SendPtr::new(target.zeroed()?.as_mut_slice::<f32>()?)))
    };
    let sinks = Sinks { a: sink(a)?, u: sink(u)?, w1: sink(w1)?, w2: sink(w2)?, b2: sink(b2)? };
    let gradients: Vec<SumGradients> =
        (0..batch).step_by(LANES).map(|first| sum_gradients(inputs, outputs, first)).collect();
    (0..lower.div_ceil(CHUNK)).into_par_iter().for_each(|chunk| {
        for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(lower) {
            for (group, gradients) in gradients.iter().enumerate() {
                // SAFETY: capsule `i` belongs to this task alone.
                unsafe { capsule_gradient(inputs, gradients, &sinks, group * LANES, i) }
            }
        }
    });
    Ok(())
}

/// Sum of all lanes, in a fixed tree.
#[inline(always)]
fn lane_sum(values: &Lanes) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|lane| values[lane] + values[lane + 8]);
    let four: [f32; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// # Safety
/// No other task may touch the gradients of lower capsule `i`.
unsafe fn capsule_gradient(
    inputs: &Inputs<'_>,
    gradients: &SumGradients,
    sinks: &Sinks,
    first: usize,
    i: usize,
) {
    let RoutingGeometry { batch, lower, upper, pose } = inputs.geometry;
    let count = LANES.min(batch - first);
    // SAFETY: the ranges are those of capsule `i`.
    let slice = |sink: Option<SendPtr<f32>>, len: usize| sink.map(|sink| unsafe { sink.slice(i * len, len) });
    let dw1 = slice(sinks.w1, upper * pose * pose);
    let dw2 = slice(sinks.w2, upper * pose);
    let db2 = slice(sinks.b2, upper);
    let mut da = [0.0; LANES];
    let mut du = vec![[0.0; LANES]; pose];
    capsule_lanes(inputs, gradients, first, i, dw1, dw2, db2, &mut da, &mut du);
    for lane in 0..count {
        let index = (first + lane) * lower + i;
        if let Some(a) = sinks.a {
            // SAFETY: as above.
            unsafe { *a.at(index) += da[lane] }
        }
        if let Some(u) = sinks.u {
            // SAFETY: as above.
            let to = unsafe { u.slice(index * pose, pose) };
            to.iter_mut().zip(&du).for_each(|(to, du)| *to += du[lane]);
        }
    }
}

multiversion! {
    fn capsule_lanes(
        inputs: &Inputs<'_>,
        gradients: &SumGradients,
        first: usize,
        i: usize,
        dw1: Option<&mut [f32]>,
        dw2: Option<&mut [f32]>,
        db2: Option<&mut [f32]>,
        da: &mut Lanes,
        du: &mut [Lanes],
    ) {
        let RoutingGeometry { upper, pose, .. } = inputs.geometry;
        let mut u = vec![[0.0; LANES]; pose];
        let mut r = vec![[0.0; LANES]; upper];
        let mut dr = vec![[0.0; LANES]; upper];
        let mut back = vec![[0.0; LANES]; pose];
        let a = inputs.load(first, i, &mut u);
        inputs.coefficients(i, &u, &mut r);
        // The poses again, sample by sample, in pieces of 16 components: what the weight gradients are summed from.
        let mut samples = vec![[0.0; LANES]; pose.div_ceil(LANES) * LANES];
        for (q, u) in u.iter().enumerate() {
            for (lane, value) in u.iter().enumerate() {
                samples[q / LANES * LANES + lane][q % LANES] = *value;
            }
        }
        *da = gradients.total;
        let mut mean = [0.0; LANES];
        let mut dw1 = dw1;
        for j in 0..upper {
            let mut dc = gradients.weight[j];
            if let Some(w1) = inputs.w1 {
                let c: Lanes = std::array::from_fn(|lane| a[lane] * r[j][lane]);
                let m = &gradients.pose[j * pose..(j + 1) * pose];
                let w1 = &w1[(i * upper + j) * pose * pose..][..pose * pose];
                back.fill([0.0; LANES]);
                for (row, m) in w1.chunks_exact(pose).zip(m) {
                    for (weight, back) in row.iter().zip(&mut back) {
                        (0..LANES).for_each(|lane| back[lane] += weight * m[lane]);
                    }
                }
                for ((back, u), du) in back.iter().zip(&u).zip(&mut *du) {
                    for lane in 0..LANES {
                        dc[lane] += back[lane] * u[lane];
                        du[lane] += c[lane] * back[lane];
                    }
                }
                if let Some(dw1) = &mut dw1 {
                    let dw1 = &mut dw1[j * pose * pose..(j + 1) * pose * pose];
                    for (row, m) in dw1.chunks_exact_mut(pose).zip(m) {
                        for (dw1, columns) in row.chunks_mut(LANES).zip(samples.chunks_exact(LANES)) {
                            let mut sum = [0.0; LANES];
                            for (lane, u) in columns.iter().enumerate() {
                                let g = c[lane] * m[lane];
                                (0..LANES).for_each(|q| sum[q] += g * u[q]);
                            }
                            dw1.iter_mut().zip(&sum).for_each(|(dw1, sum)| *dw1 += sum);
                        }
                    }
                }
            }
            for lane in 0..LANES {
                da[lane] += r[j][lane] * dc[lane];
                dr[j][lane] = a[lane] * dc[lane];
                mean[lane] += r[j][lane] * dr[j][lane];
            }
        }
        let (mut dw2, mut db2) = (dw2, db2);
        for j in 0..upper {
            let dl: Lanes = std::array::from_fn(|lane| r[j][lane] * (dr[j][lane] - mean[lane]));
            let w2 = &inputs.w2[(i * upper + j) * pose..][..pose];
            for (weight, du) in w2.iter().zip(&mut *du) {
                (0..LANES).for_each(|lane| du[lane] += dl[lane] * weight);
            }
            if let Some(dw2) = &mut dw2 {
                for (dw2, u) in dw2[j * pose..(j + 1) * pose].iter_mut().zip(&u) {
                    let products: Lanes = std::array::from_fn(|lane| dl[lane] * u[lane]);
                    *dw2 += lane_sum(&products);
                }
            }
            if let Some(db2) = &mut db2 {
                db2[j] += lane_sum(&dl);
            }
        }
    }
}
