//! Online probes: class and pose are read off the representation and the embeddings while they are learned. Their
//! inputs are detached, so they never touch the method; their losses, each with weight 1, are added to the method's
//! and go through the same optimiser step, as published. Parameters have the published names, `evaluator.*`.

use engine::ops;
use engine::{Initialise, Layout, ParameterId, Result, StoreBuilder, Tape, Tensor, Var};
use model::{Linear, MlpHead, MlpHeadConfig};
use pose::{FrameKind, ViewPose};

use crate::batches::PairBatch;
use crate::tally::{Tallies, Tally};

/// One place that is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// `representation`, `activations`, `poses`, `embedding`, ...
    pub name: &'static str,
    /// Its width.
    pub width: usize,
    /// Whether classes are read off it.
    pub class: bool,
    /// Whether poses are read off it.
    pub pose: bool,
}

impl Place {
    /// The published endings of its classifier's and its pose predictor's names.
    fn endings(&self) -> (&'static str, &'static str) {
        match self.name {
            "representation" => ("repr", "repr"),
            "invariant_half" => ("repr_inv", "repr_inv"),
            "equivariant_half" => ("repr_equi", "repr_equi"),
            "activations" | "invariant" => ("emb_inv", "inv_emb"),
            "poses" | "equivariant" => ("emb_equiv", "equi_emb"),
            _ => ("emb", "emb"),
        }
    }
}

/// What probes there are.
#[derive(Clone, Debug)]
pub struct ProbesConfig {
    /// Number of classes.
    pub classes: usize,
    /// The frame of the translation to predict, where there is one.
    pub translation: Option<FrameKind>,
    /// The places.
    pub places: Vec<Place>,
    /// Capsules and numbers in a pose, for the classifier that routes capsules to classes.
    pub capsules: Option<(usize, usize)>,
}

#[derive(Clone, Debug)]
struct Probe {
    place: &'static str,
    classifier: Option<Linear>,
    rotation: Option<MlpHead>,
    translation: Option<MlpHead>,
}

/// All probes of a network.
#[derive(Clone, Debug)]
pub struct Probes {
    probes: Vec<Probe>,
    /// W2 and b2 of the routing to classes.
    capsule_classifier: Option<(ParameterId, ParameterId)>,
    frame: Option<FrameKind>,
}

impl ProbesConfig {
    /// Declares the parameters.
    pub fn init(&self, builder: &mut StoreBuilder) -> Probes {
        let mut probes = Vec::new();
        for place in &self.places {
            let (class_ending, pose_ending) = place.endings();
            let pair = 2 * place.width;
            let mut head = |what: &str, outputs: usize| {
                let config = MlpHeadConfig { input: pair, widths: vec![pair, pair, outputs] };
                config.init(builder, &format!("evaluator.predictor_{what}_{pose_ending}."))
            };
            let rotation = place.pose.then(|| head("angles", 4));
            let translation = self.translation.filter(|_| place.pose).map(|_| head("translation", 3));
            let name = format!("evaluator.classifier_{class_ending}");
            let classifier =
                place.class.then(|| Linear::init(builder, &name, place.width, self.classes, true));
            probes.push(Probe { place: place.name, classifier, rotation, translation });
        }
        let capsule_classifier = self.capsules.map(|(capsules, pose)| {
            let mut zeros = |name: &str, shape: &[usize]| {
                let name = format!("evaluator.classifier_emb_inv_caps.{name}");
                builder.parameter(name, shape, Layout::Published, Initialise::Constant(0.0))
            };
            (zeros("W2", &[capsules, self.classes, pose]), zeros("b2", &[1, 1, capsules, self.classes]))
        });
        Probes { probes, capsule_classifier, frame: self.translation }
    }
}

/// What the probes are to find.
#[derive(Debug)]
pub struct Targets {
    /// Classes: (pairs).
    pub labels: Vec<i32>,
    /// Quaternions: (pairs, 4).
    pub rotation: Vec<f32>,
    /// Translations: (pairs, 3).
    pub translation: Option<Vec<f32>>,
}

