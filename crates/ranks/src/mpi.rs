//! Ranks that meet by MPI: tensors on the host, and what hosts agree on.
//!
//! Every call of MPI is made under one lock, and none of them blocks: what takes long is begun and asked about again and
//! again, so that the thread that watches gets its turn and a rank that is gone is noticed. Sums are taken in the order
//! of ranks, whatever MPI would do, so that they are the same bits every time.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::{Collective, Memory, Source, Sum, add_in_order};
use mpi::ffi;

use crate::launch::Launch;
use crate::watch::Watch;

/// Most bytes that one call of MPI, which counts in `int`, is given for a rank.
const MOST: usize = 1 << 28;
/// The tag of the words by which ranks say that they are there.
const ALIVE: c_int = 7;

/// This process among those of MPI.
#[derive(Debug)]
pub(crate) struct Mpi {
    rank: usize,
    ranks: usize,
    /// One call at a time.
    lock: Arc<Mutex<()>>,
    watch: Arc<Watch>,
    /// After an exchange that failed nothing may touch MPI any more: it may still write to memory that is gone.
    broken: Arc<AtomicBool>,
    /// For the words of ranks that are there.
    words: Comm,
}

/// A communicator, which may be used from any thread.
#[derive(Clone, Copy, Debug)]
struct Comm(ffi::MPI_Comm);

// SAFETY: all calls are made under one lock, which MPI_THREAD_SERIALIZED allows from any thread.
unsafe impl Send for Comm {}
// SAFETY: as above.
unsafe impl Sync for Comm {}

/// The library's own name and version.
pub(crate) fn library_version() -> String {
    let mut text = vec![0_u8; 8192];
    let mut length = 0;
    // SAFETY: may be called before MPI_Init; writes at most MPI_MAX_LIBRARY_VERSION_STRING bytes, which is less.
    unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &mut length) };
    text.truncate(usize::try_from(length).unwrap_or(0));
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = text.trim_end_matches('\0').lines().next().unwrap_or_default();
    // Open MPI goes on with who packaged it.
    text.split(", package").next().unwrap_or(text).trim().to_owned()
}

