//! Whether a network has learnt anything about pose: its scores against their floors, said in one sentence.

pub use pose::Part as PosePart;
use serde::Serialize;

use crate::config::{Task, Transform};
use crate::floor::{FLOOR_MARGIN, is_at_floor};
use crate::registry::MethodName;

/// What `method` learns of poses when it is trained for `transform`, or, supervised, for `task`; nothing for a method
/// that is not told them.
pub fn learns(method: MethodName, transform: Transform, task: Task) -> &'static [PosePart] {
    const ALL: &[PosePart] = &PosePart::ALL;
    match (method == MethodName::SUPERVISED, task.part()) {
        (true, Some(part)) => &ALL[part as usize..=part as usize],
        (true, None) => &[],
        (false, _) if !method.learns_pose() => &[],
        (false, _) => transform.group().parts,
    }
}

/// The best R2 of a part of the pose on held-out views, with its floor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PoseScore {
    /// Of what.
    pub part: PosePart,
    /// The best R2 of all probes.
    pub r2: f64,
    /// What is reached without information.
    pub floor: f64,
}

/// Whether a pose was learnt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoseVerdict {
    /// Whether any part of it was.
    pub learnt: bool,
    /// The scores that say so.
    pub scores: Vec<PoseScore>,
    /// Up to this much above its floor a score counts as its floor.
    pub margin: f64,
    /// What was not learnt, and what to change; nothing where all was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl PoseVerdict {
    /// Judges a network that was trained for so many `steps`, where known, and whose held-out objects were `unseen` in
    /// training. Nothing can be said without scores.
    pub fn of(scores: Vec<PoseScore>, steps: Option<u64>, unseen: bool) -> Option<Self> {
        let missed: Vec<&PoseScore> =
            scores.iter().filter(|score| is_at_floor(score.r2, score.floor)).collect();
        let learnt = missed.len() < scores.len();
        let message = missed_of(&scores).map(|what| {
            let numbers = missed.iter().map(|score| {
                let PoseScore { part, r2, floor } = score;
                format!(
                    "{} R2 is {r2:.3} at best, and {floor:.3} is reached without information",
                    part.name()
                )
            });
            let numbers: Vec<String> = numbers.collect();
            format!("no {what} was learnt: {}; {}", numbers.join("; "), advice(steps, unseen))
        });
        (!scores.is_empty()).then_some(Self { learnt, scores, margin: FLOOR_MARGIN, message })
    }

    /// What was not learnt, in a word; nothing where all was.
    pub fn missed(&self) -> Option<&'static str> {
        missed_of(&self.scores)
    }
}

/// The first part whose score is at its floor, or "pose" where all are.
fn missed_of(scores: &[PoseScore]) -> Option<&'static str> {
    let is_missed = |score: &&PoseScore| is_at_floor(score.r2, score.floor);
    let first = scores.iter().find(is_missed)?;
    Some(if scores.iter().all(|score| is_missed(&score)) { "pose" } else { first.part.name() })
}

/// Steps after which EquiCaps with Adam has begun to learn rotations: with 37 known objects, and with 11,000 procedural ones.
pub const PLATEAU: [u64; 2] = [500, 1_000];

/// What may help.
fn advice(steps: Option<u64>, unseen: bool) -> String {
    let there_were = steps.map_or_else(String::new, |steps| format!("there were {steps}; "));
    let [first, last] = PLATEAU;
    let steps = format!(
        "more steps ({there_were}with Adam the first {first} to {last} teach nothing about rotation)"
    );
    if unseen {
        format!(
            "try {steps}, more views of every object, or another split (new views of known objects: rotations of unknown \
             ones can only be told where the objects of a class have a common front)"
        )
    } else {
        format!("try {steps}, or more views of every object")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(part: PosePart, r2: f64, floor: f64) -> PoseScore {
        PoseScore { part, r2, floor }
    }

    #[test]
    fn what_was_not_learnt_is_said_with_its_numbers() {
        let verdict = PoseVerdict::of(vec![score(PosePart::Rotation, 0.12, 0.24)], Some(450), true).unwrap();
        let message = verdict.message.unwrap();
        assert!(!verdict.learnt);
        assert!(
            message.starts_with("no pose was learnt: rotation R2 is 0.120 at best, and 0.240 is"),
            "{message}"
        );
        assert!(
            message.contains("more steps (there were 450;") && message.contains("another split"),
            "{message}"
        );
        let known = PoseVerdict::of(vec![score(PosePart::Rotation, 0.12, 0.24)], None, false).unwrap();
        assert!(!known.message.unwrap().contains("another split"));
        let good = PoseVerdict::of(vec![score(PosePart::Rotation, 0.31, 0.24)], None, true).unwrap();
        assert_eq!((good.learnt, good.missed(), good.message), (true, None, None));
        let half = [score(PosePart::Rotation, 0.25, 0.24), score(PosePart::Translation, 0.7, 0.0)];
        let half = PoseVerdict::of(half.to_vec(), None, true).unwrap();
        assert_eq!((half.learnt, half.missed()), (true, Some("rotation")));
        assert!(half.message.unwrap().starts_with("no rotation was learnt"));
        assert_eq!(PoseVerdict::of(Vec::new(), None, true), None);
    }

    #[test]
    fn only_methods_that_are_told_poses_are_judged_by_them() {
        let of = |method, transform| learns(method, transform, Task::Classification);
        for method in [MethodName::VICREG, MethodName::SIMCLR, MethodName::SUPERVISED] {
            assert_eq!(of(method, Transform::ROTATION_OBJECT), []);
        }
        for method in [MethodName::EQUICAPS, MethodName::SIMCLR_AUGSELF, MethodName::SEN] {
            assert_eq!(of(method, Transform::ROTATION), [PosePart::Rotation]);
            assert_eq!(of(method, Transform::ROTATION_BASE).len(), 2);
        }
        let supervised = |task| learns(MethodName::SUPERVISED, Transform::ROTATION_OBJECT, task);
        assert_eq!(supervised(Task::Translation), [PosePart::Translation]);
        assert_eq!(supervised(Task::Colour), []);
    }
}
