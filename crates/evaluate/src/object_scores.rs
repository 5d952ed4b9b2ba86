//! How well single objects and classes do: what a mean over all of them hides. The pose of a symmetric object cannot be told,
//! and shows here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The scores of one held-out object, or the means over those of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// `CLASS/OBJECT`, or the class.
    pub name: String,
    /// The class.
    pub class: String,
    /// How many objects it is about.
    pub objects: usize,
    /// Mean angle in degrees between the change of rotation that the probe says and the true one.
    pub rotation_error: Option<f64>,
    /// R2 of rotation: residuals of this object's pairs against the spread of the targets of all objects.
    pub rotation_r2: Option<f64>,
    /// Mean reciprocal rank, where its views were queries.
    pub mrr: Option<f64>,
}

/// What a rotation probe reaches on one object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RotationScore {
    /// Mean angle in degrees.
    pub error: f64,
    /// See [`Score::rotation_r2`].
    pub r2: f64,
}

/// Scores of several objects or classes; columns in files, which take less room.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Columns", into = "Columns")]
pub struct Scores(pub Vec<Score>);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Columns {
    name: Vec<String>,
    /// Missing where rows are classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    class: Vec<String>,
    /// Missing where rows are single objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<usize>,
    rotation_error_degrees: Vec<Option<f64>>,
    rotation_r2: Vec<Option<f64>>,
    mrr: Vec<Option<f64>>,
}

impl From<Scores> for Columns {
    fn from(Scores(rows): Scores) -> Self {
        let mut columns = Self::default();
        let round = |value: Option<f64>, factor: f64| value.map(|value| (value * factor).round() / factor);
        for row in rows {
            columns.name.push(row.name);
            columns.class.push(row.class);
            columns.objects.push(row.objects);
            columns.rotation_error_degrees.push(round(row.rotation_error, 1e2));
            columns.rotation_r2.push(round(row.rotation_r2, 1e4));
            columns.mrr.push(round(row.mrr, 1e4));
        }
        if columns.class == columns.name {
            columns.class.clear();
        } else {
            columns.objects.clear();
        }
        columns
    }
}

impl From<Columns> for Scores {
    fn from(columns: Columns) -> Self {
        let number = |column: &[Option<f64>], row: usize| column.get(row).copied().flatten();
        let score = |(row, name): (usize, &String)| Score {
            name: name.clone(),
            class: columns.class.get(row).unwrap_or(name).clone(),
            objects: columns.objects.get(row).copied().unwrap_or(1),
            rotation_error: number(&columns.rotation_error_degrees, row),
            rotation_r2: number(&columns.rotation_r2, row),
            mrr: number(&columns.mrr, row),
        };
        Self(columns.name.iter().enumerate().map(score).collect())
    }
}