fn locked(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn int(value: usize) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

impl Mpi {
    /// Starts MPI, which must see as many processes as the launcher started.
    pub(crate) fn start(launch: &Launch, lost: fn(&str)) -> crate::Result<Self> {
        let (mut rank, mut ranks, mut provided) = (0, 0, 0);
        let mut words = Comm(world());
        // SAFETY: called once, before anything else of MPI; every call writes one number or handle.
        unsafe {
            let null = std::ptr::null_mut();
            ffi::MPI_Init_thread(null, null.cast(), ffi::RSMPI_THREAD_SERIALIZED, &mut provided);
            ffi::MPI_Comm_set_errhandler(world(), ffi::RSMPI_ERRORS_RETURN);
            ffi::MPI_Comm_rank(world(), &mut rank);
            ffi::MPI_Comm_size(world(), &mut ranks);
            ffi::MPI_Comm_dup(world(), &mut words.0);
        }
        let (rank, ranks) = (usize::try_from(rank).unwrap_or(0), usize::try_from(ranks).unwrap_or(1));
        if ranks != launch.ranks {
            return Err(crate::Error::Here(format!(
                "{} processes were started together, but MPI sees {ranks}: start them by the mpirun of {}, or by \
                 `srun --mpi=pmix`",
                launch.ranks,
                library_version()
            )));
        }
        // SAFETY: reads a constant of the library.
        if provided < unsafe { ffi::RSMPI_THREAD_SERIALIZED } {
            return Err(crate::Error::Here(format!("{} does not allow two threads", library_version())));
        }
        let mpi = Self {
            rank,
            ranks,
            lock: Arc::default(),
            watch: Watch::new(rank, ranks, lost),
            broken: Arc::default(),
            words,
        };
        mpi.start_watching();
        Ok(mpi)
    }

    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// A thread that says that this rank is there, and hears the others.
    fn start_watching(&self) {
        let (lock, broken, watch) =
            (Arc::clone(&self.lock), Arc::clone(&self.broken), Arc::clone(&self.watch));
        let (rank, ranks, words) = (self.rank, self.ranks, self.words);
        std::thread::spawn(move || {
            let mut sent: Vec<Option<Word>> = (0..ranks).map(|_| None).collect();
            watch.clone().keep(|| {
                let _turn = locked(&lock);
                if broken.load(Ordering::Relaxed) || watch.has_ended() {
                    return;
                }
                for (other, slot) in sent.iter_mut().enumerate().filter(|(other, _)| *other != rank) {
                    // The word before must have gone: nothing is piled up for a rank that does not listen.
                    if slot.as_mut().is_none_or(Word::is_gone) {
                        *slot = Some(Word::send(words, other));
                    }
                }
                while let Some(from) = receive(words) {
                    watch.hear(from);
                }
            });
            // A word that has not gone may still be read by the library.
            std::mem::forget(sent);
        });
    }

    /// Begins something and asks about it until it is done.
    fn complete(&self, begin: impl FnOnce(&mut ffi::MPI_Request) -> c_int) -> engine::Result<()> {
        let mut request = null_request();
        let failed = |code: c_int| {
            self.broken.store(true, Ordering::Relaxed);
            engine::Error::Ranks(format!("MPI failed with error {code}: a rank may have ended"))
        };
        {
            let _turn = locked(&self.lock);
            self.watch.check()?;
            let code = begin(&mut request);
            if code != 0 {
                return Err(failed(code));
            }
        }
        let (start, mut asked) = (Instant::now(), 0_u32);
        loop {
            let mut done = 0;
            let code = {
                let _turn = locked(&self.lock);
                // SAFETY: the request was begun above.
                unsafe { ffi::MPI_Test(&mut request, &mut done, ffi::RSMPI_STATUS_IGNORE) }
            };
            if code != 0 {
                return Err(failed(code));
            }
            if done != 0 {
                return Ok(());
            }
            if let Err(lost) = self.watch.check() {
                self.broken.store(true, Ordering::Relaxed);
                return Err(lost);
            }
            asked += 1;
            if asked < 200 {
                std::hint::spin_loop();
            } else if start.elapsed() < Duration::from_millis(5) {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    fn gather_bytes(&self, own: &[u8], all: &mut [u8]) -> engine::Result<()> {
        let size = own.len();
        if all.len() != size * self.ranks {
            return Err(engine::Error::Ranks("ranks gathered parts of different sizes".to_owned()));
        }
        if size <= MOST {
            let (from, to) = (own.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast::<c_void>());
            // SAFETY: the buffers are as long as is said, and live until it is complete.
            return self.complete(|request| unsafe {
                ffi::MPI_Iallgather(from, int(size), byte(), to, int(size), byte(), world(), request)
            });
        }
        let mut part = vec![0; MOST * self.ranks];
        for start in (0..size).step_by(MOST) {
            let length = MOST.min(size - start);
            self.gather_bytes(&own[start..start + length], &mut part[..length * self.ranks])?;
            for (rank, part) in part[..length * self.ranks].chunks_exact(length).enumerate() {
                all[rank * size + start..][..length].copy_from_slice(part);
            }
        }
        Ok(())
    }

    /// Adds `bytes` up: every rank adds one part of all ranks, in their order, and the parts are gathered.
    fn sum(&self, kind: Sum, bytes: &mut [u8]) -> engine::Result<()> {
        let number = if kind == Sum::F32 { 4 } else { 8 };
        let part = (bytes.len() / number).div_ceil(self.ranks) * number;
        let mut sent = bytes.to_vec();
        sent.resize(part * self.ranks, 0);
        let mut received = vec![0; part * self.ranks];
        let (from, to) = (sent.as_ptr().cast::<c_void>(), received.as_mut_ptr().cast::<c_void>());
        // SAFETY: the buffers are as long as is said, and live until it is complete.
        self.complete(|request| unsafe {
            ffi::MPI_Ialltoall(from, int(part), byte(), to, int(part), byte(), world(), request)
        })?;
        let mut own = vec![0; part];
        add_in_order(kind, received.chunks_exact(part), &mut own)?;
        self.gather_bytes(&own, &mut sent)?;
        bytes.copy_from_slice(&sent[..bytes.len()]);
        Ok(())
    }

    /// Ends MPI, after all ranks have met for the last time.
    pub(crate) fn finish(&self) {
        self.watch.end();
        if self.broken.swap(true, Ordering::Relaxed) {
            return;
        }
        let _turn = locked(&self.lock);
        // SAFETY: the last call of MPI.
        unsafe { ffi::MPI_Finalize() };
    }
}

/// Sums below so many bytes go to every rank whole, which is one exchange and not two.
const SMALL: usize = 1 << 16;

fn host(memory: Memory<'_>) -> engine::Result<&mut [u8]> {
    match memory {
        Memory::Host(bytes) => Ok(bytes),
        Memory::Device(_) => Err(engine::Error::Ranks("MPI exchanges no memory of a GPU".to_owned())),
    }
}

impl Collective for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn all_reduce_sum(&self, kind: Sum, memory: Memory<'_>) -> engine::Result<()> {
        let bytes = host(memory)?;
        if bytes.is_empty() {
            return Ok(());
        }
        if bytes.len() <= SMALL {
            let mut all = vec![0; bytes.len() * self.ranks];
            self.gather_bytes(bytes, &mut all)?;
            return add_in_order(kind, all.chunks_exact(bytes.len()), bytes);
        }
        bytes.chunks_mut(MOST).try_for_each(|chunk| self.sum(kind, chunk))
    }

    fn all_gather(&self, parts: &mut [(Source<'_>, Memory<'_>)]) -> engine::Result<()> {
        for part in parts {
            match part {
                (Source::Host(own), Memory::Host(all)) => self.gather_bytes(own, all)?,
                _ => return Err(engine::Error::Ranks("MPI exchanges no memory of a GPU".to_owned())),
            }
        }
        Ok(())
    }

    fn broadcast(&self, memory: Memory<'_>) -> engine::Result<()> {
        host(memory)?.chunks_mut(MOST).try_for_each(|chunk| {
            let (data, length) = (chunk.as_mut_ptr().cast::<c_void>(), int(chunk.len()));
            // SAFETY: the buffer is as long as is said, and lives until it is complete.
            self.complete(|request| unsafe { ffi::MPI_Ibcast(data, length, byte(), 0, world(), request) })
        })
    }

    fn exchange(&self, own: &[u8]) -> engine::Result<Vec<Vec<u8>>> {
        // Lengths first; most often they are equal.
        let mut lengths = vec![0; 8 * self.ranks];
        self.gather_bytes(&(own.len() as u64).to_ne_bytes(), &mut lengths)?;
        let lengths: Vec<usize> =
            lengths.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes) as usize).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(vec![Vec::new(); self.ranks]);
        }
        let mut padded = own.to_vec();
        padded.resize(longest, 0);
        let mut all = vec![0; longest * self.ranks];
        self.gather_bytes(&padded, &mut all)?;
        Ok(all.chunks_exact(longest).zip(&lengths).map(|(part, &length)| part[..length].to_vec()).collect())
    }
}

