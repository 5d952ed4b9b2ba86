//! Where the time of a step on a GPU goes: every kind of kernel beside what the device reaches at best.

use std::fmt::Write as _;

use serde_json::json;

/// What the device reaches at best: products of large matrices and copies of large buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ceilings {
    operations_per_ms: f64,
    bytes_per_ms: f64,
}

impl Ceilings {
    pub(super) fn measure(context: &gpu::Context) -> gpu::Result<Self> {
        use gpu::matmul::MatmulShape;
        const SIDE: usize = 8192;
        let bytes = SIDE * SIDE * 2;
        // Bytes of ordinary numbers: products of zeros are faster than real ones.
        let pattern: Vec<u8> =
            (0..bytes).map(|i| if i % 2 == 0 { (i * 37 % 251) as u8 } else { 0x3e }).collect();
        let (a, b, c) = (context.upload(&pattern)?, context.upload(&pattern)?, context.allocate(bytes)?);
        let shape = MatmulShape::new(SIDE, SIDE, SIDE, gpu::Precision::Bf16, gpu::Precision::Bf16);
        let (mut product, mut copy) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..4 {
            let timer = gpu::Timer::start(context)?;
            // SAFETY: the buffers have the sizes of the shape.
            unsafe {
                context.matmuls()?.multiply(
                    context,
                    &shape,
                    (1.0, 0.0),
                    a.address(),
                    b.address(),
                    c.address(),
                )?;
            }
            product = product.min(timer.stop()?);
        }
        let (from, to) = (context.allocate(1 << 31)?, context.allocate(1 << 31)?);
        for _ in 0..4 {
            let timer = gpu::Timer::start(context)?;
            // SAFETY: both buffers are ours.
            unsafe { context.copy(to.view(), from.view())? };
            copy = copy.min(timer.stop()?);
        }
        let operations = 2.0 * (SIDE as f64).powi(3);
        Ok(Self { operations_per_ms: operations / product, bytes_per_ms: 2.0 * from.bytes() as f64 / copy })
    }

    /// The shares of both ceilings.
    fn shares(&self, entry: &gpu::ProfileEntry) -> (f64, f64) {
        let time = entry.milliseconds.max(1e-9);
        (entry.operations / time / self.operations_per_ms, entry.bytes / time / self.bytes_per_ms)
    }
}

/// The kernels' times beside the ceilings, for people.
pub(super) fn gpu_profile_text(entries: &[gpu::ProfileEntry], ceilings: &Ceilings) -> String {
    let mut text = format!(
        "ceilings: {:.0} TFLOP/s, {:.2} TB/s\n{:>9}  {:>4}   {:<48} {:>10} {:>8}",
        ceilings.operations_per_ms / 1e9,
        ceilings.bytes_per_ms / 1e9,
        "ms",
        "",
        "operation",
        "arithmetic",
        "memory"
    );
    for entry in entries {
        let (arithmetic, memory) = ceilings.shares(entry);
        let _ = write!(
            text,
            "\n{:9.3}  {:4} x {:<48} {:9.0}% {:7.0}%",
            entry.milliseconds,
            entry.count,
            entry.name,
            100.0 * arithmetic,
            100.0 * memory
        );
    }
    text
}

/// The same for programs.
pub(super) fn gpu_profile_json(entries: &[gpu::ProfileEntry], ceilings: &Ceilings) -> serde_json::Value {
    let list: Vec<_> = entries
        .iter()
        .map(|entry| {
            let (arithmetic, memory) = ceilings.shares(entry);
            json!({
                "op": entry.name,
                "calls": entry.count,
                "ms": entry.milliseconds,
                "share_of_arithmetic_ceiling": arithmetic,
                "share_of_memory_ceiling": memory,
            })
        })
        .collect();
    json!(list)
}
