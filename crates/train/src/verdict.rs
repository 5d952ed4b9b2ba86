//! Whether a run has learnt anything about pose, by its last evaluation on held-out views.

use methods::verdict::{PosePart, PoseScore, PoseVerdict, learns};

use pose::Space;

use crate::config::{Config, SplitName};
use crate::metrics::{Kind, Record};

/// How the names of floors begin in metrics.
pub const FLOORS: &str = "floor/";

/// The name in metrics of what is reached without information on the R2 called `task`: `rotation_r2`.
pub fn floor_name(task: &str) -> String {
    format!("{FLOORS}{task}")
}

/// The name in metrics of the floor of the number called `name`, where that is an R2 (`probe/rotation_r2/poses`).
pub fn floor_of(name: &str) -> Option<String> {
    let (task, _) = name.strip_prefix("probe/")?.split_once('/')?;
    task.ends_with("_r2").then(|| floor_name(task))
}

/// What the last held-out line among `records` says of a run with this configuration that has come to its end. Nothing
/// for a method that is not told poses, and for runs that go on or have no such line.
pub fn of_run(config: &Config, records: &[Record]) -> Option<PoseVerdict> {
    let looks = records.iter().rev().filter(|record| record.kind == Kind::HeldOut);
    let last = looks.take(1).find(|record| record.epoch >= config.epochs)?;
    let method = &config.method;
    let parts = learns(method.name, method.transform, method.network.task);
    let unseen = config.split != SplitName::Views && method.transform.group().space == Space::Object;
    PoseVerdict::of(parts.iter().filter_map(|&part| score(last, part)).collect(), Some(last.step), unseen)
}

/// The best probe of `part`, with its floor.
fn score(record: &Record, part: PosePart) -> Option<PoseScore> {
    let task = format!("{}_r2", part.name());
    let floor = record.value(&floor_name(&task))?;
    let start = format!("probe/{task}/");
    let names = record.values.keys().filter(|name| name.starts_with(&start));
    let r2 = names
        .filter_map(|name| record.value(name))
        .fold(None, |best: Option<f64>, value| Some(best.map_or(value, |best| best.max(value))));
    Some(PoseScore { part, r2: r2?, floor })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(values: serde_json::Value) -> Record {
        let values = values.as_object().unwrap().clone();
        Record { kind: Kind::HeldOut, epoch: 9, step: 90, values, timing: serde_json::Map::new() }
    }

    #[test]
    fn the_last_look_decides_by_its_best_probe() {
        let config = |method| Config {
            epochs: 9,
            ..Config::resolve(Config::settings(method, "demo").unwrap()).unwrap()
        };
        let look = |poses: f64| {
            record(serde_json::json!({
                "probe/rotation_r2/representation": 0.21,
                "probe/rotation_r2/poses": poses,
                "probe/class_accuracy/representation": 0.9,
                "floor/rotation_r2": 0.24,
            }))
        };
        let bad = of_run(&config("equicaps"), &[look(0.5), look(0.25)]).unwrap();
        assert!(bad.message.unwrap().starts_with("no pose was learnt: rotation R2 is 0.250 at best"));
        assert!(of_run(&config("equicaps"), &[look(0.25), look(0.5)]).unwrap().learnt);
        assert_eq!(of_run(&config("vicreg"), &[look(0.25)]), None);
        assert_eq!(of_run(&config("equicaps"), &[]), None);
        let longer = Config { epochs: 10, ..config("equicaps") };
        assert_eq!(of_run(&longer, &[look(0.25)]), None);
        // A run of an earlier version wrote no floors.
        let old = record(serde_json::json!({ "probe/rotation_r2/poses": 0.2 }));
        assert_eq!(of_run(&config("equicaps"), &[old]), None);
    }

    #[test]
    fn floors_belong_to_tasks() {
        assert_eq!(floor_of("probe/rotation_r2/poses").as_deref(), Some("floor/rotation_r2"));
        assert_eq!(floor_of("probe/class_accuracy/poses"), None);
        assert_eq!(floor_of("loss"), None);
    }
}