impl Scores {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Means over the objects of every class, in the order of their names.
    pub fn by_class(&self) -> Self {
        let mut classes: BTreeMap<&str, Vec<&Score>> = BTreeMap::new();
        self.0.iter().for_each(|score| classes.entry(&score.class).or_default().push(score));
        let mean = |scores: &[&Score], value: fn(&Score) -> Option<f64>| {
            let values: Vec<f64> = scores.iter().filter_map(|score| value(score)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let class = |(class, scores): (&str, Vec<&Score>)| Score {
            name: class.to_owned(),
            class: class.to_owned(),
            objects: scores.len(),
            rotation_error: mean(&scores, |score| score.rotation_error),
            rotation_r2: mean(&scores, |score| score.rotation_r2),
            mrr: mean(&scores, |score| score.mrr),
        };
        Self(classes.into_iter().map(class).collect())
    }

    /// Worst first: by rotation, or by rank where rotation was not measured.
    pub fn worst_first(&self) -> Vec<&Score> {
        let mut rows: Vec<&Score> = self.0.iter().collect();
        let key = |score: &Score| score.rotation_r2.or(score.mrr).unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
        rows
    }

    /// Takes over what `known` has of the same objects and this has not.
    pub fn keep(&mut self, known: Self) {
        if self.0.is_empty() {
            *self = known;
            return;
        }
        let mut known: BTreeMap<String, Score> =
            known.0.into_iter().map(|score| (score.name.clone(), score)).collect();
        for score in &mut self.0 {
            let Some(known) = known.remove(&score.name) else { continue };
            score.rotation_error = score.rotation_error.or(known.rotation_error);
            score.rotation_r2 = score.rotation_r2.or(known.rotation_r2);
            score.mrr = score.mrr.or(known.mrr);
        }
    }
}

/// Sums over validation passes from which [`RotationScore`]s come.
#[derive(Clone, Debug, Default)]
pub(crate) struct RotationSums {
    /// By object: squared residuals, and angles in degrees.
    objects: Vec<(f64, f64)>,
    /// Squared distances of all targets from their one mean.
    spread: f64,
    passes: usize,
}

impl RotationSums {
    /// Adds a pass with one pair of each object: quaternions, four numbers each, or sines and cosines of angles, two each.
    pub fn add(&mut self, width: usize, predictions: &[f32], targets: &[f32]) {
        let count = targets.len() / width;
        self.objects.resize(count, (0.0, 0.0));
        let mean = targets.iter().map(|&y| f64::from(y)).sum::<f64>() / targets.len().max(1) as f64;
        self.spread += targets.iter().map(|&y| (f64::from(y) - mean).powi(2)).sum::<f64>();
        self.passes += 1;
        let pairs = predictions.chunks_exact(width).zip(targets.chunks_exact(width));
        for (sums, (said, wanted)) in self.objects.iter_mut().zip(pairs) {
            let pairs = || said.iter().zip(wanted).map(|(&p, &y)| (f64::from(p), f64::from(y)));
            sums.0 += pairs().map(|(p, y)| (y - p).powi(2)).sum::<f64>();
            let length = |values: &[f32]| values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            let lengths = (length(said) * length(wanted)).max(f64::MIN_POSITIVE);
            let cosine = pairs().map(|(p, y)| p * y).sum::<f64>() / lengths;
            // Of a quaternion either sign is the same rotation, by twice the angle.
            sums.1 += match width {
                4 => 2.0 * cosine.abs().min(1.0).acos().to_degrees(),
                _ => cosine.clamp(-1.0, 1.0).acos().to_degrees(),
            };
        }
    }

    /// One score for each object. Their mean R2 is the R2 of all pairs of all passes together.
    pub fn finish(&self) -> Vec<RotationScore> {
        let (passes, objects) = (self.passes.max(1) as f64, self.objects.len().max(1) as f64);
        let spread = self.spread / (passes * objects);
        let score = |&(residual, angle): &(f64, f64)| RotationScore {
            error: angle / passes,
            r2: 1.0 - residual / passes / spread.max(f64::MIN_POSITIVE),
        };
        self.objects.iter().map(score).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_of_an_object_stand_against_the_spread_of_all() {
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let (unturned, quarter) = ([0.0, 0.0, 0.0, 1.0], [half, 0.0, 0.0, half]);
        let targets = [unturned, quarter].concat();
        let mut sums = RotationSums::default();
        // The first is right, with the other sign of no matter for the angle; the second is a quarter turn off.
        sums.add(4, &[unturned, unturned].concat(), &targets);
        sums.add(4, &[unturned.map(|v: f32| -v), quarter].concat(), &targets);
        let scores = sums.finish();
        assert!((scores[0].error - 0.0).abs() < 1e-3 && (scores[1].error - 45.0).abs() < 1e-3, "{scores:?}");
        // By hand: the mean of all eight numbers is (1 + 2 half) / 8.
        let mean = (1.0 + 2.0 * f64::from(half)) / 8.0;
        let spread: f64 = targets.iter().map(|&y| (f64::from(y) - mean).powi(2)).sum::<f64>() / 2.0;
        let second = f64::from(half).powi(2) + (1.0 - f64::from(half)).powi(2);
        assert!((scores[0].r2 - (1.0 - 4.0 / 2.0 / spread)).abs() < 1e-6, "{scores:?}");
        assert!((scores[1].r2 - (1.0 - second / 2.0 / spread)).abs() < 1e-6, "{scores:?}");
    }

    #[test]
    fn scores_are_kept_sorted_and_averaged_by_class() {
        let score = |name: &str, r2: Option<f64>, mrr: Option<f64>| Score {
            name: name.to_owned(),
            class: name.split('/').next().unwrap_or_default().to_owned(),
            objects: 1,
            rotation_error: r2.map(|r2| 90.0 * (1.0 - r2)),
            rotation_r2: r2,
            mrr,
        };
        let scores = Scores(vec![
            score("cup/a", Some(0.25), None),
            score("cup/b", Some(0.75), Some(0.5)),
            score("car/c", Some(0.875), Some(1.0)),
        ]);
        let names: Vec<&str> = scores.worst_first().iter().map(|score| score.name.as_str()).collect();
        assert_eq!(names, ["cup/a", "cup/b", "car/c"]);
        let classes = scores.by_class().0;
        assert_eq!((classes[1].name.as_str(), classes[1].objects), ("cup", 2));
        assert_eq!((classes[1].rotation_r2, classes[1].mrr), (Some(0.5), Some(0.5)));
        let text = serde_json::to_string(&scores).unwrap();
        assert!(text.starts_with("{\"name\":[\"cup/a\",\"cup/b\",\"car/c\"]"), "{text}");
        assert_eq!(serde_json::from_str::<Scores>(&text).unwrap(), scores);
        let text = serde_json::to_string(&scores.by_class()).unwrap();
        assert!(text.starts_with("{\"name\":[\"car\",\"cup\"],\"objects\":[1,2]"), "{text}");
        assert_eq!(serde_json::from_str::<Scores>(&text).unwrap(), scores.by_class());
        let mut later = Scores(vec![score("cup/a", None, Some(0.125)), score("car/new", None, Some(1.0))]);
        later.keep(scores);
        assert_eq!((later.0[0].rotation_r2, later.0[0].mrr), (Some(0.25), Some(0.125)));
        assert_eq!((later.0.len(), later.0[1].rotation_r2), (2, None));
    }
}
