//! Online probes: class and pose are read off the representation and the embeddings while they are learned. Their
//! inputs are detached, so they never touch the method; their losses, each with weight 1, are added to the method's
//! and go through the same optimiser step, as published. Parameters have the published names, `evaluator.*`.

use engine::ops;
use engine::{Initialise, Layout, ParameterId, Result, StoreBuilder, Tape, Tensor, Var};
use model::{Linear, MlpHead, MlpHeadConfig};
use pose::{Part, PerPart, Space};

use crate::batch::{PairTargets, TargetValues, required};
use crate::method::{Embedding, PartName, Place};
use crate::network::Model;
use crate::tally::{Tallies, Tally};

/// How the names of their parameters begin.
pub(crate) const PROBES: &str = "evaluator.";

/// What probes there are.
#[derive(Clone, Copy, Debug)]
pub struct ProbesConfig {
    /// Number of classes.
    pub classes: usize,
    /// What the views are of.
    pub space: Space,
    /// Whether there are differences of each part of a pose to predict.
    pub parts: PerPart<bool>,
}

#[derive(Clone, Debug)]
struct Probe {
    place: Place,
    classifier: Option<Linear>,
    parts: Vec<(Part, MlpHead)>,
}

/// All probes of a network.
#[derive(Clone, Debug)]
pub struct Probes {
    probes: Vec<Probe>,
    /// W2 and b2 of the routing to classes.
    routed_classes: Option<(ParameterId, ParameterId)>,
}

impl ProbesConfig {
    /// Declares the parameters, at the places that the method of `model` names.
    pub(crate) fn init(&self, model: &Model, builder: &mut StoreBuilder) -> Probes {
        let places = model.method().places(model.config().backbone().output_width());
        Probes {
            probes: places.into_iter().map(|place| self.probe(place, builder)).collect(),
            routed_classes: model.method().routed_classes().map(|(capsules, pose)| {
                let mut zeros = |name: &str, shape: &[usize]| {
                    let name = format!("{PROBES}classifier_emb_inv_caps.{name}");
                    builder.parameter(name, shape, Layout::Published, Initialise::Constant(0.0))
                };
                (zeros("W2", &[capsules, self.classes, pose]), zeros("b2", &[1, 1, capsules, self.classes]))
            }),
        }
    }

    fn probe(&self, place: Place, builder: &mut StoreBuilder) -> Probe {
        let pair = 2 * place.width;
        let mut head = |what: &str, outputs: usize| {
            place.pose.map(|ending| {
                let config = MlpHeadConfig { input: pair, widths: vec![pair, pair, outputs] };
                config.init(builder, &format!("{PROBES}predictor_{what}_{ending}."))
            })
        };
        let asked = Part::ALL.into_iter().filter(|&part| self.parts[part]);
        let parts = asked
            .filter_map(|part| {
                // Rotations have the published name.
                let name = if part == Part::Rotation { "angles" } else { part.name() };
                Some((part, head(name, part.width(self.space))?))
            })
            .collect();
        let classifier = place.class.map(|ending| {
            let name = format!("{PROBES}classifier_{ending}");
            Linear::init(builder, &name, place.width, self.classes, true)
        });
        Probe { place, classifier, parts }
    }
}

impl ProbesConfig {
    /// Probes of classes, and of these parts of an object's pose.
    pub fn of_objects(classes: usize, parts: &[Part]) -> Self {
        let mut config = Self { classes, space: Space::Object, parts: PerPart::default() };
        parts.iter().for_each(|&part| config.parts[part] = true);
        config
    }
}

/// The name in metrics of the R2 of a part of the pose.
fn r2_name(part: Part) -> String {
    format!("{}_r2", part.name())
}

