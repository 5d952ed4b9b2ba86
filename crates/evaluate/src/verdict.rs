//! Whether an evaluated network has learnt anything about pose, by its probes.

use dataset::SplitBy;
use methods::verdict::{PosePart, PoseScore, PoseVerdict, learns};
use methods::{MethodName, Transform};
use pose::Space;

use crate::protocol::Task;
use crate::results::Results;

impl Results {
    /// What the probes say, the best of those on representations and on embeddings. Nothing for a network that was not
    /// told poses (or is untrained), and where no probe of them was asked for.
    pub fn pose_verdict(&self) -> Option<PoseVerdict> {
        let subject = &self.subject;
        let method: MethodName = subject.method.parse().ok()?;
        let transform: Transform = subject.trained_for.parse().ok()?;
        let task = subject.task.parse().unwrap_or(methods::Task::Classification);
        let parts = learns(method, transform, task).iter();
        let unseen = self.data.split == SplitBy::Objects && transform.group().space == Space::Object;
        let scores = parts.filter_map(|&part| self.pose_score(part, transform)).collect();
        PoseVerdict::of(scores, subject.steps, unseen)
    }

    fn pose_score(&self, part: PosePart, transform: Transform) -> Option<PoseScore> {
        let task = Task::of_part(part, transform.group().frame);
        let probes = [&self.representations, &self.embeddings].into_iter().filter_map(|all| all.get(&task));
        let best = probes.max_by(|a, b| a.value.value.total_cmp(&b.value.value))?;
        Some(PoseScore { part, r2: best.value.value, floor: best.floor })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::{Preset, Protocol};
    use crate::results::{Data, FORMAT, Measured, ProbeResult, Subject};

    fn results(method: &str, representation: f64, embedding: f64) -> Results {
        let probe = |value| {
            let value = Measured { value, spread: 0.01 };
            let probe = ProbeResult {
                value,
                top5: None,
                floor: 0.23,
                input_width: 8,
                curve: Vec::new(),
                by_object: Vec::new(),
            };
            BTreeMap::from([(Task::Rotation, probe)])
        };
        let trained_for = "rotation".to_owned();
        Results {
            format: FORMAT,
            subject: Subject { method: method.to_owned(), trained_for, ..Subject::default() },
            data: Data::default(),
            protocol: Protocol::new(Preset::Quick, 0, 10, 10),
            representations: probe(representation),
            embeddings: probe(embedding),
            retrieval: None,
            by_object: Default::default(),
            by_class: Default::default(),
            also: Vec::new(),
            device: String::new(),
            seconds: BTreeMap::new(),
        }
    }

    #[test]
    fn the_best_probe_decides_and_only_for_methods_that_are_told_poses() {
        let verdict = results("equicaps", 0.12, 0.25).pose_verdict().unwrap();
        assert!(!verdict.learnt && verdict.message.unwrap().contains("rotation R2 is 0.250 at best"));
        assert!(results("sie", 0.24, 0.4).pose_verdict().unwrap().learnt);
        for method in ["vicreg", "simclr", "supervised", "untrained"] {
            assert_eq!(results(method, 0.1, 0.1).pose_verdict(), None, "{method}");
        }
        let mut supervised = results("supervised", 0.1, 0.1);
        supervised.subject.task = "rotation".to_owned();
        assert!(!supervised.pose_verdict().unwrap().learnt);
    }
}
