//! A method that exists only here: what a new one needs is its own code, its preset and its registration. It is named
//! in a configuration, trained, probed, saved and used like the others.
#![allow(clippy::unwrap_used)]

use engine::{Device, Result, StoreBuilder, Tape, Var, ops};
use methods::{Embedding, Method, MethodConfig, PairBatch, Part, PartName, Registration, Term};
use model::Linear;
use train::checkpoint::Checkpoint;
use train::metrics::{self, Kind};
use train::weights::{self, Loaded};
use train::{Config, Outcome, Session, Start};

/// A linear projection whose two views are drawn together, and kept from shrinking.
#[derive(Debug)]
struct Together {
    projector: Linear,
    width: usize,
    weight: f64,
}

static TOGETHER: Registration = Registration {
    name: "together",
    title: "Together",
    summary: "a linear projection whose views are drawn together",
    preset: "[loss]\ninvariance = 2.5\n",
    init: |config, builder| Ok(Box::new(Together::init(config, builder))),
    learns_pose: false,
    recognise: |has| has("together."),
};

impl Together {
    fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        let width = config.network.projector[2];
        let input = config.backbone().output_width();
        let projector = Linear::init(builder, "together", input, width, true);
        Self { projector, width, weight: config.loss.invariance }
    }
}

impl Method for Together {
    fn parts(&self) -> Vec<Part> {
        vec![Part { name: PartName::Embedding, width: self.width }]
    }

    fn embed(&self, tape: &mut Tape<'_>, _: &Var, h: &Var) -> Result<Vec<(PartName, Var)>> {
        Ok(vec![(PartName::Embedding, self.projector.forward(tape, h)?)])
    }

    fn terms(&self, tape: &mut Tape<'_>, [x, y]: &[Embedding; 2], _: &PairBatch) -> Result<Vec<Term>> {
        let (e_x, e_y) = (x.part(PartName::Embedding)?, y.part(PartName::Embedding)?);
        Ok(vec![
            Term::new("repr_loss_inv", ops::mse(tape, e_x, e_y)?, self.weight),
            Term::new("std_loss", ops::variance_hinge(tape, e_x)?, 1.0),
        ])
    }
}

#[test]
fn a_method_of_ones_own_trains_is_probed_and_saved() {
    let method = methods::register(&TOGETHER).unwrap();
    assert!(methods::register(&TOGETHER).is_err());
    let mut settings = Config::settings("together", "demo").unwrap();
    for assignment in [
        "data=procedural:2x5",
        "batch=4",
        "epochs=1",
        "network.width=8",
        "procedural.views=4",
        "logging.every_steps=1",
        "probes.held_out_every=1",
    ] {
        settings.set(assignment).unwrap();
    }
    let config = Config::resolve(settings).unwrap();
    assert_eq!((config.method.name, config.method.loss.invariance), (method, 2.5));

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("run");
    let device = Device::cpu();
    let data = train::data::open(&config, &device).unwrap();
    let session = Session::begin(&root, config.clone(), data, Start::default(), &mut |_| ()).unwrap();
    let Outcome::Finished(path) = session.train(&mut |_| (), &|| false).unwrap() else {
        panic!("not finished")
    };

    let records = metrics::read(&root.join("metrics.jsonl")).unwrap();
    let steps: Vec<_> = records.iter().filter(|record| record.kind == Kind::Step).collect();
    assert_eq!(steps.len(), 2);
    for step in steps {
        let terms = 2.5 * step.value("loss/repr_loss_inv").unwrap() + step.value("loss/std_loss").unwrap();
        assert!((step.value("loss").unwrap() - terms).abs() < 1e-5, "{step:?}");
        assert!(step.value("probe/rotation_r2/embedding").is_some(), "{step:?}");
    }
    assert!(records.iter().any(|record| record.kind == Kind::HeldOut));

    let checkpoint = Checkpoint::read(&path).unwrap();
    assert_eq!(checkpoint.tensors["together.weight"].shape, [128, 64]);
    assert_eq!(Config::of_checkpoint(&path, &checkpoint).unwrap().method.name, method);
    let mut network = methods::Network::build(&config.method, &device, 9).unwrap();
    assert_eq!(weights::load_frozen(&mut network.store, &checkpoint).unwrap(), Loaded::Whole);
}
