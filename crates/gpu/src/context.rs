//! A device and what a program keeps for it: one stream, the memory pool, loaded kernels, library handles.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Arc, Mutex, OnceLock};

use crate::convolution::Convolutions;
use crate::driver::{Driver, Handle};
use crate::host::HostPool;
use crate::kernel::{Kernel, Module};
use crate::matmul::Matmuls;
use crate::memory::Pool;
use crate::nvrtc::{Architecture, Compiler, KernelSource};
use crate::profile::Profile;
use crate::{Error, Result};

/// What a device is.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DeviceProperties {
    /// Its number, as in `cuda:0`.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Compute capability: what it can execute.
    pub architecture: Architecture,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// Bytes of second-level cache.
    pub l2_bytes: usize,
    /// Shared memory that one block may ask for, in bytes.
    pub shared_bytes_per_block: usize,
}

impl DeviceProperties {
    /// The reason why this device cannot be used, if it cannot.
    pub fn refusal(&self) -> Option<Error> {
        let Architecture { major, minor } = self.architecture;
        (major < 8).then(|| Error::TooOld { name: self.name.clone(), major, minor })
    }
}

/// All CUDA devices of this machine, those that are too old included.
pub fn devices() -> Result<Vec<DeviceProperties>> {
    let driver = Driver::get()?;
    let mut count = 0;
    // SAFETY: writes one number.
    driver.check("cuDeviceGetCount", unsafe { (driver.device_count)(&mut count) })?;
    (0..count).map(|index| properties(driver, index)).collect()
}

fn properties(driver: &Driver, index: c_int) -> Result<DeviceProperties> {
    let mut device = 0;
    let mut name: [c_char; 256] = [0; 256];
    let mut memory_bytes = 0;
    // SAFETY: each call writes into a variable of the size it expects.
    unsafe {
        driver.check("cuDeviceGet", (driver.device_get)(&mut device, index))?;
        driver.check("cuDeviceGetName", (driver.device_name)(name.as_mut_ptr(), 255, device))?;
        driver.check("cuDeviceTotalMem", (driver.device_memory)(&mut memory_bytes, device))?;
    }
    let attribute = |number: c_int| -> Result<u32> {
        let mut value = 0;
        // SAFETY: writes one number.
        driver.check("cuDeviceGetAttribute", unsafe {
            (driver.device_attribute)(&mut value, number, device)
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    // SAFETY: the driver ends the name with a zero byte; the last byte of the array is zero anyway.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(DeviceProperties {
        index: usize::try_from(index).unwrap_or(0),
        name,
        architecture: Architecture { major: attribute(75)?, minor: attribute(76)? },
        multiprocessors: attribute(16)?,
        memory_bytes,
        l2_bytes: attribute(38)? as usize,
        shared_bytes_per_block: attribute(97)? as usize,
    })
}

/// A device in use. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    driver: &'static Driver,
    properties: DeviceProperties,
    device: c_int,
    handle: Handle,
    stream: Handle,
    pool: Mutex<Pool>,
    /// For what is allocated inside [`Context::scratch`].
    scratch_pool: Mutex<Pool>,
    host_pool: Mutex<HostPool>,
    profile: Profile,
    modules: Mutex<HashMap<String, Arc<Module>>>,
    convolutions: OnceLock<Result<Convolutions>>,
    matmuls: OnceLock<Result<Matmuls>>,
}

