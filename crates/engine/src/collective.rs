//! Where one rank meets the others: N processes that train one network, each on its rows of every batch. What they
//! exchange is here in one small trait; the engine sums batch-norm moments and gradients and gathers embeddings by it,
//! so that N ranks compute what one rank computes with the whole batch. With a single rank nothing is done.
//!
//! [`in_threads`] lets ranks be threads of one process, for tests. Processes meet by MPI or NCCL (crate `ranks`).

mod in_threads;

use std::fmt::Debug;
use std::ops::Range;

use gpu::View;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::ops::copy_range;
use crate::tensor::{Storage, Tensor};

pub use in_threads::in_threads;

/// Memory that others read: of the host, or of the rank's GPU.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// Of the host.
    Host(&'a [u8]),
    /// Of the GPU.
    Device(View),
}

/// Memory that is written: of the host, or of the rank's GPU.
#[derive(Debug)]
pub enum Memory<'a> {
    /// Of the host.
    Host(&'a mut [u8]),
    /// Of the GPU.
    Device(View),
}

/// The numbers that are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// float32: gradients.
    F32,
    /// float64: moments of batch norms.
    F64,
}

/// What ranks exchange. Every call is made by all ranks, in the same order and with the same sizes. Work on a GPU is
/// issued on its stream, so that it can be captured as a part of a graph; work on the host is done when a call returns.
pub trait Collective: Debug + Send + Sync {
    /// Which rank this is, from 0 on.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn ranks(&self) -> usize;

    /// Whether anything is to be exchanged.
    fn is_shared(&self) -> bool {
        self.ranks() > 1
    }

    /// Adds up `memory` over all ranks; every rank gets the same sum.
    fn all_reduce_sum(&self, kind: Sum, memory: Memory<'_>) -> Result<()>;

    /// As [`Self::all_reduce_sum`] of float32, beside the work that is issued next where the device can do that; it is
    /// done after [`Self::join`].
    fn sum_beside(&self, memory: Memory<'_>) -> Result<()> {
        self.all_reduce_sum(Sum::F32, memory)
    }

    /// The work that is issued next comes after everything that was begun by [`Self::sum_beside`].
    fn join(&self) -> Result<()> {
        Ok(())
    }

    /// For each of `parts`: the memory becomes the sources of all ranks, in the order of ranks.
    fn all_gather(&self, parts: &mut [(Source<'_>, Memory<'_>)]) -> Result<()>;

    /// Overwrites `memory` by that of rank 0.
    fn broadcast(&self, memory: Memory<'_>) -> Result<()>;

    /// A few bytes of every rank, in the order of ranks; they may be of different lengths. Never waits for a GPU.
    fn exchange(&self, own: &[u8]) -> Result<Vec<Vec<u8>>>;
}

impl dyn Collective + '_ {
    /// The rows of a batch of `whole` that are this rank's.
    pub fn share(&self, whole: usize) -> Range<usize> {
        share(self.rank(), self.ranks(), whole)
    }

    /// Waits until every rank is here.
    pub fn barrier(&self) -> Result<()> {
        self.exchange(&[]).map(|_| ())
    }

    /// For each of `tensors`, which have this rank's share of `whole` rows: the rows of all ranks.
    pub fn gather(&self, device: &Device, whole: usize, tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        // Ranks with a row less fill it up.
        let most = whole.div_ceil(self.ranks());
        let is_even = most * self.ranks() == whole;
        let rows = |tensor: &Tensor, rows: usize| -> Result<Tensor> {
            let mut dims = tensor.dims().to_vec();
            match dims.first_mut() {
                Some(first) if *first == self.share(whole).len() => *first = rows,
                _ => {
                    let detail = format!("{} of {whole} rows on {} ranks", tensor.shape(), self.ranks());
                    return Err(Error::shape("gather", detail));
                }
            }
            Tensor::empty(device, dims.as_slice(), tensor.dtype())
        };
        let mut own = Vec::with_capacity(tensors.len());
        let mut all = Vec::with_capacity(tensors.len());
        for &tensor in tensors {
            let filled = if is_even {
                tensor.clone()
            } else {
                let mut filled = rows(tensor, most)?;
                filled.fill_zero()?;
                copy_range(device, (tensor, 0), (&mut filled, 0), self.share(whole).len())?;
                filled
            };
            own.push(filled);
            all.push(rows(tensor, most * self.ranks())?);
        }
        let mut parts = Vec::with_capacity(tensors.len());
        for (own, all) in own.iter().zip(&mut all) {
            parts.push((source(own)?, memory(all)?));
        }
        self.all_gather(&mut parts)?;
        drop(parts);
        if is_even {
            return Ok(all);
        }
        let mut gathered = Vec::with_capacity(all.len());
        for (filled, &tensor) in all.iter().zip(tensors) {
            let mut joined = rows(tensor, whole)?;
            for rank in 0..self.ranks() {
                let share = share(rank, self.ranks(), whole);
                copy_range(device, (filled, rank * most), (&mut joined, share.start), share.len())?;
            }
            gathered.push(joined);
        }
        Ok(gathered)
    }

    /// As [`Self::gather`] of one tensor, into `all`.
    pub(crate) fn gather_into(&self, device: &Device, own: &Tensor, all: &mut Tensor) -> Result<()> {
        let whole = all.dims().first().copied().unwrap_or(0);
        if whole == own.dims().first().copied().unwrap_or(0) * self.ranks() {
            return self.all_gather(&mut [(source(own)?, memory(all)?)]);
        }
        let gathered = self.gather(device, whole, &[own])?;
        gathered.first().map_or(Ok(()), |gathered| all.copy_from(gathered))
    }

    /// Overwrites `tensor` by that of rank 0.
    pub fn broadcast_tensor(&self, tensor: &mut Tensor) -> Result<()> {
        self.broadcast(memory(tensor)?)
    }
}

/// The rows of a batch of `whole` that are those of `rank`: one after the other, as many for each where they can be.
pub fn share(rank: usize, ranks: usize, whole: usize) -> Range<usize> {
    rank * whole / ranks..(rank + 1) * whole / ranks
}

/// The memory of a tensor, for reading.
fn source(tensor: &Tensor) -> Result<Source<'_>> {
    let bytes = tensor.len() * tensor.dtype().size();
    match tensor.storage() {
        Storage::Cpu(buffer) => Ok(Source::Host(&buffer.as_bytes()[..bytes])),
        Storage::Cuda(buffer) => Ok(Source::Device(buffer.view().part(0, bytes)?)),
        Storage::Nothing => Err(Error::Shared { what: "a tensor to be gathered".into() }),
    }
}

