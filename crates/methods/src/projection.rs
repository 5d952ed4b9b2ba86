//! An MLP projector and the part of the embedding that it makes.

use engine::{Result, StoreBuilder, Tape, Var};
use model::{MlpProjector, MlpProjectorConfig};

use crate::config::MethodConfig;
use crate::method::{Part, PartName, Projector};

/// See the module's first line.
#[derive(Debug)]
pub(crate) struct Projection {
    layers: MlpProjector,
    part: Part,
    prefix: &'static str,
    sizes: MlpProjectorConfig,
}

impl Projection {
    /// Declares `prefix.*`, on `input` numbers.
    pub(crate) fn init(
        config: &MethodConfig,
        builder: &mut StoreBuilder,
        (name, prefix): (PartName, &'static str),
        input: usize,
    ) -> Self {
        let sizes = MlpProjectorConfig { input, widths: config.network.projector.clone() };
        let part = Part { name, width: sizes.output_width() };
        Self { layers: sizes.init(builder, prefix), part, prefix, sizes }
    }

    /// Its layers, where it reads the representation from the column `first` on.
    pub(crate) fn describe(&self, first: usize) -> Projector {
        let MlpProjectorConfig { input, widths } = self.sizes.clone();
        Projector::Perceptron { part: self.part.name, prefix: self.prefix, first, input, widths }
    }

    /// What it makes.
    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// The part for rows of inputs.
    pub(crate) fn forward(&self, tape: &mut Tape<'_>, input: &Var) -> Result<(PartName, Var)> {
        Ok((self.part.name, self.layers.forward(tape, input)?))
    }
}
