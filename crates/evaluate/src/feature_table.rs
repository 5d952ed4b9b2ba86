//! The features that heads learn from, in the memory of the heads' device where there is room: nothing but rows' numbers
//! and targets crosses to a GPU then. On the CPU, and for tables that do not fit, they stay where they are.

use std::borrow::Cow;

use engine::{DType, Device, Tensor, ops};
use random::{Random, Stream};

use crate::cuda;
use crate::error::{Error, Result};
use crate::features::Table;

/// A table of features.
#[derive(Debug)]
pub enum FeatureTable<'a> {
    /// In the host's memory: rows are gathered there.
    Host(Cow<'a, Table>),
    /// (rows, width) in a GPU's memory: rows are gathered there.
    Device(Tensor),
}

impl<'a> FeatureTable<'a> {
    /// `table` where heads on `device` find it best.
    pub fn new(table: &'a Table, device: &Device) -> Result<Self> {
        if !cuda::has_room(device, table.values.len() * 4)? {
            return Ok(Self::Host(Cow::Borrowed(table)));
        }
        if i32::try_from(table.rows()).is_err() {
            return Err(Error::Request(format!("{} views are more than a GPU's index holds", table.rows())));
        }
        Ok(Self::Device(Tensor::from_slice(device, [table.rows(), table.width], &table.values)?))
    }

    /// Meaningless numbers made on the device, for measuring speed.
    pub fn random(device: &Device, rows: usize, width: usize) -> Result<Self> {
        const SEED: u32 = 7;
        if let Device::Cuda(cuda) = device {
            let mut table = Tensor::empty(device, [rows, width], DType::F32)?;
            cuda::fill_random(cuda, &mut table, SEED)?;
            return Ok(Self::Device(table));
        }
        let mut random = Random::new(SEED.into(), Stream::new("bench-evaluate"), 0);
        let values = (0..rows * width).map(|_| random.range(-1.0, 1.0) as f32).collect();
        Ok(Self::Host(Cow::Owned(Table { width, values })))
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        match self {
            Self::Host(table) => table.width,
            Self::Device(table) => table.dims()[1],
        }
    }

    /// Room for what a step of `rows` rows takes: the features themselves, or which rows they are.
    pub(crate) fn room(&self, device: &Device, rows: usize) -> Result<Tensor> {
        Ok(match self {
            Self::Host(table) => Tensor::empty(device, [rows, table.width], DType::F32)?,
            Self::Device(_) => Tensor::empty(device, [rows], DType::I32)?,
        })
    }

    /// Fills the `room` of a step from the host.
    pub(crate) fn fill(&self, room: &mut Tensor, rows: &[i32]) -> Result<()> {
        match self {
            Self::Host(table) => room.write(&table.gather(rows))?,
            Self::Device(_) => room.write(rows)?,
        }
        Ok(())
    }

    /// The features (samples, views * width) that a filled `room` stands for.
    pub(crate) fn features(&self, device: &Device, room: &Tensor, views: usize) -> engine::Result<Tensor> {
        let features = match self {
            Self::Host(_) => room.clone(),
            Self::Device(table) => ops::gather_rows(device, table, room)?,
        };
        let [rows, width] = [room.dims()[0], self.width()];
        features.reshape([rows / views.max(1), views * width])
    }
}
