//! What is likely to go wrong with a run, said before it starts: too few steps or objects, batches that had to shrink,
//! enlarged images, a folder of meshes of the wrong depth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dataset::card::Card;
use dataset::order::{self, Cut};
use dataset::{ObjectSet, Split, TrainingPlan, Views, counted, shell_word, wrong_depth};
use methods::MethodName;
use methods::verdict::{PLATEAU, learns};
use pose::Space;

use crate::batches::training_plan;
use crate::config::{BatchesName, Config};
use crate::plan::batches_in_words;

/// What there is to say about a run of `config` on `views` before it starts; the sentences are for people.
pub fn warnings(config: &Config, views: &dyn Views) -> Vec<String> {
    let plan = training_plan(config, views).ok();
    let of_plan = plan.iter().flat_map(|plan| [few_steps(config, plan), small_batches(config, plan)]);
    let others = [
        enlarged(config, views),
        nothing_held_out(config, views),
        one_object_each(config, views),
        one_of_a_kind(views),
        single_views(config, views),
    ];
    of_plan.chain(others).flatten().chain(views.unused()).collect()
}

/// Fewer steps than it takes until anything is learnt about rotation.
fn few_steps(config: &Config, plan: &TrainingPlan) -> Option<String> {
    let method = &config.method;
    let is_told = !learns(method.name, method.transform, method.network.task).is_empty();
    let per_epoch = plan.steps_per_epoch();
    let steps = per_epoch * config.epochs;
    let [first, last] = PLATEAU;
    (is_told && method.name != MethodName::SUPERVISED && steps < last).then(|| {
        let (epochs, enough) = ((3 * last).div_ceil(per_epoch), 3 * last);
        format!(
            "this run has {} ({} of {per_epoch}), but the first {first} to {last} teach nothing about \
             rotation (measured with EquiCaps and Adam); {enough} steps are --set epochs={epochs}",
            counted(steps, "step"),
            counted(config.epochs, "epoch")
        )
    })
}

/// Batches far below the configured size: objects are fewer than it, or leave a small rest.
fn small_batches(config: &Config, plan: &TrainingPlan) -> Option<String> {
    let (sizes, batch) = (plan.batch_sizes(), config.method.batch);
    match sizes[..] {
        [only] if 2 * only < batch => Some(format!(
            "batches have {}, not {batch}: there {} {}; --set pairs_per_object=0 takes as many pairs of each as a batch \
             holds",
            counted(only, "pair"),
            if plan.objects == 1 { "is" } else { "are" },
            counted(plan.objects, "training object")
        )),
        _ => harmful_rest(config, plan),
    }
}

/// Why the rest of an epoch does harm, if it does: batch norm, variance and covariance of a few samples undo what whole
/// batches taught.
pub(crate) fn harmful_rest(config: &Config, plan: &TrainingPlan) -> Option<String> {
    let (sizes, batch) = (plan.batch_sizes(), config.method.batch);
    let last = sizes.last().copied().unwrap_or(batch);
    let harmful = config.batches == BatchesName::Published && sizes.len() > 1 && 4 * last < batch;
    harmful.then(|| {
        let whole = order::batch_sizes(plan.objects * plan.pairs, batch, Cut::Whole);
        format!(
            "the last batch of an epoch would have {}, less than a quarter of batch = {batch}, and undo what \
             the others teach; --set batches=whole makes batches of {}",
            counted(last, "pair"),
            batches_in_words(&whole)
        )
    })
}

/// Stored images that are smaller than the network's input.
fn enlarged(config: &Config, views: &dyn Views) -> Option<String> {
    let (input, stored) = (config.method.image_size, views.side());
    (input > stored).then(|| {
        format!(
            "image_size is {input}, but the views are stored at {stored}x{stored}: they are enlarged, which costs time \
             and adds nothing; render larger ones, or --set image_size={}",
            (stored / 32).max(1) * 32
        )
    })
}

/// No object that nothing is learnt from.
fn nothing_held_out(config: &Config, views: &dyn Views) -> Option<String> {
    let wanted = config.probes.enabled && config.probes.held_out_every > 0;
    (wanted && views.split(Split::Val).is_empty())
        .then(|| "there are no held-out objects: nothing will be said about what was learnt".to_owned())
}

/// Objects with one view, of which there is no pair.
fn single_views(config: &Config, views: &dyn Views) -> Option<String> {
    let train = views.split(Split::Train);
    let single = train.clone().filter(|&object| views.views_of(Split::Train, object).len() < 2).count();
    (single > 0 && config.method.name != MethodName::SUPERVISED).then(|| {
        format!(
            "{single} of {} {} one view: such pairs are one image twice, which teach nothing about a change of view",
            counted(train.len(), "training object"),
            if single == 1 { "has" } else { "have" }
        )
    })
}

