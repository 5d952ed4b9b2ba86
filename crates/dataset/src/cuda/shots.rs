//! From (object, view) to what a GPU's renderer is told.

use std::sync::Arc;

use rayon::prelude::*;
use render::cuda::Shot;

use super::objects::DeviceObjects;
use crate::loader::Item;
use crate::on_the_fly::OnTheFly;
use crate::views::Views;

/// What a request comes to.
#[derive(Debug, Default)]
pub struct Shots {
    /// What is rendered, in this order.
    pub shots: Vec<Shot>,
    /// For each view that was asked for, its number among these; none where its object cannot be loaded.
    pub numbers: Vec<Option<usize>>,
}

impl Shots {
    /// Those of `items`, without the ones whose objects cannot be loaded, which is said when they are needed. With
    /// `once` the objects are not kept on the host.
    ///
    /// Every object comes once, with `is_backward` the last one first: where not all objects fit into device memory, and
    /// requests go forwards and backwards in turn, the objects used last are still there.
    pub fn of(views: &OnTheFly<DeviceObjects>, items: &[Item], once: bool, is_backward: bool) -> Self {
        let mut indexes: Vec<usize> = (0..items.len()).collect();
        indexes.sort_by_key(|&index| items[index].0);
        let mut by_object: Vec<&[usize]> = indexes.chunk_by(|&a, &b| items[a].0 == items[b].0).collect();
        if is_backward {
            by_object.reverse();
        }
        let of_object = |indexes: &&[usize]| -> Vec<Option<Shot>> {
            let object = indexes.first().map(|&index| items[index].0);
            let object = object.and_then(|object| match once {
                true => views.prepared_once(object).map(Arc::new).ok(),
                false => views.prepared(object).ok(),
            });
            let latents = |index: usize| views.latents(items[index].0, items[index].1);
            indexes.iter().map(|&index| object.as_ref().map(|object| object.shot(latents(index)))).collect()
        };
        let found: Vec<Option<Shot>> = by_object.par_iter().flat_map_iter(of_object).collect();
        let mut shots = Self { shots: Vec::with_capacity(found.len()), numbers: vec![None; items.len()] };
        for (&index, shot) in by_object.into_iter().flatten().zip(found) {
            shots.numbers[index] = shot.is_some().then_some(shots.shots.len());
            shots.shots.extend(shot);
        }
        shots
    }
}
