//! Probes and retrieval on a GPU: tables of features lie in its memory, nothing but indices, targets and results
//! crosses to the host and back.

mod heads;
pub mod probes;
pub mod retrieval;

pub use heads::{HeadGroup, Objective};

use std::collections::HashMap;

use engine::Device;
use gpu::{Argument, Buffer, Context, Kernel, KernelSource, Launch};

use crate::error::{Error, Result};
use crate::features::Table;

/// Every kernel of `kernels.cu`.
const KERNELS: [&str; 11] = [
    "gather",
    "add_bias",
    "relu_backward",
    "mean_squared_error",
    "cross_entropy",
    "adam",
    "prepare",
    "rank_targets",
    "take_best",
    "forget_best",
    "fill_random",
];

fn source() -> KernelSource {
    KernelSource {
        name: "evaluate.cu",
        prelude: engine::cuda::kernels::PRELUDE,
        text: include_str!("kernels.cu"),
        defines: Vec::new(),
    }
}

/// A GPU with the kernels of evaluation.
#[derive(Clone, Debug)]
pub struct Session {
    context: Context,
    kernels: HashMap<&'static str, Kernel>,
}

impl Session {
    /// The GPU of `device`; `None` for the CPU.
    pub fn of(device: &Device) -> Result<Option<Self>> {
        let Device::Cuda(cuda) = device else { return Ok(None) };
        let context = cuda.context().clone();
        let module = context.module(&source())?;
        let kernels = KERNELS
            .iter()
            .map(|&name| Ok((name, module.kernel(&context, name)?)))
            .collect::<std::result::Result<_, gpu::Error>>()?;
        Ok(Some(Self { context, kernels }))
    }

    /// The device's context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Launches one of the kernels. The arguments must be those that it declares, and buffers large enough: what the
    /// callers in this folder see to, and `equicaps check evaluate` tries.
    fn launch(&self, name: &'static str, launch: Launch, arguments: &[Argument]) -> Result<()> {
        let missing =
            || gpu::Error::MissingSymbol { library: "evaluate.cu".to_owned(), symbol: name.to_owned() };
        let kernel = self.kernels.get(name).ok_or_else(missing)?;
        // SAFETY: see above.
        unsafe { kernel.launch(launch, arguments)? };
        Ok(())
    }

    /// Blocks of 256 threads for a kernel over `count` items.
    fn elementwise(&self, count: usize) -> Launch {
        let most = self.context.properties().multiprocessors as usize * 16;
        Launch::linear(count.div_ceil(256).min(most), 256)
    }

    /// A buffer with a copy of numbers.
    fn upload<T: bytemuck::NoUninit>(&self, values: &[T]) -> Result<Buffer> {
        Ok(self.context.upload(bytemuck::cast_slice(values))?)
    }

    /// The first `count` numbers of a buffer; waits for the device.
    fn download<T: bytemuck::Pod>(&self, buffer: &Buffer, count: usize) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); count];
        // SAFETY: the buffer is alive; its length is checked there.
        unsafe { self.context.read(buffer.view(), bytemuck::cast_slice_mut(&mut values))? };
        Ok(values)
    }

    /// Whether `bytes` more fit beside what is there, with some room left for the work itself.
    pub fn has_room(&self, bytes: usize) -> Result<bool> {
        const WORK: usize = 2 << 30;
        Ok(self.context.free_bytes()? >= bytes.saturating_add(WORK))
    }
}

/// A table of features in device memory.
#[derive(Debug)]
pub struct DeviceTable {
    buffer: Buffer,
    /// Numbers in a row.
    pub width: usize,
    /// Number of rows.
    pub rows: usize,
}

impl DeviceTable {
    /// A copy of a table of the host.
    pub fn upload(session: &Session, table: &Table) -> Result<Self> {
        if i32::try_from(table.rows()).is_err() {
            return Err(Error::Request(format!("{} views are more than a GPU's index holds", table.rows())));
        }
        Ok(Self { buffer: session.upload(&table.values)?, width: table.width, rows: table.rows() })
    }

    /// Meaningless numbers made on the device, for measuring speed.
    pub fn random(session: &Session, rows: usize, width: usize, seed: u32) -> Result<Self> {
        let buffer = session.context.allocate(rows * width * 4)?;
        let arguments = [(&buffer).into(), ((rows * width) as i64).into(), (seed as i32).into()];
        session.launch("fill_random", session.elementwise(rows * width), &arguments)?;
        Ok(Self { buffer, width, rows })
    }

    /// A copy on the host.
    pub fn download(&self, session: &Session) -> Result<Table> {
        Ok(Table { width: self.width, values: session.download(&self.buffer, self.rows * self.width)? })
    }
}

#[cfg(test)]
mod tests {
    /// The kernels compile for the oldest and for the current data-centre architecture. Needs NVRTC, but no GPU; CI
    /// sets EQUICAPS_REQUIRE_NVRTC.
    #[test]
    fn all_kernels_compile() {
        let compiler = match gpu::Compiler::get() {
            Ok(compiler) => compiler,
            Err(error) if std::env::var_os("EQUICAPS_REQUIRE_NVRTC").is_none() => {
                eprintln!("skipped: no kernel was compiled, as {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        for (major, minor) in [(8, 0), (9, 0)] {
            let image = compiler.compile(&super::source(), gpu::Architecture { major, minor }).unwrap();
            let text = String::from_utf8_lossy(&image).into_owned();
            for name in super::KERNELS {
                assert!(text.contains(name), "{name} is not in evaluate.cu");
            }
        }
    }
}
