//! The device's side of [`crate::probe`]: samples of a round go over once, through page-locked memory, while the device
//! still works on the round before.

use gpu::{Buffer, Event, HostBuffer};

use super::heads::{HeadGroup, Objective};
use super::{DeviceTable, Session};
use crate::error::Result;
use crate::probe::{Heads, Samples};
use crate::protocol::Protocol;

/// Rows of one validation product.
const VALIDATION_ROWS: usize = 4096;

/// Heads on the device, and the table they learn from.
#[derive(Debug)]
pub struct DeviceHeads<'a> {
    session: Session,
    table: &'a DeviceTable,
    group: HeadGroup,
    staging: [Staging; 2],
    turn: usize,
    /// Row indices and targets of the round at work.
    device: Option<(Buffer, Buffer)>,
}

/// Page-locked memory that may still be read by a copy.
#[derive(Debug)]
struct Staging {
    memory: Option<HostBuffer>,
    copied: Event,
}

impl<'a> DeviceHeads<'a> {
    /// Heads on rows of `table`: `views` rows a sample.
    pub fn new(
        session: &Session,
        table: &'a DeviceTable,
        views: usize,
        hidden: &[usize],
        objective: Objective,
        protocol: &Protocol,
    ) -> Result<Self> {
        let capacity = protocol.batch.max(VALIDATION_ROWS);
        let inputs = views * table.width;
        let rate = protocol.learning_rate;
        let group = HeadGroup::new(session, protocol.seed, inputs, hidden, objective, rate, capacity)?;
        let staging =
            || Ok::<_, gpu::Error>(Staging { memory: None, copied: Event::new(session.context())? });
        Ok(Self {
            session: session.clone(),
            table,
            group,
            staging: [staging()?, staging()?],
            turn: 0,
            device: None,
        })
    }

    /// Brings a round's indices and targets to the device without waiting for what it works on.
    fn bring(&mut self, rows: &[u8], targets: &[u8]) -> Result<()> {
        let context = self.session.context().clone();
        self.turn = 1 - self.turn;
        let slot = &mut self.staging[self.turn];
        let needed = rows.len() + targets.len();
        if slot.memory.as_ref().is_none_or(|memory| memory.len() < needed) {
            slot.memory = Some(context.allocate_host(needed)?);
        } else {
            slot.copied.wait()?;
        }
        let fits =
            |device: &&(Buffer, Buffer)| device.0.bytes() == rows.len() && device.1.bytes() == targets.len();
        if self.device.as_ref().filter(fits).is_none() {
            self.device = Some((context.allocate(rows.len())?, context.allocate(targets.len())?));
        }
        let (Some(memory), Some(device)) = (&mut slot.memory, &self.device) else { return Ok(()) };
        memory[..rows.len()].copy_from_slice(rows);
        memory[rows.len()..needed].copy_from_slice(targets);
        // SAFETY: the buffers are ours, and the page-locked memory is not written again before `copied`.
        unsafe {
            context.write(device.0.view(), &memory[..rows.len()])?;
            context.write(device.1.view(), &memory[rows.len()..needed])?;
        }
        Ok(slot.copied.record()?)
    }
}

impl Heads for DeviceHeads<'_> {
    fn begin_epoch(&mut self) -> Result<()> {
        self.group.reset_losses()
    }

    fn train(&mut self, samples: &Samples, batch: usize) -> Result<()> {
        let targets: &[u8] = match self.group.objective() {
            Objective::Classes(_) => bytemuck::cast_slice(&samples.labels),
            Objective::Numbers(_) => bytemuck::cast_slice(&samples.targets),
        };
        self.bring(bytemuck::cast_slice(&samples.rows), targets)?;
        let Some((rows, targets)) = &self.device else { return Ok(()) };
        let mut first = 0;
        while first < samples.count {
            let count = batch.max(1).min(samples.count - first);
            self.group.train(self.table, rows, targets, first, count)?;
            first += count;
        }
        Ok(())
    }

    fn losses(&mut self) -> Result<Vec<f64>> {
        self.group.losses()
    }

    fn predict(&mut self, samples: &Samples, _batch: usize) -> Result<Vec<f32>> {
        let rows = self.session.upload(&samples.rows)?;
        let mut outputs = Vec::new();
        let mut first = 0;
        while first < samples.count {
            let count = self.group.capacity().min(samples.count - first);
            outputs.extend(self.group.predict(self.table, &rows, first, count)?);
            first += count;
        }
        Ok(outputs)
    }
}
