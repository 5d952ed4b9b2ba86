//! The supervised baseline: the backbone and the evaluation head of one task, trained end to end.
//!
//! Classification: a linear layer on h, cross-entropy over both views. Rotation, translation and other parts of poses: a
//! 3-layer MLP on [h_x, h_y], mean squared error. Colour: a linear layer on [h_x, h_y], mean squared error.

use engine::ops;
use engine::{Result, StoreBuilder, Tape, Var};
use model::{MlpHead, MlpHeadConfig};

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
    match config.network.task.part() {
        Some(part) => {
            let numbers = part.width(config.transform.group().space);
            MlpHeadConfig { input: pair, widths: vec![1024, 1024, numbers] }
        }
        None if config.network.task == Task::Colour => MlpHeadConfig { input: pair, widths: vec![2] },
        None => MlpHeadConfig { input: width, widths: vec![config.classes] },
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
        let target = match self.task.part() {
            Some(part) => required(&targets.parts[part], part.name())?,
            None => required(&targets.hues, "hue differences")?,
        };
        let target = Var::constant(target.clone());
        Ok(vec![Term::new("regression_loss", ops::mse(tape, &predicted, &target)?, 1.0)])
    }

    fn head(&self) -> Option<(&MlpHead, Task)> {
        Some((&self.head, self.task))
    }
}

#[cfg(test)]
mod tests {
    use pose::Group;

    use super::*;
    use crate::config::Transform;
    use crate::registry::MethodName;

    #[test]
    fn heads_are_those_of_the_evaluation() {
        let (object, image) = (Transform::from(Group::AFFINE), Transform::from(Group::IMAGE_HOMOGRAPHY));
        for (task, transform, input, widths) in [
            (Task::Classification, object, 512, vec![55]),
            (Task::Rotation, object, 1024, vec![1024, 1024, 4]),
            (Task::Translation, object, 1024, vec![1024, 1024, 3]),
            (Task::Scale, object, 1024, vec![1024, 1024, 3]),
            (Task::Shear, image, 1024, vec![1024, 1024, 1]),
            (Task::Perspective, image, 1024, vec![1024, 1024, 2]),
            (Task::Colour, object, 1024, vec![2]),
        ] {
            let mut config = MethodConfig::published(MethodName::SUPERVISED).unwrap();
            (config.network.task, config.transform) = (task, transform);
            let head = head(&config);
            assert_eq!((head.input, head.widths), (input, widths), "{task}");
        }
    }
}