/// What is compared with a probe's answer.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// Logits, with the classes.
    Class,
    /// Differences of a part of the pose, of so many numbers.
    Part(Part, usize),
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

    /// Puts others in their place: those on all rows of a batch.
    pub(crate) fn set_tensors(&mut self, tensors: Vec<Tensor>) {
        self.tensors = tensors;
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
    pub fn tallies(
        &self,
        targets: &TargetValues,
        answer: impl Fn(usize) -> Result<Vec<f32>>,
    ) -> Result<Tallies> {
        let mut tallies = Tallies::default();
        for (index, (place, task)) in self.0.iter().enumerate() {
            let values = answer(index)?;
            let (task, tally) = match *task {
                Task::Class => ("class_accuracy".to_owned(), Tally::accuracy(&values, &targets.labels)),
                Task::Part(part, _) => (r2_name(part), Tally::r2(&values, &targets.parts[part])),
            };
            tallies.add(format!("{task}/{place}"), tally);
        }
        for part in Part::ALL {
            let width = self.0.iter().find_map(|(_, task)| match *task {
                Task::Part(asked, width) if asked == part => Some(width),
                _ => None,
            });
            if let Some(width) = width {
                tallies.add_targets(&r2_name(part), width, &targets.parts[part]);
            }
        }
        Ok(tallies)
    }
}

impl Probes {
    /// Lets all probes answer on what the network made of both views. Gives their losses, weight 1 each (class losses
    /// in halves, one per view), and their answers.
    pub(crate) fn forward(
        &self,
        tape: &mut Tape<'_>,
        views: &[Embedding; 2],
        targets: &PairTargets,
    ) -> Result<(Vec<(Var, f32)>, Answers)> {
        let labels = required(&targets.labels, "labels")?;
        let (mut losses, mut answers) = (Vec::new(), Answers::default());
        for probe in &self.probes {
            let place = probe.place;
            let values = [place.values(tape, &views[0])?, place.values(tape, &views[1])?];
            if let Some(classifier) = &probe.classifier {
                for view in &values {
                    let logits = classifier.forward(tape, view)?;
                    losses.push((ops::class_cross_entropy(tape, &logits, labels)?, 0.5));
                    answers.push(place.name, Task::Class, &logits);
                }
            }
            if probe.parts.is_empty() {
                continue;
            }
            let pair = ops::concat(tape, &[&values[0], &values[1]])?;
            for (part, head) in &probe.parts {
                let wanted = Var::constant(required(&targets.parts[*part], part.name())?.clone());
                let answer = head.forward(tape, &pair)?;
                losses.push((ops::mse(tape, &answer, &wanted)?, 1.0));
                let width = wanted.value().dims().last().copied().unwrap_or(0);
                answers.push(place.name, Task::Part(*part, width), &answer);
            }
        }
        if let Some((w2, b2)) = self.routed_classes {
            for view in views {
                let activations = view.part(PartName::Activations)?.detach();
                let poses = view.part(PartName::Poses)?.detach();
                let (w2, b2) = (tape.parameter(w2), tape.parameter(b2));
                // Probabilities, taken for logits: so it is published.
                let logits = ops::routing_activations(tape, &activations, &poses, &w2, &b2)?;
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
        let place = Place::of_representation("representation", "repr", 0, 2, (true, true));
        let config = ProbesConfig::of_objects(3, &[Part::Rotation]);
        let mut builder = StoreBuilder::new();
        let probes = Probes { probes: vec![config.probe(place, &mut builder)], routed_classes: None };
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
        let mut targets = PairTargets {
            labels: Some(Tensor::from_slice(&device, [1], &[label as i32]).unwrap()),
            ..PairTargets::default()
        };
        targets.parts[Part::Rotation] = Some(tensor(&quaternion));
        let views =
            views.map(|view| Embedding { representation: Var::constant(tensor(&view)), parts: Vec::new() });
        let mut tape = Tape::training(&mut store);
        let (losses, answers) = probes.forward(&mut tape, &views, &targets).unwrap();
        assert_eq!((losses.len(), answers.tensors().len()), (3, 3));
        for ((value, weight), (wanted, wanted_weight)) in losses.iter().zip(wanted) {
            let value = f64::from(value.value().scalar().unwrap());
            assert!((value - wanted).abs() < 1e-5 && *weight == wanted_weight, "{value} {wanted} {weight}");
        }
    }
}