/// The memory of a tensor, for writing.
fn memory(tensor: &mut Tensor) -> Result<Memory<'_>> {
    let bytes = tensor.len() * tensor.dtype().size();
    match tensor.storage_mut()? {
        Storage::Cpu(buffer) => Ok(Memory::Host(&mut buffer.as_mut_bytes()[..bytes])),
        Storage::Cuda(buffer) => Ok(Memory::Device(buffer.view().part(0, bytes)?)),
        Storage::Nothing => Err(Error::Shared { what: "a tensor to be exchanged".into() }),
    }
}

/// Adds `parts` up in their order.
pub fn add_in_order<'a>(kind: Sum, parts: impl IntoIterator<Item = &'a [u8]>, to: &mut [u8]) -> Result<()> {
    fn add<const N: usize>(to: &mut [u8], part: &[u8], add: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
        let (to, part) = (to.as_chunks_mut::<N>().0, part.as_chunks::<N>().0);
        to.iter_mut().zip(part).for_each(|(to, part)| *to = add(*to, *part));
    }
    for (index, part) in parts.into_iter().enumerate() {
        if part.len() != to.len() {
            return Err(Error::Ranks(format!(
                "rank {index} sent {} bytes where {} were expected",
                part.len(),
                to.len()
            )));
        }
        match (index, kind) {
            (0, _) => to.copy_from_slice(part),
            (_, Sum::F32) => {
                add(to, part, |a, b| (f32::from_ne_bytes(a) + f32::from_ne_bytes(b)).to_ne_bytes());
            }
            (_, Sum::F64) => {
                add(to, part, |a, b| (f64::from_ne_bytes(a) + f64::from_ne_bytes(b)).to_ne_bytes());
            }
        }
    }
    Ok(())
}

/// The collective of a single rank.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleRank;

impl Collective for SingleRank {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    fn all_reduce_sum(&self, _: Sum, _: Memory<'_>) -> Result<()> {
        Ok(())
    }

    fn all_gather(&self, parts: &mut [(Source<'_>, Memory<'_>)]) -> Result<()> {
        for part in parts {
            match part {
                (Source::Host(from), Memory::Host(to)) => to.copy_from_slice(from),
                _ => return Err(Error::Ranks("a single rank gathers nothing on a GPU".to_owned())),
            }
        }
        Ok(())
    }

    fn broadcast(&self, _: Memory<'_>) -> Result<()> {
        Ok(())
    }

    fn exchange(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![own.to_vec()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_a_batch_in_order() {
        for (ranks, whole) in [(1, 5), (3, 12), (4, 6), (5, 3)] {
            let mut next = 0;
            for rank in 0..ranks {
                let share = share(rank, ranks, whole);
                assert_eq!(share.start, next);
                assert!(share.len() <= whole.div_ceil(ranks));
                next = share.end;
            }
            assert_eq!(next, whole);
        }
    }

    #[test]
    fn sums_are_in_order_and_lengths_must_agree() {
        let parts = [[1.0_f32, 1e8], [2.0, 1.0], [3.0, -1e8]].map(bytemuck::cast::<_, [u8; 8]>);
        let mut sum = [0; 8];
        add_in_order(Sum::F32, parts.iter().map(<[u8; 8]>::as_slice), &mut sum).unwrap();
        assert_eq!(bytemuck::cast::<_, [f32; 2]>(sum), [6.0, 0.0]);
        assert!(add_in_order(Sum::F64, [[0; 8].as_slice(), &[0; 16]], &mut sum).is_err());
    }
}