/// A word on its way.
struct Word {
    request: ffi::MPI_Request,
    /// What the library reads.
    _text: Box<u8>,
}

// SAFETY: used under the lock.
unsafe impl Send for Word {}

impl Word {
    fn send(words: Comm, to: usize) -> Self {
        let mut word = Self { request: null_request(), _text: Box::new(1) };
        let text = std::ptr::from_ref::<u8>(&word._text).cast::<c_void>();
        // SAFETY: one byte, which lives as long as the request. A failure shows as silence.
        unsafe { ffi::MPI_Isend(text, 1, byte(), int(to), ALIVE, words.0, &mut word.request) };
        word
    }

    fn is_gone(&mut self) -> bool {
        let mut done = 0;
        // SAFETY: the request is this word's.
        let code = unsafe { ffi::MPI_Test(&mut self.request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
        code == 0 && done != 0
    }
}

/// Takes a word that has arrived: whose it is.
fn receive(words: Comm) -> Option<usize> {
    let (mut found, mut text) = (0, 0_u8);
    // SAFETY: a status is plain data that MPI writes; one byte is received, and one was sent.
    unsafe {
        let mut status: ffi::MPI_Status = std::mem::zeroed();
        let code = ffi::MPI_Iprobe(ffi::RSMPI_ANY_SOURCE, ALIVE, words.0, &mut found, &mut status);
        if code != 0 || found == 0 {
            return None;
        }
        let to = std::ptr::from_mut::<u8>(&mut text).cast::<c_void>();
        let code = ffi::MPI_Recv(to, 1, byte(), status.MPI_SOURCE, ALIVE, words.0, ffi::RSMPI_STATUS_IGNORE);
        (code == 0).then(|| usize::try_from(status.MPI_SOURCE).unwrap_or(0))
    }
}

fn world() -> ffi::MPI_Comm {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_COMM_WORLD }
}

fn byte() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_UINT8_T }
}

fn null_request() -> ffi::MPI_Request {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_REQUEST_NULL }
}