/// The same on the device.
#[derive(Clone, Debug)]
pub struct TargetTensors {
    /// Classes: (pairs).
    pub labels: Tensor,
    /// Quaternions: (pairs, 4).
    pub rotation: Tensor,
    /// Translations: (pairs, 3).
    pub translation: Option<Tensor>,
}

impl Targets {
    /// The targets of a batch; translations in `frame`.
    pub fn new(batch: &PairBatch<'_>, frame: Option<FrameKind>) -> Self {
        fn single<const N: usize>(values: [f64; N]) -> [f32; N] {
            values.map(|value| value as f32)
        }
        let pairs = || batch.poses.iter();
        let rotation = pairs().flat_map(|[a, b]| single(ViewPose::relative_quaternion(a, b).to_array()));
        let translation = frame.map(|frame| {
            pairs().flat_map(|[a, b]| single(ViewPose::translation_difference(frame, a, b))).collect()
        });
        Self { labels: batch.labels.clone(), rotation: rotation.collect(), translation }
    }
}

/// What is compared with a probe's answer.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Logits, with the classes.
    Class,
    /// Quaternions.
    Rotation,
    /// Translations.
    Translation,
}

/// What the probes said about a batch.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    names: Vec<(&'static str, Task)>,
    tensors: Vec<Tensor>,
}

impl Answers {
    fn push(&mut self, place: &'static str, task: Task, answer: &Var) {
        self.names.push((place, task));
        self.tensors.push(answer.value().clone());
    }

    /// The answers on the device.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// What the answers are about.
    pub fn questions(&self) -> Questions {
        Questions(self.names.clone())
    }
}

