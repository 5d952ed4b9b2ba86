//! Sums and copies between the GPUs of several processes, by NCCL, on streams of a [`Context`]: they can be captured in a
//! graph like any kernel.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::driver::{Handle, functions};
use crate::libraries::{self, Wanted};
use crate::{Context, Error, Event, Result, View};

/// What the first process makes and the others must be told, so that they find each other.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct UniqueId([u8; UniqueId::BYTES]);

impl UniqueId {
    /// Its length.
    pub const BYTES: usize = 128;

    /// A new one.
    pub fn new() -> Result<Self> {
        let api = api()?;
        let mut id = Self([0; Self::BYTES]);
        // SAFETY: writes 128 bytes.
        api.check("ncclGetUniqueId", unsafe { (api.unique_id)(&mut id) })?;
        Ok(id)
    }

    /// From its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for UniqueId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("UniqueId")
    }
}

functions! {
    /// The functions of NCCL that we call.
    Api {
        version = "ncclGetVersion": fn(*mut c_int) -> c_int;
        unique_id = "ncclGetUniqueId": fn(*mut UniqueId) -> c_int;
        init_rank = "ncclCommInitRank": fn(*mut Handle, c_int, UniqueId, c_int) -> c_int;
        async_error = "ncclCommGetAsyncError": fn(Handle, *mut c_int) -> c_int;
        error_string = "ncclGetErrorString": fn(c_int) -> *const c_char;
        last_error = "ncclGetLastError": fn(Handle) -> *const c_char;
        group_start = "ncclGroupStart": fn() -> c_int;
        group_end = "ncclGroupEnd": fn() -> c_int;
        all_reduce = "ncclAllReduce": fn(*const c_void, *mut c_void, usize, c_int, c_int, Handle, Handle) -> c_int;
        all_gather = "ncclAllGather": fn(*const c_void, *mut c_void, usize, c_int, Handle, Handle) -> c_int;
        broadcast = "ncclBroadcast": fn(*const c_void, *mut c_void, usize, c_int, c_int, Handle, Handle) -> c_int;
    }
}

/// ncclUint8
const BYTE: c_int = 1;
/// ncclFloat32
const FLOAT: c_int = 7;
/// ncclFloat64
const DOUBLE: c_int = 8;
/// ncclSum
const SUM: c_int = 0;
/// ncclInProgress
const IN_PROGRESS: c_int = 7;

fn api() -> Result<&'static Api> {
    static API: OnceLock<Result<Api>> = OnceLock::new();
    API.get_or_init(|| Api::from_library(libraries::load(Wanted::Nccl)?)).as_ref().map_err(Clone::clone)
}

/// NCCL's version, 22809 for 2.28.9.
pub(crate) fn library_version() -> Option<usize> {
    let api = api().ok()?;
    let mut version = 0;
    // SAFETY: writes one number.
    api.check("ncclGetVersion", unsafe { (api.version)(&mut version) }).ok()?;
    usize::try_from(version).ok()
}

impl Api {
    fn check(&self, call: &'static str, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        let text = |pointer: *const c_char| {
            // SAFETY: NCCL gives pointers to strings that stay, or null.
            (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
        };
        // SAFETY: a status has a text; without a communicator the last error of this thread is told.
        let (name, last) =
            unsafe { (text((self.error_string)(status)), text((self.last_error)(std::ptr::null_mut()))) };
        let mut message = name.unwrap_or_else(|| format!("status {status}"));
        if let Some(last) = last.filter(|last| !last.trim().is_empty()) {
            message = format!("{message} ({})", last.trim().replace('\n', "; "));
        }
        Err(Error::Nccl { call, message })
    }
}

/// The numbers of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// float32.
    F32,
    /// float64.
    F64,
}

/// One process among those that work together, on a stream of its own or on its context's.
#[derive(Debug)]
pub struct Communicator {
    context: Context,
    api: &'static Api,
    handle: Handle,
    /// Its own stream; none where it works on the context's.
    beside: Option<Handle>,
    /// Whether something was begun beside the context's stream that [`Self::join`] has not joined.
    begun: AtomicBool,
}

