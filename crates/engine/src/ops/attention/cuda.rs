//! Attention on the GPU: on tensor cores in bf16 for heads of 32 or 64, else one row a warp in f32 arithmetic. Neither
//! writes the matrix of scores.

use gpu::{Argument, Launch};

use super::{Attention, AttentionGeometry, Saved};
use crate::cuda::kernels::{Kernel, KernelFile, Macro, Program};
use crate::cuda::{CudaDevice, sums, view, view_mut};
use crate::error::Result;
use crate::ops::accumulate;
use crate::ops::operation::{Cuda, Fixed, Operation, To};
use crate::tape::{Target, Var};
use crate::tensor::{DType, Tensor};

/// Most rows of keys and values in shared memory: three blocks of the published size fit a multiprocessor.
const MOST_KEYS: usize = 272;
/// Warps of a block of the kernel without tensor cores.
const WARPS: usize = 4;

struct Way {
    program: Program,
    /// Rows in shared memory, on tensor cores.
    keys: Option<usize>,
}

fn way(geometry: &AttentionGeometry, dtype: DType) -> Way {
    let program = |file| Program::new(file, dtype).define(Macro::Size, geometry.size);
    if dtype == DType::Bf16 && matches!(geometry.size, 32 | 64) {
        let keys = geometry.tokens.next_multiple_of(16).min(MOST_KEYS);
        return Way {
            program: program(KernelFile::AttentionTensor).define(Macro::Keys, keys),
            keys: Some(keys),
        };
    }
    Way { program: program(KernelFile::Attention), keys: None }
}

/// Tokens, heads and the scale of scores, as arguments.
fn sizes(geometry: &AttentionGeometry) -> [Argument; 3] {
    [geometry.tokens.into(), geometry.heads.into(), (1.0 / (geometry.size as f32).sqrt()).into()]
}

/// Operations of one product of all queries and keys.
fn product(geometry: &AttentionGeometry) -> f64 {
    let AttentionGeometry { batch, tokens, heads, size } = *geometry;
    2.0 * (batch * heads * tokens * tokens) as f64 * size as f64
}

impl Operation<CudaDevice, Fixed<2>> for Attention {
    type Saved = Saved;

    /// `qkv` comes without its `bias`.
    fn forward(&self, cuda: &mut Cuda, [qkv, bias]: [&Var; 2], y: &mut Tensor) -> Result<Saved> {
        let AttentionGeometry { batch, tokens, heads, .. } = self.0;
        let mut log_sums = cuda.empty([batch, heads, tokens], DType::F32)?;
        forward(cuda, &self.0, qkv.value(), bias.present(), y, &mut log_sums)?;
        Ok(Saved { qkv: qkv.value().clone(), bias: bias.present().cloned(), y: y.clone(), log_sums })
    }

    fn backward(&self, cuda: &mut Cuda, saved: &Saved, dy: Tensor, [dqkv, dbias]: To<2>) -> Result<()> {
        match dqkv {
            Some(dqkv) if !dqkv.accumulate => backward(cuda, &self.0, saved, &dy, &mut dqkv.tensor, dbias),
            dqkv => {
                let mut own = cuda.empty(saved.qkv.shape(), saved.qkv.dtype())?;
                backward(cuda, &self.0, saved, &dy, &mut own, dbias)?;
                dqkv.map_or(Ok(()), |dqkv| accumulate(cuda.device, &own, dqkv))
            }
        }
    }
}

fn forward(
    cuda: &CudaDevice,
    geometry: &AttentionGeometry,
    qkv: &Tensor,
    bias: Option<&Tensor>,
    y: &mut Tensor,
    log_sums: &mut Tensor,
) -> Result<()> {
    let AttentionGeometry { batch, tokens, heads, size } = *geometry;
    let bytes = ((qkv.len() + y.len()) * y.dtype().size()) as f64;
    let name = || format!("attention {tokens} x {heads} x {size}");
    let _scope = cuda.context().scope(name, 2.0 * product(geometry), bytes);
    let way = way(geometry, qkv.dtype());
    let mut arguments = vec![
        view(qkv)?.into(),
        bias.map(view).transpose()?.into(),
        view_mut(y)?.into(),
        view_mut(log_sums)?.into(),
    ];
    arguments.extend(sizes(geometry));
    let launch = match way.keys {
        Some(keys) => Launch::linear(batch * heads, 192).with_shared(keys * size * 4),
        None => {
            let rows = batch * heads * tokens;
            arguments.push((rows as i64).into());
            Launch::linear(rows.div_ceil(WARPS), WARPS * 32)
        }
    };
    cuda.launch(&way.program, Kernel::attention_forward, launch, &arguments)
}

/// Overwrites `dqkv`, and writes the gradient of the bias.
fn backward(
    cuda: &CudaDevice,
    geometry: &AttentionGeometry,
    Saved { qkv, bias, y, log_sums }: &Saved,
    dy: &Tensor,
    dqkv: &mut Tensor,
    dbias: Option<&mut Target>,
) -> Result<()> {
    let AttentionGeometry { batch, tokens, heads, size } = *geometry;
    {
        let bytes = ((2 * qkv.len() + 2 * y.len()) * y.dtype().size()) as f64;
        let name = || format!("attention {tokens} x {heads} x {size} backward");
        let _scope = cuda.context().scope(name, 5.0 * product(geometry), bytes);
        let way = way(geometry, qkv.dtype());
        let rows = batch * heads * tokens;
        let deltas = cuda.context().allocate(rows * 4)?;
        let (from, shift) = (view(qkv)?.into(), bias.as_ref().map(view).transpose()?.into());
        let (logs, gradient) = (view(log_sums)?.into(), view(dy)?.into());
        let to: Argument = view_mut(dqkv)?.into();
        let mut queries = vec![from, shift, view(y)?.into(), logs, gradient, to, (&deltas).into()];
        let mut keys = vec![from, shift, logs, gradient, to, (&deltas).into()];
        let launch = match way.keys {
            Some(rows) => Launch::linear(batch * heads, 192).with_shared(rows * size * 4 + rows * 8),
            None => Launch::linear(rows.div_ceil(WARPS), WARPS * 32),
        };
        for (kernel, arguments) in
            [(Kernel::attention_backward_queries, &mut queries), (Kernel::attention_backward_keys, &mut keys)]
        {
            arguments.extend(sizes(geometry));
            if way.keys.is_none() {
                arguments.push((rows as i64).into());
            }
            cuda.launch(&way.program, kernel, launch, arguments)?;
        }
    }
    match dbias {
        Some(dbias) => sums::column_sums(cuda, dqkv, 3 * heads * size, dbias),
        None => Ok(()),
    }
}
