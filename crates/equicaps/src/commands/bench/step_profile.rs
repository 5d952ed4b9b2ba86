//! Where the time of a step goes: every kind of operation, on a GPU beside what the device reaches at best.

use std::fmt;

use serde::Serialize;

use crate::commands::frame::text_table;

/// The time of one kind of operation in a step.
#[derive(Serialize)]
pub(super) struct Operation {
    op: String,
    /// Not known on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    backward: Option<bool>,
    calls: usize,
    ms: f64,
    /// On a GPU only.
    #[serde(flatten)]
    shares: Option<Shares>,
}

/// Shares of what the device reaches at best.
#[derive(Serialize)]
struct Shares {
    share_of_arithmetic_ceiling: f64,
    share_of_memory_ceiling: f64,
}

impl From<engine::ProfileEntry> for Operation {
    fn from(entry: engine::ProfileEntry) -> Self {
        let (op, ms) = (entry.op.to_owned(), entry.time.as_secs_f64() * 1e3);
        Self { op, backward: Some(entry.backward), calls: entry.calls, ms, shares: None }
    }
}

/// Operations as a table.
pub(super) fn operation_table(operations: &[Operation]) -> String {
    let row = |operation: &Operation| {
        let direction = operation.backward.map(|backward| if backward { " backward" } else { " forward" });
        let name = format!("{}{}", operation.op, direction.unwrap_or_default());
        let mut cells = vec![name, operation.calls.to_string(), format!("{:.3}", operation.ms)];
        if let Some(shares) = &operation.shares {
            let shares = [shares.share_of_arithmetic_ceiling, shares.share_of_memory_ceiling];
            cells.extend(shares.map(|share| format!("{:.0} %", 100.0 * share)));
        }
        cells
    };
    let headings = ["operation", "calls", "ms", "arithmetic", "memory"];
    let has_shares = operations.iter().any(|operation| operation.shares.is_some());
    let shown = if has_shares { &headings[..] } else { &headings[..3] };
    text_table(shown, operations.iter().map(row))
}

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

    /// The time of a kernel beside the ceilings.
    pub(super) fn operation(&self, entry: gpu::ProfileEntry) -> Operation {
        let time = entry.milliseconds.max(1e-9);
        let shares = Shares {
            share_of_arithmetic_ceiling: entry.operations / time / self.operations_per_ms,
            share_of_memory_ceiling: entry.bytes / time / self.bytes_per_ms,
        };
        let (calls, ms) = (entry.count, entry.milliseconds);
        Operation { op: entry.name, backward: None, calls, ms, shares: Some(shares) }
    }
}

impl fmt::Display for Ceilings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (arithmetic, memory) = (self.operations_per_ms / 1e9, self.bytes_per_ms / 1e9);
        write!(formatter, "ceilings: {arithmetic:.0} TFLOP/s, {memory:.2} TB/s")
    }
}
