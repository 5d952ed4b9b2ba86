//! Devices by the names that people give them: `auto`, `cpu`, `cuda`, `cuda:1`.

use std::fmt;
use std::str::FromStr;

use gpu::libraries::{self, Wanted};

use crate::device::{Device, Precision};
use crate::error::{Error, Result};

/// A device that was named and is not open yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The first usable GPU, or the CPU.
    Auto,
    /// The host processor.
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
}

/// A word that names no device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDevice(String);

impl fmt::Display for UnknownDevice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "there is no device {:?}: use auto, cpu, cuda or cuda:N", self.0)
    }
}

impl std::error::Error for UnknownDevice {}

impl FromStr for DeviceName {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> std::result::Result<Self, UnknownDevice> {
        let number = match text.strip_prefix("cuda") {
            _ if text == "auto" => return Ok(Self::Auto),
            _ if text == "cpu" => return Ok(Self::Cpu),
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix(':').and_then(|number| number.parse().ok()),
            None => None,
        };
        number.map(Self::Cuda).ok_or_else(|| UnknownDevice(text.to_owned()))
    }
}

impl DeviceName {
    /// Opens the device. `precision` is that of a GPU, mixed where none is named; the CPU computes in float32. Where `auto`
    /// is the CPU although there is a GPU, the error says why.
    pub fn open(self, precision: Option<Precision>) -> Result<(Device, Option<Error>)> {
        let cuda = |ordinal| Device::cuda(ordinal, precision.unwrap_or(Precision::Mixed));
        match self {
            Self::Cpu => Ok((Device::cpu(), None)),
            Self::Cuda(ordinal) => Ok((cuda(ordinal)?, None)),
            Self::Auto => match usable_gpu().and_then(|found| found.map(cuda).transpose()) {
                Ok(Some(device)) => Ok((device, None)),
                Ok(None) => Ok((Device::cpu(), None)),
                Err(why) => Ok((Device::cpu(), Some(why))),
            },
        }
    }
}

/// The number of the first GPU of a kind that can be used; none where the machine has none. An error where it has one
/// but something is missing.
pub fn usable_gpu() -> Result<Option<usize>> {
    // A machine without a driver, or whose driver finds nothing, has no GPU that anybody would miss.
    let Ok(all) = gpu::devices() else { return Ok(None) };
    let Some(first) = all.first() else { return Ok(None) };
    let Some(usable) = all.iter().find(|device| device.refusal().is_none()) else {
        return Err(first.refusal().map_or_else(|| Error::Device("it is too old".to_owned()), Into::into));
    };
    for wanted in Wanted::ALL {
        libraries::load(wanted)?;
    }
    Ok(Some(usable.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_others_refused() {
        let read = |text: &str| text.parse::<DeviceName>();
        assert_eq!(read("auto"), Ok(DeviceName::Auto));
        assert_eq!(read("cpu"), Ok(DeviceName::Cpu));
        assert_eq!([read("cuda"), read("cuda:0")], [Ok(DeviceName::Cuda(0)), Ok(DeviceName::Cuda(0))]);
        assert_eq!(read("cuda:13"), Ok(DeviceName::Cuda(13)));
        for wrong in ["", "gpu", "cuda1", "cuda:", "cuda:x", "cuda:-1", "CPU"] {
            let sentence = read(wrong).unwrap_err().to_string();
            assert_eq!(sentence, format!("there is no device {wrong:?}: use auto, cpu, cuda or cuda:N"));
        }
    }

    #[test]
    fn the_cpu_needs_no_precision() {
        let (device, why) = DeviceName::Cpu.open(None).unwrap();
        assert_eq!((device.name().as_str(), device.precision()), ("cpu", Precision::F32));
        assert!(why.is_none());
    }
}
