//! The supervised baseline: the backbone and the evaluation head of one task, trained end to end.
//!
//! Classification: a linear layer on h, cross-entropy over both views. Rotation and translation: a 3-layer MLP on
//! [h_x, h_y], mean squared error. Colour: a linear layer on [h_x, h_y], mean squared error.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};
use model::{MlpHead, MlpHeadConfig};
use pose::Part as PosePart;

use crate::batch::{PairBatch, required};
use crate::config::{MethodConfig, Task};
use crate::method::{Embedding, Method, Part, PartName, Term};
use crate::registry::Registration;

pub(crate) const METHOD: Registration = Registration {
    name: "supervised",
    title: "Supervised",
    summary: "one network per task, trained end to end on its labels",
    preset: include_str!("../presets/paper/supervised.toml"),
    init: |config, builder| Ok(Box::new(Supervised::init(config, builder))),
    // Its published files hold heads under the names of their tasks; what is used of them is the backbone.
    learns_pose: false,
    recognise: |_| false,
};

/// See the module's first lines.
#[derive(Debug)]
pub struct Supervised {
    head: MlpHead,
    task: Task,
}

impl Supervised {
    /// Declares `head.*`.
    pub fn init(config: &MethodConfig, builder: &mut StoreBuilder) -> Self {
        Self { head: head(config).init(builder, "head."), task: config.network.task }
    }
}

/// The head of the supervised baseline: that of the task's evaluation.
fn head(config: &MethodConfig) -> MlpHeadConfig {
    let width = config.backbone().output_width();
    let pair = 2 * width;
    let numbers = |part: PosePart| part.width(config.transform.group().space);
    match config.network.task {
        Task::Classification => MlpHeadConfig { input: width, widths: vec![config.classes] },
        Task::Rotation => {
            MlpHeadConfig { input: pair, widths: vec![1024, 1024, numbers(PosePart::Rotation)] }
        }
        Task::Translation => {
            MlpHeadConfig { input: pair, widths: vec![1024, 1024, numbers(PosePart::Translation)] }
        }
        Task::Colour => MlpHeadConfig { input: pair, widths: vec![2] },
    }
}

impl Method for Supervised {
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }

    fn embed(&self, _: &mut Tape<'_>, _: &Var, _: &Var) -> Result<Vec<(PartName, Var)>> {
        Ok(Vec::new())
    }

    fn terms(&self, tape: &mut Tape<'_>, views: &[Embedding; 2], batch: &PairBatch) -> Result<Vec<Term>> {
        let [h_x, h_y] = views.each_ref().map(|view| &view.representation);
        let targets = &batch.targets;
        if self.task == Task::Classification {
            let labels = required(&targets.labels, "labels")?;
            let mut entropy = |h: &Var| {
                let logits = self.head.forward(tape, h)?;
                ops::class_cross_entropy(tape, &logits, labels)
            };
            let (first, second) = (entropy(h_x)?, entropy(h_y)?);
            let value = ops::weighted_sum(tape, &[(&first, 0.5), (&second, 0.5)])?;
            return Ok(vec![Term::new("class_loss", value, 1.0)]);
        }
        let pair = ops::concat(tape, &[h_x, h_y])?;
        let predicted = self.head.forward(tape, &pair)?;
        let target = match self.task {
            Task::Translation => {
                Var::constant(required(&targets.parts[PosePart::Translation], "translations")?.clone())
            }
            Task::Colour => Var::constant(required(&targets.hues, "hue differences")?.clone()),
            _ => Var::constant(required(&targets.parts[PosePart::Rotation], "rotations")?.clone()),
        };
        Ok(vec![Term::new("regression_loss", ops::mse(tape, &predicted, &target)?, 1.0)])
    }

    fn head(&self) -> Option<(&MlpHead, Task)> {
        Some((&self.head, self.task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::MethodName;

    #[test]
    fn heads_are_those_of_the_evaluation() {
        for (task, input, widths) in [
            (Task::Classification, 512, vec![55]),
            (Task::Rotation, 1024, vec![1024, 1024, 4]),
            (Task::Translation, 1024, vec![1024, 1024, 3]),
            (Task::Colour, 1024, vec![2]),
        ] {
            let mut config = MethodConfig::published(MethodName::SUPERVISED).unwrap();
            config.network.task = task;
            let head = head(&config);
            assert_eq!((head.input, head.widths), (input, widths), "{task}");
        }
    }
}
