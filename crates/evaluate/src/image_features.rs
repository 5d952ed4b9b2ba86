//! Features of any images: decoded on all cores while the network works on those before.

use std::sync::mpsc::sync_channel;

use dataset::Image;
use rayon::prelude::*;
use train::config::OnBadSample;

use crate::error::{Error, Result};
use crate::{Encoded, Encoder};

/// Images that are decoded while the network works on as many.
const AT_ONCE: usize = 128;

/// The features of all `images`, in order. Those that cannot be read are an error, or, with [`OnBadSample::Skip`], are
/// removed from the list; the returned sentences name them. `advance` gets how many more are done.
pub fn encode(
    encoder: &mut dyn Encoder,
    images: &mut Vec<Image>,
    on_bad_sample: OnBadSample,
    advance: &dyn Fn(u64),
) -> Result<(Encoded, Vec<String>)> {
    let side = encoder.side();
    let mut all = Encoded::default();
    let mut bad: Vec<(usize, String)> = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        let (sender, receiver) = sync_channel(1);
        let all_images = &*images;
        scope.spawn(move || {
            for chunk in all_images.chunks(AT_ONCE) {
                let read: Vec<dataset::Result<Vec<u8>>> =
                    chunk.par_iter().map(|image| image.load(side)).collect();
                // Nobody listens any more after a failure.
                if sender.send(read).is_err() {
                    return;
                }
            }
        });
        let mut index = 0;
        for read in receiver {
            let mut pixels = Vec::new();
            let (count, mut good) = (read.len(), 0);
            for (offset, image) in read.into_iter().enumerate() {
                match image {
                    Ok(image) => {
                        pixels.extend(image);
                        good += 1;
                    }
                    Err(error) if on_bad_sample == OnBadSample::Skip => {
                        bad.push((index + offset, error.to_string()))
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            if good > 0 {
                let encoded = encoder.encode(&pixels, good)?;
                all.representation.extend(encoded.representation);
                all.equivariant.extend(encoded.equivariant);
                all.invariant.extend(encoded.invariant);
            }
            index += count;
            advance(count as u64);
        }
        Ok(())
    })?;
    if bad.len() == images.len()
        && let Some((_, first)) = bad.first()
    {
        return Err(Error::Request(format!("none of the images can be read: {first}")));
    }
    let mut index = 0;
    images.retain(|_| {
        index += 1;
        bad.binary_search_by_key(&(index - 1), |(bad, _)| *bad).is_err()
    });
    Ok((all, bad.into_iter().map(|(_, what)| what).collect()))
}
