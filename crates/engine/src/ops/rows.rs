//! Rows out of a table, and sums over steps: what feeds heads and keeps their losses without waiting for the device.
//! None of these has a gradient, so none is an operation of the tape, and each chooses the device itself.

use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::{view, view_mut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tensor::{DType, Storage, Tensor};

/// The rows of `table` (n, width; float32) that `rows` (count; i32) names: (count, width).
pub fn gather_rows(device: &Device, table: &Tensor, rows: &Tensor) -> Result<Tensor> {
    const OP: &str = "gather_rows";
    let (&[n, width], &[count]) = (table.dims(), rows.dims()) else {
        return Err(Error::shape(OP, format!("table {} and rows {}", table.shape(), rows.shape())));
    };
    if table.dtype() != DType::F32 || rows.dtype() != DType::I32 {
        let detail = format!("a table of {} and rows of {}", table.dtype().name(), rows.dtype().name());
        return Err(Error::shape(OP, detail));
    }
    let mut gathered = Tensor::empty(device, [count, width], DType::F32)?;
    match device {
        Device::Cpu(_) => {
            let (from, indices) = (table.as_slice::<f32>()?, rows.as_slice::<i32>()?);
            let places = gathered.as_mut_slice::<f32>()?.chunks_exact_mut(width.max(1));
            for (to, &row) in places.zip(indices) {
                let known = usize::try_from(row).ok().filter(|&row| row < n);
                let row = known.ok_or_else(|| Error::shape(OP, format!("row {row} of {n}")))?;
                to.copy_from_slice(&from[row * width..(row + 1) * width]);
            }
        }
        Device::Cuda(cuda) => {
            let _scope = cuda.context().scope(|| "gather rows".into(), 0.0, 8.0 * (count * width) as f64);
            let arguments = [
                view(table)?.into(),
                view(rows)?.into(),
                view_mut(&mut gathered)?.into(),
                (count as i64).into(),
                (n as i64).into(),
                width.into(),
            ];
            let work = count * if width.is_multiple_of(4) { width / 4 } else { width };
            cuda.launch(&program(), Kernel::gather_rows, cuda.elementwise(work), &arguments)?;
        }
    }
    Ok(gathered)
}

/// Overwrites `target` by as many rows of `source`, from row `first` on; the elements of a row are all but the first
/// dimension.
pub fn copy_rows(device: &Device, source: &Tensor, first: usize, target: &mut Tensor) -> Result<()> {
    let width = |tensor: &Tensor| tensor.dims().iter().skip(1).product::<usize>();
    let (start, count) = (first * width(source), target.len());
    if source.dtype() != target.dtype() || width(source) != width(target) || start + count > source.len() {
        let detail = format!("{} from row {first} of {}", target.shape(), source.shape());
        return Err(Error::shape("copy_rows", detail));
    }
    let (offset, bytes) = (start * source.dtype().size(), count * source.dtype().size());
    match (device, source.storage()) {
        (_, Storage::Cpu(from)) => target.write_bytes(&from.as_bytes()[offset..offset + bytes]),
        (Device::Cpu(_), _) => {
            Err(Error::WrongDevice { what: "the source of a copy".into(), device: "another device".into() })
        }
        (Device::Cuda(cuda), _) => {
            let from = view(source)?.part(offset, bytes)?;
            // SAFETY: both tensors are alive, and nobody else holds the target.
            Ok(unsafe { cuda.context().copy(view_mut(target)?, from) }?)
        }
    }
}

/// Copies `rows` rows of the source, from a row on, over those of the target, from a row on.
pub(crate) fn copy_range(
    device: &Device,
    (source, from): (&Tensor, usize),
    (target, to): (&mut Tensor, usize),
    rows: usize,
) -> Result<()> {
    let width = |tensor: &Tensor| tensor.dims().iter().skip(1).product::<usize>() * tensor.dtype().size();
    let (bytes, wide) = (rows * width(source), width(source));
    let fits = |tensor: &Tensor, first: usize| (first + rows) * wide <= tensor.len() * tensor.dtype().size();
    if wide != width(target) || !fits(source, from) || !fits(target, to) {
        let detail = format!("{rows} rows of {} to {}", source.shape(), target.shape());
        return Err(Error::shape("copy_range", detail));
    }
    match (device, source.storage()) {
        (Device::Cpu(_), Storage::Cpu(source)) => {
            let Storage::Cpu(target) = target.storage_mut()? else {
                let what = "the target of a copy".into();
                return Err(Error::WrongDevice { what, device: "another device".into() });
            };
            let source = &source.as_bytes()[from * wide..][..bytes];
            target.as_mut_bytes()[to * wide..][..bytes].copy_from_slice(source);
            Ok(())
        }
        (Device::Cuda(cuda), _) => {
            let from = view(source)?.part(from * wide, bytes)?;
            let to = view_mut(target)?.part(to * wide, bytes)?;
            // SAFETY: both tensors are alive, and nobody else holds the target.
            Ok(unsafe { cuda.context().copy(to, from) }?)
        }
        _ => Err(Error::WrongDevice { what: "the source of a copy".into(), device: "another device".into() }),
    }
}

/// `to += weight * from`, float32 of the same length.
pub fn add_scaled(device: &Device, from: &Tensor, weight: f32, to: &mut Tensor) -> Result<()> {
    if from.len() != to.len() {
        return Err(Error::shape("add_scaled", format!("{} to {}", from.shape(), to.shape())));
    }
    match device {
        Device::Cpu(_) => {
            let sums = to.as_mut_slice::<f32>()?.iter_mut();
            sums.zip(from.as_slice::<f32>()?).for_each(|(to, from)| *to += weight * from);
            Ok(())
        }
        Device::Cuda(cuda) => {
            let count = from.len();
            let arguments = [view(from)?.into(), weight.into(), view_mut(to)?.into(), (count as i64).into()];
            cuda.launch(&program(), Kernel::add_scaled, cuda.elementwise(count), &arguments)
        }
    }
}

fn program() -> Program {
    Program::new(KernelFile::Heads, DType::F32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_gathered_in_the_order_they_are_named() {
        let device = Device::cpu();
        let table = Tensor::from_slice(&device, [3, 2], &[0.0_f32, 1.0, 10.0, 11.0, 20.0, 21.0]).unwrap();
        let rows = |rows: &[i32]| Tensor::from_slice(&device, [rows.len()], rows).unwrap();
        let found = gather_rows(&device, &table, &rows(&[2, 0, 2, 1])).unwrap();
        assert_eq!(found.dims(), [4, 2]);
        assert_eq!(found.to_f32().unwrap(), [20.0, 21.0, 0.0, 1.0, 20.0, 21.0, 10.0, 11.0]);
        for row in [3, -1] {
            let error = gather_rows(&device, &table, &rows(&[row])).unwrap_err();
            assert_eq!(error.to_string(), format!("gather_rows: row {row} of 3"));
        }
        assert!(gather_rows(&device, &table, &table).is_err());
    }

    #[test]
    fn a_part_of_the_rows_is_copied() {
        let device = Device::cpu();
        let source = Tensor::from_slice(&device, [4, 1, 2], &[0_i32, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        let mut target = Tensor::zeros(&device, [2, 2], DType::I32).unwrap();
        copy_rows(&device, &source, 1, &mut target).unwrap();
        assert_eq!(target.to_vec::<i32>().unwrap(), [2, 3, 4, 5]);
        assert!(copy_rows(&device, &source, 3, &mut target).is_err(), "only one row is left");
        let mut floats = Tensor::zeros(&device, [2, 2], DType::F32).unwrap();
        assert!(copy_rows(&device, &source, 0, &mut floats).is_err());
    }

    #[test]
    fn scaled_numbers_are_added() {
        let device = Device::cpu();
        let from = Tensor::from_slice(&device, [2], &[1.0_f32, -3.0]).unwrap();
        let mut to = Tensor::from_slice(&device, [2], &[0.5_f32, 1.0]).unwrap();
        add_scaled(&device, &from, 2.0, &mut to).unwrap();
        assert_eq!(to.to_f32().unwrap(), [2.5, -5.0]);
        let mut three = Tensor::zeros(&device, [3], DType::F32).unwrap();
        assert!(add_scaled(&device, &from, 2.0, &mut three).is_err());
    }
}