// SAFETY: NCCL's communicators may be used from any thread, one at a time; streams from any thread once the context is
// current there, which every call sees to. Only the check for errors comes from a second thread, which NCCL allows.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// Rank `rank` of `ranks`; waits for the others. With `beside` it has a stream of its own. Lives as long as the
    /// process: graphs refer to it.
    pub fn new(context: &Context, id: UniqueId, rank: usize, ranks: usize, beside: bool) -> Result<Self> {
        context.bind()?;
        let api = api()?;
        let number = |value: usize| c_int::try_from(value).unwrap_or(c_int::MAX);
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle; the context is current.
        api.check("ncclCommInitRank", unsafe {
            (api.init_rank)(&mut handle, number(ranks), id, number(rank))
        })?;
        let beside = beside.then(|| context.create_stream()).transpose()?;
        Ok(Self { context: context.clone(), api, handle, beside, begun: AtomicBool::new(false) })
    }

    fn stream(&self) -> Handle {
        self.beside.unwrap_or_else(|| self.context.stream())
    }

    /// What went wrong since the communicator was made, if anything: another process ended, a link is down.
    pub fn failure(&self) -> Option<Error> {
        let mut status = 0;
        // SAFETY: writes one status.
        let asked = unsafe { (self.api.async_error)(self.handle, &mut status) };
        [asked, status]
            .into_iter()
            .filter(|status| *status != IN_PROGRESS)
            .find_map(|status| self.api.check("work between ranks", status).err())
    }

    /// Adds `memory` up over all processes, in place. Beside the context's stream it comes after all work issued so far.
    ///
    /// # Safety
    /// `memory` must be alive until the stream gets there, and nothing else may use it meanwhile.
    pub unsafe fn all_reduce(&self, memory: View, number: Number) -> Result<()> {
        self.context.bind()?;
        if let Some(stream) = self.beside {
            let event = Event::untimed(&self.context)?;
            event.record()?;
            event.hold(stream)?;
            self.begun.store(true, Ordering::Relaxed);
        }
        let (size, code) = match number {
            Number::F32 => (4, FLOAT),
            Number::F64 => (8, DOUBLE),
        };
        let (from, to) = (memory.address as *const c_void, memory.address as *mut c_void);
        // SAFETY: the caller vouches for the memory.
        self.api.check("ncclAllReduce", unsafe {
            (self.api.all_reduce)(from, to, memory.bytes / size, code, SUM, self.handle, self.stream())
        })
    }

    /// Work issued on the context's stream from now on comes after what was begun beside it.
    pub fn join(&self) -> Result<()> {
        if let (Some(stream), true) = (self.beside, self.begun.swap(false, Ordering::Relaxed)) {
            let event = Event::untimed(&self.context)?;
            event.record_on(stream)?;
            event.hold(self.context.stream())?;
        }
        Ok(())
    }

    /// For each of `parts`: what all processes have in the first becomes the second, in the order of ranks.
    ///
    /// # Safety
    /// As for [`Self::all_reduce`]; the second must be as many times as long as there are ranks.
    pub unsafe fn all_gather(&self, parts: &[(View, View)]) -> Result<()> {
        self.context.bind()?;
        // SAFETY: takes nothing.
        self.api.check("ncclGroupStart", unsafe { (self.api.group_start)() })?;
        let mut done = Ok(());
        for (own, all) in parts {
            let (from, to) = (own.address as *const c_void, all.address as *mut c_void);
            // SAFETY: the caller vouches for the memory.
            let status =
                unsafe { (self.api.all_gather)(from, to, own.bytes, BYTE, self.handle, self.stream()) };
            done = done.and(self.api.check("ncclAllGather", status));
        }
        // SAFETY: ends what was started above.
        let ended = self.api.check("ncclGroupEnd", unsafe { (self.api.group_end)() });
        done.and(ended)
    }

    /// Overwrites `memory` by that of the first process.
    ///
    /// # Safety
    /// As for [`Self::all_reduce`].
    pub unsafe fn broadcast(&self, memory: View) -> Result<()> {
        self.context.bind()?;
        let (from, to) = (memory.address as *const c_void, memory.address as *mut c_void);
        // SAFETY: the caller vouches for the memory.
        self.api.check("ncclBroadcast", unsafe {
            (self.api.broadcast)(from, to, memory.bytes, BYTE, 0, self.handle, self.stream())
        })
    }
}
