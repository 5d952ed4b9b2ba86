//! Errors: held-out views, worst first, and the same for objects and classes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use evaluate::view_errors::ViewError;
use serde::{Deserialize, Serialize};

use super::NetworkQuery;
use super::found::Found;
use crate::data::Data;
use crate::explorer::Explorer;
use crate::refusal::{Refusal, failed};

/// Which views.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ErrorsQuery {
    run: usize,
    epoch: Option<u64>,
    /// Only views of this object.
    object: Option<usize>,
    /// Only views of this class.
    class: Option<u32>,
    /// Only views whose class is wrong.
    wrong_class: bool,
    limit: Option<usize>,
}

/// A view that the network is wrong about.
#[derive(Debug, Serialize)]
struct Wrong {
    #[serde(flatten)]
    view: Found,
    rotation_degrees: Option<f64>,
    /// The view that was found instead.
    found: Option<Found>,
    /// The class that it is taken for.
    taken_for: Option<String>,
    is_wrong_class: bool,
}

/// Means over the views of an object or a class.
#[derive(Debug, Default, Serialize)]
struct Mean {
    name: String,
    class: u32,
    object: Option<usize>,
    views: usize,
    /// Mean error of rotation, and how many views it is of.
    rotation_degrees: Option<f64>,
    /// Share of the views that are more than a third of a half turn off.
    far: Option<f64>,
    /// Share of views with the right class.
    right_class: Option<f64>,
}

/// All that is wrong.
#[derive(Debug, Serialize)]
pub struct Errors {
    views: Vec<Wrong>,
    count: usize,
    objects: Vec<Mean>,
    classes: Vec<Mean>,
    all: Mean,
    /// Why there are no errors of rotation, where there are none.
    no_rotation: Option<String>,
}

const MOST_VIEWS: usize = 200;
/// Degrees from which a view counts as taken for another side of the object.
const FAR: f64 = 60.0;

/// The errors of a network.
pub async fn errors(
    State(explorer): State<Arc<Explorer>>,
    Query(query): Query<ErrorsQuery>,
) -> Result<Json<Errors>, Refusal> {
    let NetworkQuery { run, epoch } = NetworkQuery { run: query.run, epoch: query.epoch };
    let network = explorer.networks.get(run, epoch)?;
    let answer = explorer.long(move |explorer| {
        let errors = network.errors().map_err(failed)?;
        let has_rotation = errors.iter().any(|error| error.rotation_degrees.is_some());
        let no_rotation = (!has_rotation).then(|| network.no_rotation());
        Ok(Errors { no_rotation, ..collect(&explorer.data, &errors, &query) })
    });
    answer.await.map(Json)
}

fn collect(data: &Data, errors: &[ViewError], query: &ErrorsQuery) -> Errors {
    let truth = &data.truth;
    let object_of = |error: &ViewError| truth.item(error.row).0;
    let is_wrong =
        |error: &ViewError| error.class.is_some_and(|class| class != truth.labels[object_of(error)]);
    let class_name = |label: u32| {
        data.views.classes().get(label as usize).map_or_else(|| label.to_string(), |class| class.name.clone())
    };
    let mut shown: Vec<&ViewError> = errors
        .iter()
        .filter(|error| query.object.is_none_or(|object| object == object_of(error)))
        .filter(|error| query.class.is_none_or(|class| class == truth.labels[object_of(error)]))
        .filter(|error| !query.wrong_class || is_wrong(error))
        .collect();
    let worst_first = |a: &&ViewError, b: &&ViewError| {
        let angle = |error: &ViewError| error.rotation_degrees.unwrap_or(-1.0);
        let by_angle = angle(b).total_cmp(&angle(a));
        by_angle.then(is_wrong(b).cmp(&is_wrong(a))).then(a.row.cmp(&b.row))
    };
    shown.sort_by(worst_first);
    let count = shown.len();
    let limit = query.limit.unwrap_or(60).min(MOST_VIEWS);
    let views = shown
        .into_iter()
        .take(limit)
        .map(|error| Wrong {
            view: Found::of(data, error.row, None, None),
            rotation_degrees: error.rotation_degrees,
            found: error.found.map(|row| Found::of(data, row, None, Some(&truth.poses[error.row]))),
            taken_for: error.class.map(class_name),
            is_wrong_class: is_wrong(error),
        })
        .collect();
    let mut by_object: BTreeMap<usize, Vec<&ViewError>> = BTreeMap::new();
    let mut by_class: BTreeMap<u32, Vec<&ViewError>> = BTreeMap::new();
    for error in errors {
        by_object.entry(object_of(error)).or_default().push(error);
        by_class.entry(truth.labels[object_of(error)]).or_default().push(error);
    }
    let mean = |errors: &[&ViewError]| {
        let angles: Vec<f64> = errors.iter().filter_map(|error| error.rotation_degrees).collect();
        let of = |sum: f64, count: usize| (count > 0).then(|| sum / count as f64);
        let far = angles.iter().filter(|&&angle| angle > FAR).count() as f64;
        let known = errors.iter().filter(|error| error.class.is_some()).count();
        let right = errors.iter().filter(|error| error.class.is_some() && !is_wrong(error)).count() as f64;
        Mean {
            views: errors.len(),
            rotation_degrees: of(angles.iter().sum(), angles.len()),
            far: of(far, angles.len()),
            right_class: of(right, known),
            ..Mean::default()
        }
    };
    let worst = |a: &Mean, b: &Mean| -> Ordering {
        let key = |mean: &Mean| (mean.rotation_degrees.unwrap_or(-1.0), -mean.right_class.unwrap_or(0.0));
        let ((a1, a2), (b1, b2)) = (key(a), key(b));
        b1.total_cmp(&a1).then(b2.total_cmp(&a2)).then_with(|| a.name.cmp(&b.name))
    };
    let mut objects: Vec<Mean> = by_object
        .iter()
        .map(|(&object, errors)| Mean {
            name: format!("{} {}", class_name(truth.labels[object]), data.views.objects()[object].name),
            class: truth.labels[object],
            object: Some(object),
            ..mean(errors)
        })
        .collect();
    let mut classes: Vec<Mean> = by_class
        .iter()
        .map(|(&class, errors)| Mean { name: class_name(class), class, ..mean(errors) })
        .collect();
    objects.sort_by(worst);
    classes.sort_by(worst);
    let all = Mean { name: "all".to_owned(), ..mean(&errors.iter().collect::<Vec<_>>()) };
    Errors { views, count, objects, classes, all, no_rotation: None }
}
