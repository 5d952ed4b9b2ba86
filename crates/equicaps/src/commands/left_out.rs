//! What commands say of images that cannot be read: that they can be left out, and which ones are.

use dataset::error::FileError;
use evaluate::Error;

use crate::terminal::Terminal;

/// Warnings about images that are left out; more are only counted.
const MOST_WARNINGS: usize = 10;

/// Names `images` that are left out; `listed` says where all of them are, if they are anywhere.
pub fn warn(images: &[String], listed: &str, terminal: &Terminal) {
    images.iter().take(MOST_WARNINGS).for_each(|image| terminal.warn(format!("left out: {image}")));
    match images.len().saturating_sub(MOST_WARNINGS) {
        0 => {}
        1 => terminal.warn(format!("1 more image is left out{listed}")),
        more => terminal.warn(format!("{more} more images are left out{listed}")),
    }
}

/// `error`, and where it is an image that cannot be used, how to go on without it.
pub fn or_without(error: Error) -> anyhow::Error {
    match error {
        Error::Dataset(error @ dataset::Error::File(FileError::Content { .. } | FileError::Read { .. })) => {
            anyhow::anyhow!("{error} (--on-bad-sample skip leaves out what cannot be used)")
        }
        error => error.into(),
    }
}
