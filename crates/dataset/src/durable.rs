//! Files that are either absent or complete: written elsewhere, synced, then renamed to their final name.
//!
//! [`Staging`] is one process's own folder inside the dataset's work folder. What a killed process leaves there is
//! removed by the next one (the owner holds a lock for as long as it lives), so no trace of an interruption stays.

use std::fs::{self, File, TryLockError};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::descriptors::with_reserve;
use crate::error::{Error, FileError, Result};

/// The ending of unfinished files.
const UNFINISHED: &str = ".tmp";

/// Writes `bytes` to `path` through a file beside it, for single files that people ask for (an image, a report).
pub fn write(path: &Path, bytes: &[u8]) -> std::result::Result<(), FileError> {
    write_with(path, |writer| writer.write_all(bytes))
}

/// Writes what `fill` writes to `path`: to a file beside it (`.NAME.PROCESS.tmp`), which is synced, renamed to `path`,
/// and its folder synced.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> std::result::Result<(), FileError> {
    let name = path.file_name().ok_or_else(|| FileError::content(path, "is not a file name"))?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}{UNFINISHED}", std::process::id()));
    let beside = path.with_file_name(beside);
    let result = (|| {
        let file = created_and_locked(&beside)?;
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        fill(&mut writer)?;
        let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result.map_err(FileError::write::<FileError>(path))?;
    sync_folder_of(path);
    remove_abandoned_beside(path);
    Ok(())
}

/// A new file at `path`, whose lock tells others, for as long as it is open, that it is being written.
fn created_and_locked(path: &Path) -> std::io::Result<File> {
    loop {
        let file = with_reserve(|| File::create(path))?;
        // Whoever took it for abandoned before it was locked has removed it when the lock can be had. Where there are no
        // locks nothing is taken for abandoned.
        if file.lock().is_err() || path.exists() {
            return Ok(file);
        }
    }
}

/// Removes what processes that were killed while they wrote `path` left beside it: those whose lock can be had.
fn remove_abandoned_beside(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return;
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let other = entry.file_name();
        let process = other.to_str().and_then(|other| {
            other.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(UNFINISHED)
        });
        if process.is_some_and(|process| process.bytes().all(|byte| byte.is_ascii_digit()))
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Removes what killed processes left unfinished in `folder`. Only for the owner of the folder.
pub fn remove_unfinished(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = with_reserve(|| File::create(path))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes `path` and its parents.
pub fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(Error::write(path))
}

/// Syncs a folder, so that the names in it survive a power cut. Not every file system can; that is no error.
fn sync_folder(path: &Path) {
    if let Ok(folder) = with_reserve(|| File::open(path)) {
        let _ = folder.sync_all();
    }
}

/// [`sync_folder`] of the folder that `path` is in.
fn sync_folder_of(path: &Path) {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(parent) => sync_folder(parent),
        None => {}
    }
}

/// One process's place for unfinished files.
#[derive(Debug)]
pub struct Staging {
    folder: PathBuf,
    next: AtomicU64,
    /// Held, not used: tells other processes that this folder is alive.
    _lock: File,
}

const LOCK: &str = "lock";

impl Staging {
    /// Makes a new staging folder under `parent`, and clears away those of processes that are no more.
    pub fn create(parent: &Path) -> Result<Self> {
        create_folder(parent)?;
        remove_abandoned(parent);
        loop {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let folder = parent.join(format!("{}-{now}", std::process::id()));
            create_folder(&folder)?;
            if let Some(lock) = lock(&folder)? {
                return Ok(Self { folder, next: AtomicU64::new(0), _lock: lock });
            }
        }
    }

    fn fresh(&self) -> PathBuf {
        self.folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// Publishes one file, replacing what is there.
    pub(crate) fn publish(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.publish_with_then(path, |file| file.write_all(bytes), |()| Ok(()))
    }

    /// Publishes one file that `fill` writes, replacing what is there. Between the file's completion and its
    /// appearance `before` runs, with what `fill` returned.
    pub(crate) fn publish_with_then<T>(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut File) -> std::io::Result<T>,
        before: impl FnOnce(T) -> Result<()>,
    ) -> Result<()> {
        let staged = self.fresh();
        let filled = (|| {
            let mut file = with_reserve(|| File::create(&staged))?;
            let value = fill(&mut file)?;
            file.sync_all()?;
            Ok(value)
        })();
        let appeared = filled.map_err(Error::write(path)).and_then(before).and_then(|()| {
            make_parent(path).and_then(|()| fs::rename(&staged, path)).map_err(Error::write(path))
        });
        if appeared.is_err() {
            let _ = fs::remove_file(&staged);
        } else {
            sync_folder_of(path);
        }
        appeared
    }

    /// Publishes one file unless it is there already. Says whether it was written.
    pub(crate) fn publish_new(&self, path: &Path, bytes: &[u8]) -> Result<bool> {
        let staged = self.fresh();
        write_synced(&staged, bytes).map_err(Error::write(path))?;
        let linked = make_parent(path).and_then(|()| fs::hard_link(&staged, path));
        let written = match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            // No hard links here: a plain rename, which cannot see a file that appears at this very moment.
            Err(_) if !path.exists() => fs::rename(&staged, path).map(|()| true),
            Err(_) => Ok(false),
        };
        let _ = fs::remove_file(&staged);
        if matches!(written, Ok(true)) {
            sync_folder_of(path);
        }
        written.map_err(Error::write(path))
    }

    /// Publishes a folder of files at once; where one is there already, it stays. Every file is synced first. Says
    /// whether it was written.
    pub(crate) fn publish_folder(&self, path: &Path, files: &[(String, Vec<u8>)]) -> Result<bool> {
        let staged = self.fresh();
        let result = self.fill_folder(&staged, path, files);
        if result.is_err() {
            let _ = fs::remove_dir_all(&staged);
        }
        result
    }

    fn fill_folder(&self, staged: &Path, path: &Path, files: &[(String, Vec<u8>)]) -> Result<bool> {
        fs::create_dir(staged).map_err(Error::write(path))?;
        for (name, bytes) in files {
            write_synced(&staged.join(name), bytes).map_err(Error::write(&path.join(name)))?;
        }
        sync_folder(staged);
        make_parent(path).map_err(Error::write(path))?;
        match fs::rename(staged, path) {
            Ok(()) => {}
            // Another process was faster; its files are the same.
            Err(_) if path.is_dir() => {
                let _ = fs::remove_dir_all(staged);
                return Ok(false);
            }
            Err(error) => return Err(Error::write(path)(error)),
        }
        sync_folder_of(path);
        Ok(true)
    }

    /// Takes a broken file or folder out of the way.
    pub(crate) fn discard(&self, path: &Path) -> Result<()> {
        let away = self.fresh();
        fs::rename(path, &away).map_err(Error::write(path))?;
        let removed = if away.is_dir() { fs::remove_dir_all(&away) } else { fs::remove_file(&away) };
        removed.map_err(Error::write(path))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn make_parent(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.is_dir() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// Locks a folder just made, or `None` where another process took it for abandoned in between.
fn lock(folder: &Path) -> Result<Option<File>> {
    let path = folder.join(LOCK);
    let file = match File::create(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::write(&path)(error)),
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // Where locks are not supported no folder is ever taken for abandoned.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(path.exists().then_some(file)),
    }
}

/// Removes the staging folders whose owners are gone: those whose lock can be had.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let folder = entry.path();
        match File::open(folder.join(LOCK)) {
            Ok(lock) => match lock.try_lock() {
                Ok(()) => {
                    let _ = fs::remove_dir_all(&folder);
                }
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // A folder that never got its lock, or one being made right now: only an empty one goes.
                let _ = fs::remove_dir(&folder);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_may_start_at_once() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let staging = Staging::create(root.path()).unwrap();
                        staging.publish(&staging.folder.join("file"), b"1").unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_abandoned_staging_folder_is_removed_and_a_living_one_stays() {
        let root = tempfile::tempdir().unwrap();
        let abandoned = root.path().join("1-1");
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join(LOCK), b"").unwrap();
        fs::write(abandoned.join("0"), b"half").unwrap();
        let first = Staging::create(root.path()).unwrap();
        let second = Staging::create(root.path()).unwrap();
        assert!(!abandoned.exists());
        assert!(first.folder.exists() && second.folder.exists());
        drop((first, second));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn folders_appear_at_once_and_the_first_one_stays() {
        let root = tempfile::tempdir().unwrap();
        let staging = Staging::create(&root.path().join("work")).unwrap();
        let target = root.path().join("a/b");
        staging.publish_folder(&target, &[("x".to_owned(), b"1".to_vec())]).unwrap();
        staging.publish_folder(&target, &[("x".to_owned(), b"2".to_vec())]).unwrap();
        assert_eq!(fs::read(target.join("x")).unwrap(), b"1");
    }

    #[test]
    fn a_new_file_is_written_once() {
        let root = tempfile::tempdir().unwrap();
        let staging = Staging::create(&root.path().join("work")).unwrap();
        let path = root.path().join("card.json");
        assert!(staging.publish_new(&path, b"1").unwrap());
        assert!(!staging.publish_new(&path, b"2").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"1");
        staging.publish(&path, b"3").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"3");
    }

    #[test]
    fn a_full_disk_leaves_the_old_file_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("epoch_00001.safetensors");
        write(&path, b"old").unwrap();
        let full = write_with(&path, |writer| {
            writer.write_all(b"half of the n")?;
            Err(std::io::Error::from(ErrorKind::StorageFull))
        });
        let message = full.unwrap_err().to_string();
        assert_eq!(message, format!("cannot write {}: the disk is full", path.display()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_was_left_beside_a_file_goes_with_the_next_writing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in
            [".results.json.123.tmp", ".results.json.456.tmp", ".other.json.123.tmp", ".results.json.x.tmp"]
        {
            fs::write(at(name), b"half").unwrap();
        }
        let alive = File::open(at(".results.json.456.tmp")).unwrap();
        alive.lock().unwrap();
        write(&at("results.json"), b"whole").unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        let expected =
            [".other.json.123.tmp", ".results.json.456.tmp", ".results.json.x.tmp", "results.json"];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".epoch_00001.safetensors.tmp"), b"half").unwrap();
        fs::write(folder.path().join("epoch_00001.safetensors"), b"whole").unwrap();
        remove_unfinished(folder.path());
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["epoch_00001.safetensors"]);
    }
}