/// One class, of which everything is right, or even one object.
fn one_of_a_kind(views: &dyn Views) -> Option<String> {
    let objects = views.objects();
    let classes = objects.iter().map(|object| object.label).collect::<BTreeSet<u32>>().len();
    match (objects.len(), classes) {
        (1, _) => Some(
            "there is one object: class accuracy and ranks among its views say nothing, and other objects will be new to \
             the network"
                .to_owned(),
        ),
        (2.., 1) => Some("all objects are of one class: class accuracy will be 1 and say nothing".to_owned()),
        _ => None,
    }
}

/// Every class has one object: as a rule a folder of meshes that was named one level too deep.
fn one_object_each(config: &Config, views: &dyn Views) -> Option<String> {
    let folder = Path::new(&config.data);
    if ObjectSet::is_mesh_folder(folder) {
        let ids: Vec<(String, String)> =
            views.objects().iter().map(|object| (object.synset.clone(), object.name.clone())).collect();
        let wrong = wrong_depth(folder, &ids)?;
        return Some(format!("{wrong} (equicaps train --data {} ...)", shell_word(&wrong.meant)));
    }
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    views.objects().iter().for_each(|object| *counts.entry(object.label).or_default() += 1);
    (counts.len() > 1 && counts.values().all(|&count| count == 1)).then(|| {
        let card = Card::read(folder).ok().flatten();
        let has_no_meshes =
            views.space() == Space::Image || card.is_some_and(|card| card.settings.imported().is_some());
        let how = match has_no_meshes {
            true => "",
            false => {
                "; if the meshes are CLASS/OBJECT/MESH, render them with --meshes and the folder of the classes"
            }
        };
        format!("every class has one object ({} classes): classes cannot be learnt{how}", counts.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeViews;

    fn of(views: &FakeViews, settings: &[&str]) -> Vec<String> {
        let mut layers = Config::settings("equicaps", "demo").unwrap();
        let base = ["batch=6", "epochs=1000", "image_size=32"];
        base.iter().chain(settings).for_each(|assignment| layers.set(assignment).unwrap());
        warnings(&Config::resolve(layers).unwrap(), views)
    }

    /// The only warning.
    fn one(views: &FakeViews, settings: &[&str]) -> String {
        let found = of(views, settings);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }

    #[test]
    fn a_run_that_may_learn_something_is_not_warned_about() {
        assert_eq!(of(&FakeViews::new(4, 6), &[]), Vec::<String>::new());
    }

    #[test]
    fn few_steps_and_small_batches_are_named_with_their_numbers() {
        let views = FakeViews::new(4, 6);
        let text = one(&views, &["epochs=200"]);
        assert!(text.starts_with("this run has 800 steps (200 epochs of 4)"), "{text}");
        assert!(text.ends_with("3000 steps are --set epochs=750"), "{text}");
        let text = one(&views, &["batch=64", "pairs_per_object=1"]);
        assert!(text.starts_with("batches have 24 pairs, not 64: there are 24 training objects"), "{text}");
        assert_eq!(of(&views, &["batch=64"]), Vec::<String>::new());
        let text = one(&views, &["batch=11", "batches=published"]);
        assert!(text.contains("would have 2 pairs") && text.ends_with("batches of 3 x 8"), "{text}");
        assert_eq!(of(&views, &["batch=11"]), Vec::<String>::new());
    }

    #[test]
    fn enlarged_images_and_classes_of_one_object_are_named() {
        let text = one(&FakeViews::new(4, 6), &["image_size=64"]);
        assert!(text.contains("image_size is 64, but the views are stored at 32x32"), "{text}");
        assert!(text.ends_with("--set image_size=32"), "{text}");
        let lone = FakeViews::new(12, 1).without_held_out();
        let found = of(&lone, &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("there are no held-out objects"), "{found:?}");
        assert!(found[1].starts_with("every class has one object (12 classes)"), "{found:?}");
    }

    #[test]
    fn methods_that_are_not_told_poses_need_no_steps_for_them() {
        let mut layers = Config::settings("vicreg", "demo").unwrap();
        ["batch=6", "epochs=1", "image_size=32"].iter().for_each(|text| layers.set(text).unwrap());
        let config = Config::resolve(layers).unwrap();
        assert_eq!(warnings(&config, &FakeViews::new(4, 6)), Vec::<String>::new());
    }
}
