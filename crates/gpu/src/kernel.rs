//! Loaded kernels and how they are launched.

use std::ffi::{CString, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::driver::Handle;
use crate::{Buffer, Context, Error, Result, View};

/// Kernels loaded together, from one source.
#[derive(Debug)]
pub struct Module {
    handle: Handle,
}

// SAFETY: module handles may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads machine code. Modules live as long as their context.
    pub(crate) fn load(context: &Context, image: &[u8]) -> Result<Self> {
        context.bind()?;
        let driver = context.driver();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the image is a whole module as NVRTC made it.
        let status = unsafe { (driver.module_load)(&mut handle, image.as_ptr().cast()) };
        driver.check("cuModuleLoadData", status)?;
        Ok(Self { handle })
    }

    /// The kernel called `name`.
    pub fn kernel(&self, context: &Context, name: &str) -> Result<Kernel> {
        context.bind()?;
        let driver = context.driver();
        let text = CString::new(name).unwrap_or_default();
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle; the name ends with a zero byte.
        let status = unsafe { (driver.module_function)(&mut handle, self.handle, text.as_ptr()) };
        if status != 0 {
            return Err(Error::MissingSymbol {
                library: "a compiled kernel".to_owned(),
                symbol: name.to_owned(),
            });
        }
        Ok(Kernel {
            context: context.clone(),
            handle,
            shared_bytes: Arc::new(AtomicUsize::new(ORDINARY_SHARED)),
        })
    }
}

/// An argument of a kernel: passed by value.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// A device address; 0 for none.
    Address(u64),
    /// `int`
    I32(i32),
    /// `long long`
    I64(i64),
    /// `float`
    F32(f32),
    /// `double`
    F64(f64),
    /// A size beyond what an `int` counts: the launch is refused.
    TooLarge(usize),
}

impl From<&Buffer> for Argument {
    fn from(buffer: &Buffer) -> Self {
        Self::Address(buffer.address())
    }
}

impl From<Option<&Buffer>> for Argument {
    fn from(buffer: Option<&Buffer>) -> Self {
        Self::Address(buffer.map_or(0, Buffer::address))
    }
}

impl From<View> for Argument {
    fn from(view: View) -> Self {
        Self::Address(view.address)
    }
}

impl From<Option<View>> for Argument {
    fn from(view: Option<View>) -> Self {
        Self::Address(view.map_or(0, |view| view.address))
    }
}

impl From<i32> for Argument {
    fn from(value: i32) -> Self {
        Self::I32(value)
    }
}

impl From<i64> for Argument {
    fn from(value: i64) -> Self {
        Self::I64(value)
    }
}

impl From<usize> for Argument {
    /// As an `int`: sizes of single dimensions.
    fn from(value: usize) -> Self {
        i32::try_from(value).map_or(Self::TooLarge(value), Self::I32)
    }
}

impl From<f32> for Argument {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

/// How many blocks of how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: usize,
}

impl Launch {
    /// A row of blocks.
    pub fn linear(blocks: usize, threads: usize) -> Self {
        let number = |value: usize| u32::try_from(value.max(1)).unwrap_or(u32::MAX);
        Self { grid: [number(blocks), 1, 1], block: [number(threads), 1, 1], shared_bytes: 0 }
    }

    /// A grid of blocks.
    pub fn grid(grid: [usize; 3], threads: usize) -> Self {
        let number = |value: usize| u32::try_from(value.max(1)).unwrap_or(u32::MAX);
        Self { grid: grid.map(number), block: [number(threads), 1, 1], shared_bytes: 0 }
    }

    /// With dynamic shared memory.
    pub fn with_shared(self, shared_bytes: usize) -> Self {
        Self { shared_bytes, ..self }
    }
}

/// A kernel that can be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    context: Context,
    handle: Handle,
    /// Dynamic shared memory that blocks may ask for.
    shared_bytes: Arc<AtomicUsize>,
}

// SAFETY: function handles may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
const MAXIMUM_DYNAMIC_SHARED: c_int = 8;
/// What a block may have without asking.
const ORDINARY_SHARED: usize = 48 << 10;
/// Arguments up to this many need no memory of their own at a launch.
const FEW_ARGUMENTS: usize = 32;

impl Kernel {
    /// Issues the kernel on the context's stream.
    ///
    /// # Safety
    /// The arguments must be those that the kernel declares, and every address must be valid for what the kernel does
    /// with it.
    pub unsafe fn launch(&self, launch: Launch, arguments: &[Argument]) -> Result<()> {
        self.context.bind()?;
        let driver = self.context.driver();
        if launch.shared_bytes > self.shared_bytes.load(Ordering::Relaxed) {
            let bytes = c_int::try_from(launch.shared_bytes).unwrap_or(c_int::MAX);
            // SAFETY: the handle is alive.
            driver.check("cuFuncSetAttribute", unsafe {
                (driver.function_set_attribute)(self.handle, MAXIMUM_DYNAMIC_SHARED, bytes)
            })?;
            self.shared_bytes.store(launch.shared_bytes, Ordering::Relaxed);
        }
        let mut few = [std::ptr::null_mut(); FEW_ARGUMENTS];
        let mut many = Vec::new();
        let pointers: &mut [*mut c_void] = if arguments.len() <= FEW_ARGUMENTS {
            &mut few
        } else {
            many.resize(arguments.len(), std::ptr::null_mut());
            &mut many
        };
        for (pointer, argument) in pointers.iter_mut().zip(arguments) {
            *pointer = match argument {
                Argument::Address(value) => std::ptr::from_ref(value).cast_mut().cast(),
                Argument::I32(value) => std::ptr::from_ref(value).cast_mut().cast(),
                Argument::I64(value) => std::ptr::from_ref(value).cast_mut().cast(),
                Argument::F32(value) => std::ptr::from_ref(value).cast_mut().cast(),
                Argument::F64(value) => std::ptr::from_ref(value).cast_mut().cast(),
                Argument::TooLarge(size) => return Err(Error::BeyondInt(*size)),
            };
        }
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let shared = u32::try_from(launch.shared_bytes).unwrap_or(u32::MAX);
        // SAFETY: the caller vouches for the arguments, which the driver copies before it returns.
        driver.check("cuLaunchKernel", unsafe {
            (driver.launch)(
                self.handle,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared,
                self.context.stream(),
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_an_int_does_not_count_are_not_cut() {
        assert!(matches!(Argument::from((1_usize << 31) - 1), Argument::I32(i32::MAX)));
        assert!(matches!(Argument::from(1_usize << 31), Argument::TooLarge(0x8000_0000)));
    }
}
