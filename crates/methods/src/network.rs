//! A backbone and a method over one parameter store.

use engine::ops::{self, Images};
use engine::{Device, Error, ParameterStore, Result, StoreBuilder, Tape, Tensor, Var};
use model::Backbone;

use crate::batch::PairBatch;
use crate::config::MethodConfig;
use crate::method::{Embedding, Method, Term};

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

/// The loss of a batch on the tape.
#[derive(Debug)]
pub struct Loss {
    /// The weighted sum of the terms.
    pub total: Var,
    /// The terms.
    pub terms: Vec<Term>,
    /// What the network made of both views.
    pub views: [Embedding; 2],
}

impl Model {
    /// Declares all parameters in `builder`: `backbone.*`, then the method's.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Result<Self> {
        if let Some(detail) = config.too_large() {
            return Err(Error::shape("network", detail));
        }
        let (sizes, network) = (config.backbone(), &config.network);
        if let Some(detail) = sizes.refuses(config.image_size) {
            return Err(Error::shape("network", detail));
        }
        if network.capsules == 0 || network.projector.is_empty() || network.projector.contains(&0) {
            let detail = "capsules and the projector's widths must be positive";
            return Err(Error::shape("network", detail));
        }
        let backbone = sizes.init(builder, "backbone.", config.image_size);
        let method = config.name.init(config, builder)?;
        Ok(Self { config: config.clone(), backbone, method })
    }

    /// The configuration.
    pub fn config(&self) -> &MethodConfig {
        &self.config
    }

    /// The method.
    pub fn method(&self) -> &dyn Method {
        &*self.method
    }

    /// Whether backward computes the inside of the backbone's blocks again instead of keeping it: less memory, more
    /// time, the same numbers.
    pub fn set_recompute(&mut self, recompute: bool) {
        self.backbone.set_recompute(recompute);
    }

    /// The loss of a batch. Views pass one after the other, view 1 first, so that batch-norm statistics are per view.
    pub fn loss(&self, tape: &mut Tape<'_>, batch: &PairBatch) -> Result<Loss> {
        let [first, second] = &batch.views;
        if first.pixels.shape() != second.pixels.shape() {
            let detail = format!("view 1 {}, view 2 {}", first.pixels.shape(), second.pixels.shape());
            return Err(Error::shape("batch", detail));
        }
        let views = self.views(tape, [first, second])?;
        let terms = if tape.collective().is_shared() {
            self.terms_of_all_ranks(tape, &views, batch)?
        } else {
            self.method.terms(tape, &views, batch)?
        };
        let weighted: Vec<(&Var, f32)> = terms.iter().map(|term| (&term.value, term.weight)).collect();
        let total = ops::weighted_sum(tape, &weighted)?;
        Ok(Loss { total, terms, views })
    }

    /// The terms of the whole batch, of which `views` and `batch` are this rank's share: embeddings and targets are
    /// gathered, and every rank computes all terms.
    fn terms_of_all_ranks(
        &self,
        tape: &mut Tape<'_>,
        views: &[Embedding; 2],
        batch: &PairBatch,
    ) -> Result<Vec<Term>> {
        let [x, y] = views;
        let whole = [self.gathered(tape, x)?, self.gathered(tape, y)?];
        let count = tape.whole_rows(batch.len());
        let targets = batch.targets.gathered(&**tape.collective(), &tape.device(), count)?;
        let batch = PairBatch { views: batch.views.clone(), targets, whole: None };
        tape.replicated(|tape| self.method.terms(tape, &whole, &batch))
    }

    /// What all ranks made of a view.
    fn gathered(&self, tape: &mut Tape<'_>, view: &Embedding) -> Result<Embedding> {
        let mut whole = view.clone();
        if self.method.terms_use_representation() {
            whole.representation = ops::gather_ranks(tape, &view.representation)?;
        }
        for (_, part) in &mut whole.parts {
            *part = ops::gather_ranks(tape, part)?;
        }
        Ok(whole)
    }

    /// What the network makes of both views of a batch.
    pub(crate) fn views(&self, tape: &mut Tape<'_>, images: [&Images; 2]) -> Result<[Embedding; 2]> {
        let maps = [self.backbone.map(tape, images[0])?, self.backbone.map(tape, images[1])?];
        let h = [self.representation(tape, &maps[0])?, self.representation(tape, &maps[1])?];
        let parts = [self.method.embed(tape, &maps[0], &h[0])?, self.method.embed(tape, &maps[1], &h[1])?];
        let ([h_x, h_y], [x, y]) = (h, parts);
        Ok([Embedding { representation: h_x, parts: x }, Embedding { representation: h_y, parts: y }])
    }

    /// What the network makes of images: the representation, and the parts of the embedding.
    pub fn embed(&self, tape: &mut Tape<'_>, images: &Images) -> Result<Embedding> {
        let map = self.backbone.map(tape, images)?;
        let representation = self.representation(tape, &map)?;
        let parts = self.method.embed(tape, &map, &representation)?;
        Ok(Embedding { representation, parts })
    }

    /// The representation h of images alone: (n, width).
    pub(crate) fn represent(&self, tape: &mut Tape<'_>, images: &Images) -> Result<Var> {
        let map = self.backbone.map(tape, images)?;
        self.representation(tape, &map)
    }

    fn representation(&self, tape: &mut Tape<'_>, map: &Var) -> Result<Var> {
        // A method that works on the map alone needs no gradient through the pooling.
        let map = if self.method.uses_representation() { map.clone() } else { map.detach() };
        self.backbone.representation(tape, &map)
    }
}

impl Network {
    /// A network with the published initialisation by `seed`.
    pub fn build(config: &MethodConfig, device: &Device, seed: u64) -> Result<Self> {
        Self::build_with(config, device, seed, |_, _| ()).map(|(network, ())| network)
    }

    /// As [`Self::build`], with more parameters (those of online probes) declared by `more`.
    pub(crate) fn build_with<T>(
        config: &MethodConfig,
        device: &Device,
        seed: u64,
        more: impl FnOnce(&Model, &mut StoreBuilder) -> T,
    ) -> Result<(Self, T)> {
        let mut builder = StoreBuilder::new();
        let model = Model::init(config, &mut builder)?;
        let more = more(&model, &mut builder);
        Ok((Self { store: builder.build(device, seed)?, model }, more))
    }

    /// The representation h of images in evaluation mode, row by row.
    pub fn features(&mut self, images: &Images) -> Result<Vec<f32>> {
        let mut tape = Tape::inference(&mut self.store);
        self.model.represent(&mut tape, images)?.value().to_f32()
    }

    /// What the network makes of images in evaluation mode.
    pub fn embed(&mut self, images: &Images) -> Result<Embedding> {
        self.model.embed(&mut Tape::inference(&mut self.store), images)
    }

    /// The embedding of view 2 that the method predicts from that of view 1, (n, width), and the transformation's
    /// parameters; see [`Method::predict`].
    pub fn predict(&mut self, embedding: Tensor, parameters: &Tensor) -> Result<Tensor> {
        let mut tape = Tape::inference(&mut self.store);
        let predicted = self.model.method.predict(&mut tape, &Var::constant(embedding), parameters)?;
        Ok(predicted.value().clone())
    }

    /// What the network's own head says of representations: those of one view, or of two, side by side. `None` where
    /// the method has no head.
    pub fn answer(&mut self, representations: Tensor) -> Result<Option<Tensor>> {
        let Some((head, _)) = self.model.method.head() else { return Ok(None) };
        let mut tape = Tape::inference(&mut self.store);
        Ok(Some(head.forward(&mut tape, &Var::constant(representations))?.value().clone()))
    }
}
