//! A backbone and a method over one parameter store, and one training step of them.

use engine::ops::{self, Images};
use engine::{AdamConfig, Device, Error, ParameterStore, Result, StoreBuilder, Tape, Var};
use model::Backbone;

use crate::batch::PairBatch;
use crate::config::{MethodConfig, MethodName};
use crate::terms::{Method, Outputs, Term, Views};
use crate::{capsie, equicaps, equimod, sen, sie, simclr, simclr_augself, supervised, vicreg};

/// The layers of a network, without their parameters.
#[derive(Debug)]
pub struct Model {
    config: MethodConfig,
    backbone: Backbone,
    method: Box<dyn Method>,
}

/// A network: layers and parameters.
#[derive(Debug)]
pub struct Network {
    /// The parameters.
    pub store: ParameterStore,
    /// The layers.
    pub model: Model,
}

/// What a training step did.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// The total loss.
    pub loss: f32,
    /// The terms before their weights, by their published names.
    pub terms: Vec<(&'static str, f32)>,
}

/// The loss of a batch on the tape.
#[derive(Debug)]
pub struct Loss {
    /// The weighted sum of the terms.
    pub total: Var,
    /// The terms.
    pub terms: Vec<Term>,
    /// What probes look at.
    pub outputs: Outputs,
}

impl Model {
    /// Declares all parameters in `builder`: `backbone.*`, then the method's.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Result<Self> {
        check(config)?;
        let backbone = config.backbone.init(builder, "backbone.", config.image_size);
        let method: Box<dyn Method> = match config.method {
            MethodName::Supervised => Box::new(supervised::Supervised::init(config, builder)),
            MethodName::VicReg => Box::new(vicreg::VicReg::init(config, builder)),
            MethodName::SimClr => Box::new(simclr::SimClr::init(config, builder)),
            MethodName::SimClrAugSelf => Box::new(simclr_augself::SimClrAugSelf::init(config, builder)),
            MethodName::Sen => Box::new(sen::Sen::init(config, builder)),
            MethodName::EquiMod => Box::new(equimod::EquiMod::init(config, builder)),
            MethodName::Sie => Box::new(sie::Sie::init(config, builder)),
            MethodName::CapsIe => Box::new(capsie::CapsIe::init(config, builder)),
            MethodName::EquiCaps => Box::new(equicaps::EquiCaps::init(config, builder)),
        };
        Ok(Self { config: config.clone(), backbone, method })
    }

    /// The configuration.
    pub fn config(&self) -> &MethodConfig {
        &self.config
    }

    /// Whether backward computes the inside of the backbone's blocks again instead of keeping it: less memory, more
    /// time, the same numbers.
    pub fn set_recompute(&mut self, recompute: bool) {
        self.backbone.set_recompute(recompute);
    }

    /// The loss of a batch. Views pass one after the other, view 1 first.
    pub fn loss(&self, tape: &mut Tape<'_>, batch: &PairBatch) -> Result<Loss> {
        let [first, second] = &batch.views;
        if first.pixels.shape() != second.pixels.shape() {
            let detail = format!("view 1 {}, view 2 {}", first.pixels.shape(), second.pixels.shape());
            return Err(Error::shape("batch", detail));
        }
        let views = self.views(tape, [first, second])?;
        let embeddings = self.method.embed(tape, &views)?;
        let terms = self.method.terms(tape, &views, &embeddings, batch)?;
        let weighted: Vec<(&Var, f32)> = terms.iter().map(|term| (&term.value, term.weight)).collect();
        let total = ops::weighted_sum(tape, &weighted)?;
        Ok(Loss { total, terms, outputs: Outputs { representations: views.representations, embeddings } })
    }

    /// The representation h and the embedding of one batch of images each, without a loss.
    pub fn outputs(&self, tape: &mut Tape<'_>, images: [&Images; 2]) -> Result<Outputs> {
        let views = self.views(tape, images)?;
        let embeddings = self.method.embed(tape, &views)?;
        Ok(Outputs { representations: views.representations, embeddings })
    }

    /// The representation h of images: (n, width).
    pub fn represent(&self, tape: &mut Tape<'_>, images: &Images) -> Result<Var> {
        let map = self.backbone.map(tape, images)?;
        self.backbone.representation(tape, &map)
    }

    fn views(&self, tape: &mut Tape<'_>, images: [&Images; 2]) -> Result<Views> {
        let maps = [self.backbone.map(tape, images[0])?, self.backbone.map(tape, images[1])?];
        let mut representation = |map: &Var| {
            // A method that works on the map alone needs no gradient through the pooling.
            let map = if self.method.uses_representation() { map.clone() } else { map.detach() };
            self.backbone.representation(tape, &map)
        };
        let representations = [representation(&maps[0])?, representation(&maps[1])?];
        Ok(Views { maps, representations })
    }
}

