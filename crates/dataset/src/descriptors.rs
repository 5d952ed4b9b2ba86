//! Open files are few: a process may have a limited number of them. The limit is raised as far as the system lets us,
//! what could be many (the archives of a dataset) keeps to a share of it, and some are held back for files that must
//! be written (a checkpoint) even where none is free.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Archives that are kept open at most.
const MOST_ARCHIVES: u64 = 512;
/// Descriptors held back for writing: a file, its folder, and a lock or list beside it.
const HELD_BACK: usize = 4;

/// The most files this process may open now, where there is such a limit.
#[cfg(unix)]
fn limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn limit() -> Option<u64> {
    None
}

/// Raises the soft limit of open files to the hard one (65,536 at most), and holds some descriptors back. To be called
/// once, when the program starts; without it everything works, with less room.
pub fn prepare() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let found = getrlimit(Resource::Nofile);
        let wanted = found.maximum.unwrap_or(u64::MAX).min(1 << 16);
        if found.current.is_some_and(|current| current < wanted) {
            // Where it is not allowed the limit stays as it is.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: found.maximum });
        }
    }
    hold_back(&mut reserve());
}

static RESERVE: Mutex<Vec<File>> = Mutex::new(Vec::new());

fn reserve() -> MutexGuard<'static, Vec<File>> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn hold_back(reserve: &mut Vec<File>) {
    while reserve.len() < HELD_BACK {
        let Ok(file) = File::open("/dev/null") else { break };
        reserve.push(file);
    }
}

#[cfg(not(unix))]
fn hold_back(_: &mut Vec<File>) {}

/// Whether nothing could be opened because too many files are open (EMFILE, ENFILE).
fn is_exhausted(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// Runs `work`, which opens files that must be written; where none can be opened, again with those held back.
pub(crate) fn with_reserve<T>(mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    match work() {
        Err(error) if is_exhausted(&error) => {
            let mut reserve = reserve();
            reserve.clear();
            let result = work();
            hold_back(&mut reserve);
            result
        }
        result => result,
    }
}

/// Files that are opened when they are needed and stay open, the most recently used of them.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    clock: u64,
    /// By number: when it was last used, and the file.
    files: HashMap<u32, (u64, Arc<File>)>,
}

impl OpenFiles {
    /// Nothing is open yet. A quarter of what may be opened is for these files.
    pub(crate) fn new() -> Self {
        let most = limit().map_or(MOST_ARCHIVES, |limit| (limit / 4).clamp(1, MOST_ARCHIVES));
        Self { most: most as usize, kept: Mutex::default() }
    }

    /// File `number`, which is at `path`.
    pub(crate) fn get(&self, number: u32, path: &Path) -> io::Result<Arc<File>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        if let Some((used, file)) = kept.files.get_mut(&number) {
            *used = now;
            return Ok(Arc::clone(file));
        }
        if kept.files.len() >= self.most
            && let Some(oldest) = kept.files.iter().min_by_key(|(_, (used, _))| *used).map(|(n, _)| *n)
        {
            kept.files.remove(&oldest);
        }
        let file = File::open(path).or_else(|error| {
            if is_exhausted(&error) && !kept.files.is_empty() {
                kept.files.clear();
                return File::open(path);
            }
            Err(error)
        })?;
        let file = Arc::new(file);
        kept.files.insert(number, (now, Arc::clone(&file)));
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_stay_open_and_all_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |number: u32| folder.path().join(number.to_string());
        (0..20).for_each(|number| std::fs::write(path(number), number.to_string()).unwrap());
        let files = OpenFiles { most: 3, kept: Mutex::default() };
        let open = || {
            let mut open: Vec<u32> = files.kept.lock().unwrap().files.keys().copied().collect();
            open.sort_unstable();
            open
        };
        for number in 0..20 {
            let file = files.get(number, &path(number)).unwrap();
            assert_eq!(io::read_to_string(&*file).unwrap(), number.to_string());
        }
        assert_eq!(open(), [17, 18, 19]);
        files.get(17, &path(17)).unwrap();
        files.get(0, &path(0)).unwrap();
        assert_eq!(open(), [0, 17, 19], "the one not used for longest was closed");
    }

    #[cfg(unix)]
    #[test]
    fn what_must_be_written_is_tried_again_with_what_was_held_back() {
        prepare();
        let mut calls = 0;
        let written = with_reserve(|| {
            calls += 1;
            if calls == 1 { Err(io::Error::from_raw_os_error(24)) } else { Ok(7) }
        });
        assert_eq!((written.unwrap(), calls), (7, 2));
        assert_eq!(reserve().len(), HELD_BACK);
        assert!(with_reserve(|| Err::<(), _>(io::Error::from_raw_os_error(2))).is_err());
    }
}