// SAFETY: CUDA's context and stream handles may be used from any thread once the context is made current there, which
// `bind` does; that everything else may be shared is asked of the compiler below.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// All fields of [`Inner`] but its two handles.
const _: () = {
    const fn is_shareable<T: Send + Sync>() {}
    is_shareable::<(&'static Driver, DeviceProperties, c_int, Mutex<Pool>, Mutex<HostPool>)>();
    is_shareable::<(Profile, Mutex<HashMap<String, Arc<Module>>>)>();
    is_shareable::<(OnceLock<Result<Convolutions>>, OnceLock<Result<Matmuls>>)>();
};

thread_local! {
    /// The context that is current on this thread, as far as we set it.
    static CURRENT: Cell<Handle> = const { Cell::new(std::ptr::null_mut()) };
}

impl Context {
    /// Takes device `index` into use.
    pub fn new(index: usize) -> Result<Self> {
        let driver = Driver::get()?;
        let all = devices()?;
        let properties = all.get(index).cloned().ok_or(Error::NoDevice { index, count: all.len() })?;
        if let Some(refusal) = properties.refusal() {
            return Err(refusal);
        }
        let mut device = 0;
        let mut handle = std::ptr::null_mut();
        let mut stream = std::ptr::null_mut();
        // SAFETY: each call writes one handle; the index was checked.
        unsafe {
            let number = c_int::try_from(index).unwrap_or(c_int::MAX);
            driver.check("cuDeviceGet", (driver.device_get)(&mut device, number))?;
            driver.check("cuDevicePrimaryCtxRetain", (driver.context_retain)(&mut handle, device))?;
            driver.check("cuCtxSetCurrent", (driver.context_set)(handle))?;
            CURRENT.set(handle);
            driver.check("cuStreamCreate", (driver.stream_create)(&mut stream, 1))?; // 1: not tied to the default stream
        }
        Ok(Self(Arc::new(Inner {
            driver,
            properties,
            device,
            handle,
            stream,
            pool: Mutex::default(),
            scratch_pool: Mutex::default(),
            host_pool: Mutex::default(),
            profile: Profile::default(),
            modules: Mutex::default(),
            convolutions: OnceLock::new(),
            matmuls: OnceLock::new(),
        })))
    }

    /// The same device for work beside this context's: with a stream, memory and kernels of its own. The two streams are
    /// ordered by [`Self::wait_for`] alone.
    pub fn beside(&self) -> Result<Self> {
        Self::new(self.0.properties.index)
    }

    /// What the device is.
    pub fn properties(&self) -> &DeviceProperties {
        &self.0.properties
    }

    /// Waits for all work issued so far, and reports what went wrong in it.
    pub fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the stream is alive.
        self.0
            .driver
            .check("cuStreamSynchronize", unsafe { (self.0.driver.stream_synchronize)(self.0.stream) })
    }

    /// The kernel `name` of `source`, compiled (or read from the cache) and loaded on the first call.
    pub fn kernel(&self, source: &KernelSource, name: &str) -> Result<Kernel> {
        self.module(source)?.kernel(self, name)
    }

    /// The module of `source`, compiled (or read from the cache) and loaded on the first call.
    pub fn module(&self, source: &KernelSource) -> Result<Arc<Module>> {
        let key = source.key();
        let mut modules = self.0.modules.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(module) = modules.get(&key) {
            return Ok(module.clone());
        }
        let image = Compiler::get()?.compile_cached(source, self.0.properties.architecture)?;
        let module = Arc::new(Module::load(self, &image)?);
        modules.insert(key, module.clone());
        Ok(module)
    }

    /// cuDNN's convolutions on this device.
    pub fn convolutions(&self) -> Result<&Convolutions> {
        self.0.convolutions.get_or_init(|| Convolutions::new(self)).as_ref().map_err(Clone::clone)
    }

    /// cuBLASLt's matrix products on this device.
    pub fn matmuls(&self) -> Result<&Matmuls> {
        self.0.matmuls.get_or_init(|| Matmuls::new(self)).as_ref().map_err(Clone::clone)
    }

    /// Makes the device current on this thread.
    pub(crate) fn bind(&self) -> Result<()> {
        if CURRENT.get() != self.0.handle {
            // SAFETY: the context is alive.
            self.0.driver.check("cuCtxSetCurrent", unsafe { (self.0.driver.context_set)(self.0.handle) })?;
            CURRENT.set(self.0.handle);
        }
        Ok(())
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.0.driver
    }

    pub(crate) fn stream(&self) -> Handle {
        self.0.stream
    }

    /// The pool of scratch memory, or of all other.
    pub(crate) fn pool(&self, is_scratch: bool) -> std::sync::MutexGuard<'_, Pool> {
        let pool = if is_scratch { &self.0.scratch_pool } else { &self.0.pool };
        pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn host_pool(&self) -> std::sync::MutexGuard<'_, HostPool> {
        self.0.host_pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Another stream of this device, for copies beside the work.
    pub(crate) fn create_stream(&self) -> Result<Handle> {
        self.bind()?;
        let mut stream = std::ptr::null_mut();
        // SAFETY: writes one handle. 1: not tied to the default stream.
        self.0.driver.check("cuStreamCreate", unsafe { (self.0.driver.stream_create)(&mut stream, 1) })?;
        Ok(stream)
    }

    /// Ends a stream that [`Self::create_stream`] made.
    pub(crate) fn destroy_stream(&self, stream: Handle) {
        if self.bind().is_ok() {
            // SAFETY: the stream is alive and not used again; the driver ends it once its work is done.
            unsafe { (self.0.driver.stream_destroy)(stream) };
        }
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.0.profile
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: nothing else holds the context any more; errors at the end of a program help nobody.
        unsafe {
            (self.driver.context_set)(self.handle);
            (self.driver.stream_synchronize)(self.stream);
            self.modules.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
            self.convolutions.take();
            self.matmuls.take();
            for pool in [&mut self.pool, &mut self.scratch_pool] {
                pool.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).release_all(self.driver);
            }
            let host = self.host_pool.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            host.release_all(self.driver);
            (self.driver.stream_destroy)(self.stream);
            (self.driver.context_release)(self.device);
        }
        CURRENT.set(std::ptr::null_mut());
    }
}