impl Network {
    /// A network with the published initialisation by `seed`.
    pub fn build(config: &MethodConfig, device: &Device, seed: u64) -> Result<Self> {
        Self::build_with(config, device, seed, |_| Ok(())).map(|(network, ())| network)
    }

    /// As [`Self::build`], with more parameters (those of online probes) declared by `more`.
    pub fn build_with<T>(
        config: &MethodConfig,
        device: &Device,
        seed: u64,
        more: impl FnOnce(&mut StoreBuilder) -> Result<T>,
    ) -> Result<(Self, T)> {
        let mut builder = StoreBuilder::new();
        let model = Model::init(config, &mut builder)?;
        let more = more(&mut builder)?;
        Ok((Self { store: builder.build(device, seed)?, model }, more))
    }

    /// One training step: forward of both views, loss, backward, Adam.
    pub fn step(&mut self, batch: &PairBatch, adam: &AdamConfig) -> Result<StepReport> {
        let report = self.gradients(batch)?;
        self.store.adam_step(adam)?;
        Ok(report)
    }

    /// Forward and backward: leaves the gradients in the store.
    pub fn gradients(&mut self, batch: &PairBatch) -> Result<StepReport> {
        self.store.clear_gradients();
        let mut tape = Tape::training(&mut self.store);
        let loss = self.model.loss(&mut tape, batch)?;
        tape.backward(&loss.total)?;
        StepReport::read(&loss)
    }

    /// The representation h of images in evaluation mode, row by row.
    pub fn features(&mut self, images: &Images) -> Result<Vec<f32>> {
        let mut tape = Tape::inference(&mut self.store);
        self.model.represent(&mut tape, images)?.value().to_f32()
    }
}

impl StepReport {
    /// Reads the numbers of a loss.
    pub fn read(loss: &Loss) -> Result<Self> {
        let mut terms = Vec::new();
        for term in &loss.terms {
            terms.push((term.name, term.value.value().scalar()?));
        }
        Ok(Self { loss: loss.total.value().scalar()?, terms })
    }
}

fn check(config: &MethodConfig) -> Result<()> {
    let refuse = |detail: String| Err(Error::shape("network", detail));
    if let Some(detail) = config.backbone.refuses(config.image_size) {
        return refuse(detail);
    }
    if config.capsules == 0 || config.projector.is_empty() || config.projector.contains(&0) {
        return refuse("capsules and the projector's widths must be positive".to_owned());
    }
    let capsules = matches!(config.method, MethodName::EquiCaps | MethodName::CapsIe);
    if config.method == MethodName::EquiCaps && config.pose_matrix_side() != config.transform.matrix_side() {
        let (pose, matrix) = (config.pose_matrix_side(), config.transform.matrix_side());
        return refuse(format!("poses of side {pose} cannot be multiplied by matrices of side {matrix}"));
    }
    if !capsules && config.method == MethodName::Sie && !config.backbone.output_width().is_multiple_of(2) {
        return refuse("SIE needs a representation of even width".to_owned());
    }
    Ok(())
}
