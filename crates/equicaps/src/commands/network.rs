//! What `embed`, `neighbours` and `steer` share: a trained network on a device, and images through it.

use std::ffi::OsString;
use std::path::PathBuf;

use dataset::{Image, image_list};
use engine::Device;
use evaluate::image_features;
use evaluate::weights::{self, Opened, Weights, Which};
use evaluate::{Encoded, Encoder, NetworkEncoder};
use train::config::{OnBadSample, PrecisionName};

use crate::commands::left_out;
use crate::terminal::Terminal;

/// The network to use, and where.
#[derive(Debug, clap::Args)]
pub struct NetworkOptions {
    /// A run's folder, a checkpoint, or `builtin`: the small network inside this program
    #[arg(value_name = "RUN|CHECKPOINT")]
    pub weights: PathBuf,
    /// Device: auto (a GPU where there is a usable one), cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: String,
    /// On an unreadable image: fail, or skip it with a warning
    #[arg(long, value_name = "WHAT", default_value_t = OnBadSample::Fail)]
    on_bad_sample: OnBadSample,
}

/// A network that is ready to be used.
pub struct OpenNetwork<'a> {
    /// Its weights.
    pub weights: Weights,
    /// Where it computes.
    pub device: Device,
    /// The network.
    pub encoder: NetworkEncoder,
    on_bad_sample: OnBadSample,
    terminal: &'a Terminal,
}

impl NetworkOptions {
    /// Opens the network, for images of `image_size` pixels where that is not the training size.
    pub fn open<'a>(
        &self,
        image_size: Option<usize>,
        terminal: &'a Terminal,
    ) -> anyhow::Result<OpenNetwork<'a>> {
        let weights = weights::find(&self.weights, &Which::Newest)?.remove(0).at_size(image_size);
        let device = crate::device::open(&self.device, PrecisionName::F32)?;
        let Opened { encoder, note, .. } = weights.open(&device)?;
        note.iter().for_each(|note| terminal.note(note));
        Ok(OpenNetwork { weights, device, encoder, on_bad_sample: self.on_bad_sample, terminal })
    }
}

impl OpenNetwork<'_> {
    /// The features of all `images`, in order, with progress; unreadable ones are an error or taken off the list.
    pub fn encode(&mut self, images: &mut Vec<Image>) -> anyhow::Result<Encoded> {
        let progress = self.terminal.progress(images.len() as u64, "images");
        let advance = |count| progress.advance(count);
        let several = images.len() > 1;
        let (encoded, bad) = image_features::encode(&mut self.encoder, images, self.on_bad_sample, &advance)
            .map_err(|error| if several { left_out::or_without(error) } else { error.into() })?;
        progress.finish();
        left_out::warn(&bad, "", self.terminal);
        Ok(encoded)
    }

    /// Side of the images that the network takes.
    pub fn side(&self) -> usize {
        self.encoder.side()
    }
}

/// The images that `arguments` name; what is left out is a warning.
pub fn collect(arguments: &[OsString], terminal: &Terminal) -> anyhow::Result<Vec<Image>> {
    let list = image_list::collect(arguments)?;
    list.warnings.iter().for_each(|warning| terminal.warn(warning));
    Ok(list.images)
}
