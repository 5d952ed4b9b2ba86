//! Files that are either absent, old or complete: written beside, synced, renamed, and the folder synced.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::{Error, Result};

/// The ending of unfinished files.
const UNFINISHED: &str = ".tmp";

/// Writes what `fill` writes to `path`, at once.
pub fn publish(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}{UNFINISHED}"));
    let result = (|| {
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
        fill(&mut writer)?;
        let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&beside);
    }
    result.map_err(Error::write(path))?;
    sync_folder(path);
    Ok(())
}

/// Writes `bytes` to `path`, at once.
pub fn publish_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    publish(path, |writer| writer.write_all(bytes))
}

/// Syncs the folder of `path`, so that its name survives a power cut. Not every file system can; that is no error.
fn sync_folder(path: &Path) {
    if let Some(folder) = path.parent().and_then(|parent| File::open(parent).ok()) {
        let _ = folder.sync_all();
    }
}

/// Removes what a killed process left unfinished in `folder`. Only for the owner of the folder.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn a_full_disk_leaves_the_old_file_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("epoch_00001.safetensors");
        publish_bytes(&path, b"old").unwrap();
        let full = publish(&path, |writer| {
            writer.write_all(b"half of the n")?;
            Err(std::io::Error::from(ErrorKind::StorageFull))
        });
        let message = full.unwrap_err().to_string();
        assert_eq!(message, format!("cannot write {}: the disk is full", path.display()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
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