/// What the answers of [`Answers`] are about, in order.
#[derive(Clone, Debug)]
pub struct Questions(Vec<(&'static str, Task)>);

impl Questions {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scores of `answer(index)` for each index.
    pub fn tallies(&self, targets: &Targets, answer: impl Fn(usize) -> Result<Vec<f32>>) -> Result<Tallies> {
        let mut tallies = Tallies::default();
        for (index, (place, task)) in self.0.iter().enumerate() {
            let values = answer(index)?;
            let (task, tally) = match task {
                Task::Class => ("class_accuracy", Tally::accuracy(&values, &targets.labels)),
                Task::Rotation => ("rotation_r2", Tally::r2(&values, &targets.rotation)),
                Task::Translation => {
                    ("translation_r2", Tally::r2(&values, targets.translation.as_deref().unwrap_or_default()))
                }
            };
            tallies.add(format!("{task}/{place}"), tally);
        }
        Ok(tallies)
    }
}

impl Probes {
    /// The frame of the translations that are predicted.
    pub fn frame(&self) -> Option<FrameKind> {
        self.frame
    }

    /// Lets all probes answer on `features`, which hold both views of every place. Gives their losses, weight 1 each
    /// (class losses in halves, one per view), and their answers.
    pub fn forward(
        &self,
        tape: &mut Tape<'_>,
        features: &[(&'static str, [Var; 2])],
        targets: &TargetTensors,
    ) -> Result<(Vec<(Var, f32)>, Answers)> {
        let labels = &targets.labels;
        let rotations = Var::constant(targets.rotation.clone());
        let translations = targets.translation.clone().map(Var::constant);
        let find = |place: &str| {
            let found = features.iter().find(|(name, _)| *name == place);
            found.map(|(_, views)| views.each_ref().map(Var::detach))
        };
        let (mut losses, mut answers) = (Vec::new(), Answers::default());
        for probe in &self.probes {
            let Some(views) = find(probe.place) else { continue };
            if let Some(classifier) = &probe.classifier {
                for view in &views {
                    let logits = classifier.forward(tape, view)?;
                    losses.push((ops::class_cross_entropy(tape, &logits, labels)?, 0.5));
                    answers.push(probe.place, Task::Class, &logits);
                }
            }
            if probe.rotation.is_none() && probe.translation.is_none() {
                continue;
            }
            let pair = ops::concat(tape, &[&views[0], &views[1]])?;
            if let Some(head) = &probe.rotation {
                let answer = head.forward(tape, &pair)?;
                losses.push((ops::mse(tape, &answer, &rotations)?, 1.0));
                answers.push(probe.place, Task::Rotation, &answer);
            }
            if let (Some(head), Some(translations)) = (&probe.translation, &translations) {
                let answer = head.forward(tape, &pair)?;
                losses.push((ops::mse(tape, &answer, translations)?, 1.0));
                answers.push(probe.place, Task::Translation, &answer);
            }
        }
        if let (Some((w2, b2)), Some(activations), Some(poses)) =
            (self.capsule_classifier, find("activations"), find("poses"))
        {
            for (activations, poses) in activations.iter().zip(&poses) {
                let (w2, b2) = (tape.parameter(w2), tape.parameter(b2));
                // Probabilities, taken for logits: so it is published.
                let logits = ops::routing_activations(tape, activations, poses, &w2, &b2)?;
                losses.push((ops::class_cross_entropy(tape, &logits, labels)?, 0.5));
                answers.push("capsules", Task::Class, &logits);
            }
        }
        Ok((losses, answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Device, State};

    #[test]
    fn losses_are_halves_for_classes_and_whole_for_rotations_of_the_pair_in_order() {
        let place = Place { name: "representation", width: 2, class: true, pose: true };
        let config = ProbesConfig { classes: 3, translation: None, places: vec![place], capsules: None };
        let mut builder = StoreBuilder::new();
        let probes = config.init(&mut builder);
        let device = Device::cpu();
        let mut store = builder.build(&device, 4).unwrap();
        let parameter = |name: &str| -> Vec<f64> {
            let id = store.find(&format!("evaluator.{name}")).unwrap();
            store.export(State::Value, id).unwrap().into_iter().map(f64::from).collect()
        };
        let layer = |name: &str, x: &[f64]| -> Vec<f64> {
            let (weight, bias) = (parameter(&format!("{name}.weight")), parameter(&format!("{name}.bias")));
            let row = |(row, bias): (&[f64], &f64)| bias + row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
            weight.chunks(x.len()).zip(&bias).map(row).collect()
        };
        let views = [[0.3_f64, -0.8], [1.2, 0.5]];
        let (label, quaternion) = (2, [0.1, -0.2, 0.3, 0.9]);
        let cross_entropy = |x: &[f64]| {
            let logits = layer("classifier_repr", x);
            logits.iter().map(|logit| logit.exp()).sum::<f64>().ln() - logits[label]
        };
        let mut x = views.concat();
        for name in [0, 2, 4].map(|index| format!("predictor_angles_repr.{index}")) {
            if !name.ends_with('0') {
                x.iter_mut().for_each(|x| *x = x.max(0.0));
            }
            x = layer(&name, &x);
        }
        let error: f64 = x.iter().zip(quaternion).map(|(x, q)| (x - q).powi(2)).sum::<f64>() / 4.0;
        let wanted = [(cross_entropy(&views[0]), 0.5), (cross_entropy(&views[1]), 0.5), (error, 1.0)];

        let tensor = |values: &[f64]| {
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            Tensor::from_slice(&device, [1, values.len()], &values).unwrap()
        };
        let targets = TargetTensors {
            labels: Tensor::from_slice(&device, [1], &[label as i32]).unwrap(),
            rotation: tensor(&quaternion),
            translation: None,
        };
        let features = [("representation", views.map(|view| Var::constant(tensor(&view))))];
        let mut tape = Tape::training(&mut store);
        let (losses, answers) = probes.forward(&mut tape, &features, &targets).unwrap();
        assert_eq!((losses.len(), answers.tensors().len()), (3, 3));
        for ((value, weight), (wanted, wanted_weight)) in losses.iter().zip(wanted) {
            let value = f64::from(value.value().scalar().unwrap());
            assert!((value - wanted).abs() < 1e-5 && *weight == wanted_weight, "{value} {wanted} {weight}");
        }
    }
}
