//! The functions of the CUDA driver that we call.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::libraries::{self, Wanted};
use crate::{Error, Result};

/// Declares a struct of function pointers and how to fill it from a loaded library.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($name:ident = $symbol:literal : fn($($argument:ty),* $(,)?) -> $result:ty;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $table {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $table {
            /// Looks every function up.
            pub(crate) fn from_library(library: &$crate::libraries::Loaded) -> $crate::Result<Self> {
                // SAFETY: the types are those of NVIDIA's headers.
                unsafe { Ok(Self { $($name: library.function(concat!($symbol, "\0"))?,)* }) }
            }
        }
    };
}
pub(crate) use functions;

pub(crate) type DevicePointer = u64;
pub(crate) type Handle = *mut c_void;

functions! {
    /// The driver.
    Driver {
        init = "cuInit": fn(c_uint) -> c_int;
        version = "cuDriverGetVersion": fn(*mut c_int) -> c_int;
        error_name = "cuGetErrorName": fn(c_int, *mut *const c_char) -> c_int;
        error_string = "cuGetErrorString": fn(c_int, *mut *const c_char) -> c_int;
        device_count = "cuDeviceGetCount": fn(*mut c_int) -> c_int;
        device_get = "cuDeviceGet": fn(*mut c_int, c_int) -> c_int;
        device_name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int) -> c_int;
        device_attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int) -> c_int;
        device_memory = "cuDeviceTotalMem_v2": fn(*mut usize, c_int) -> c_int;
        context_retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int) -> c_int;
        context_release = "cuDevicePrimaryCtxRelease_v2": fn(c_int) -> c_int;
        context_set = "cuCtxSetCurrent": fn(Handle) -> c_int;
        memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize) -> c_int;
        memory_allocate = "cuMemAlloc_v2": fn(*mut DevicePointer, usize) -> c_int;
        memory_free = "cuMemFree_v2": fn(DevicePointer) -> c_int;
        host_allocate = "cuMemHostAlloc": fn(*mut *mut c_void, usize, c_uint) -> c_int;
        host_free = "cuMemFreeHost": fn(*mut c_void) -> c_int;
        copy_to_device = "cuMemcpyHtoDAsync_v2": fn(DevicePointer, *const c_void, usize, Handle) -> c_int;
        copy_to_host = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, DevicePointer, usize, Handle) -> c_int;
        copy_on_device = "cuMemcpyDtoDAsync_v2": fn(DevicePointer, DevicePointer, usize, Handle) -> c_int;
        set_bytes = "cuMemsetD8Async": fn(DevicePointer, u8, usize, Handle) -> c_int;
        stream_create = "cuStreamCreate": fn(*mut Handle, c_uint) -> c_int;
        stream_destroy = "cuStreamDestroy_v2": fn(Handle) -> c_int;
        stream_synchronize = "cuStreamSynchronize": fn(Handle) -> c_int;
        event_create = "cuEventCreate": fn(*mut Handle, c_uint) -> c_int;
        event_destroy = "cuEventDestroy_v2": fn(Handle) -> c_int;
        event_record = "cuEventRecord": fn(Handle, Handle) -> c_int;
        event_synchronize = "cuEventSynchronize": fn(Handle) -> c_int;
        event_query = "cuEventQuery": fn(Handle) -> c_int;
        set_words = "cuMemsetD32Async": fn(DevicePointer, c_uint, usize, Handle) -> c_int;
        capture_begin = "cuStreamBeginCapture_v2": fn(Handle, c_int) -> c_int;
        capture_end = "cuStreamEndCapture": fn(Handle, *mut Handle) -> c_int;
        graph_instantiate = "cuGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64) -> c_int;
        graph_launch = "cuGraphLaunch": fn(Handle, Handle) -> c_int;
        graph_instance_destroy = "cuGraphExecDestroy": fn(Handle) -> c_int;
        graph_destroy = "cuGraphDestroy": fn(Handle) -> c_int;
        stream_wait_event = "cuStreamWaitEvent": fn(Handle, Handle, c_uint) -> c_int;
        event_elapsed = "cuEventElapsedTime": fn(*mut f32, Handle, Handle) -> c_int;
        module_load = "cuModuleLoadData": fn(*mut Handle, *const c_void) -> c_int;
        module_function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char) -> c_int;
        function_set_attribute = "cuFuncSetAttribute": fn(Handle, c_int, c_int) -> c_int;
        launch = "cuLaunchKernel": fn(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        ) -> c_int;
    }
}

/// Out of memory.
pub(crate) const OUT_OF_MEMORY: c_int = 2;
/// What was asked about is still under way.
pub(crate) const NOT_READY: c_int = 600;

impl Driver {
    /// The driver, loaded and initialised on the first call.
    pub(crate) fn get() -> Result<&'static Self> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        DRIVER
            .get_or_init(|| {
                let driver = Self::from_library(libraries::load(Wanted::Driver)?)?;
                // SAFETY: cuInit takes no pointers.
                driver.check("cuInit", unsafe { (driver.init)(0) })?;
                Ok(driver)
            })
            .as_ref()
            .map_err(Clone::clone)
    }

    /// Turns a status into a result.
    pub(crate) fn check(&self, call: &'static str, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let text = |function: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: the driver writes a pointer to a constant string, or leaves it null.
            unsafe {
                function(status, &mut text);
                if text.is_null() {
                    format!("error {status}")
                } else {
                    CStr::from_ptr(text).to_string_lossy().into_owned()
                }
            }
        };
        Err(Error::Driver { call, name: text(self.error_name), description: text(self.error_string) })
    }

    /// The version of CUDA that the driver supports, as 1000 * major + 10 * minor.
    pub(crate) fn version_number(&self) -> Result<u32> {
        let mut version = 0;
        // SAFETY: writes one number.
        self.check("cuDriverGetVersion", unsafe { (self.version)(&mut version) })?;
        Ok(u32::try_from(version).unwrap_or(0))
    }
}

/// The major version of CUDA that the installed driver supports, if there is one.
pub(crate) fn major_version() -> Option<u32> {
    Driver::get().and_then(Driver::version_number).ok().map(|version| version / 1000)
}
