//! Queries with the views that a network finds nearest: several networks side by side, or one with all queries.

use std::collections::HashMap;
use std::sync::Arc;

use dataset::Views;
use evaluate::neighbours::{FoundView, NeighbourQuery};

use crate::figures::{BAD, GOOD};
use crate::{Bitmap, Drawing, GridCell, ImageGrid};

/// Side of an image in the drawing, and at most in pixels.
const CELL_PX: f64 = 96.0;
const LARGEST_SIDE: usize = 128;

/// A network's name and what it found.
pub(crate) type Network = (String, Vec<NeighbourQuery>);

/// Images of views, and what is said of them.
pub(crate) struct NeighbourGrid<'a> {
    views: &'a dyn Views,
    side: usize,
    classes: HashMap<u32, String>,
    images: HashMap<(usize, usize), Arc<Bitmap>>,
}

impl<'a> NeighbourGrid<'a> {
    /// Of what is shown by `views`.
    pub(crate) fn new(views: &'a dyn Views) -> Self {
        let classes = views.classes().iter().map(|class| (class.label, class.name.clone())).collect();
        Self { views, side: views.side().min(LARGEST_SIDE), classes, images: HashMap::new() }
    }

    /// Whether there is more than one class, so that frames tell something.
    pub(crate) fn has_classes(&self) -> bool {
        self.classes.len() > 1
    }

    /// The query `index` of several networks: the query in the first column, then one column a network with its nearest
    /// views from top to bottom.
    pub(crate) fn side_by_side(&mut self, networks: &[Network], index: usize) -> Drawing {
        let queries: Vec<(&str, &NeighbourQuery)> = networks
            .iter()
            .filter_map(|(name, queries)| Some((name.as_str(), queries.get(index)?)))
            .collect();
        let depth = queries.iter().map(|(_, query)| query.found.len()).max().unwrap_or(0);
        let rows = (0..depth).map(|rank| {
            let query = queries.first().filter(|_| rank == 0).map(|(_, query)| self.query(query));
            let found =
                queries.iter().map(|(name, query)| Some(self.found(name, rank, query.found.get(rank)?)));
            std::iter::once(query).chain(found).collect()
        });
        let rows = rows.collect();
        let names = queries.iter().map(|(name, _)| (*name).to_owned());
        let columns = std::iter::once("query".to_owned()).chain(names).collect();
        let row_labels = (1..=depth).map(rank_name).collect();
        ImageGrid { columns, row_labels, rows, cell_px: CELL_PX, ..ImageGrid::default() }.draw()
    }

    /// The first `count` queries of one network: a row each, the query first, then its nearest views.
    pub(crate) fn of_one(&mut self, (name, queries): &Network, count: usize) -> Drawing {
        let queries = &queries[..count.min(queries.len())];
        let depth = queries.iter().map(|query| query.found.len()).max().unwrap_or(0);
        let rows = queries.iter().map(|query| {
            let mut row = vec![Some(self.query(query))];
            row.extend(
                query.found.iter().enumerate().map(|(rank, found)| Some(self.found(name, rank, found))),
            );
            row
        });
        let rows = rows.collect();
        let columns = std::iter::once("query".to_owned()).chain((1..=depth).map(rank_name)).collect();
        ImageGrid { columns, rows, cell_px: CELL_PX, ..ImageGrid::default() }.draw()
    }

    fn query(&mut self, query: &NeighbourQuery) -> GridCell {
        GridCell {
            image: self.image(query.object, query.view),
            captions: vec![self.caption(query.object)],
            frame: None,
            told: (self.told(query.object, query.view), String::new()),
        }
    }

    /// Green frames: an object of the same class; red: of another.
    fn found(&mut self, network: &str, rank: usize, found: &FoundView) -> GridCell {
        let distance = |decimals: usize| {
            found.rotation_distance.map(|distance| format!("rotation {distance:.decimals$}"))
        };
        let mut said =
            format!("{} of {network}: {}", rank_name(rank + 1), self.told(found.object, found.view));
        if let Some(distance) = distance(3) {
            said += &format!(", {distance}");
        }
        GridCell {
            image: self.image(found.object, found.view),
            captions: std::iter::once(self.caption(found.object)).chain(distance(2)).collect(),
            frame: self.has_classes().then_some(if found.same_class { GOOD } else { BAD }),
            told: (said, network.to_owned()),
        }
    }

    /// Its class, or its name where there is only one class.
    fn caption(&self, object: usize) -> String {
        let Some(known) = self.views.objects().get(object) else { return String::new() };
        if self.has_classes() {
            return self.classes.get(&known.label).cloned().unwrap_or_default();
        }
        known.name.clone()
    }

    fn told(&self, object: usize, view: usize) -> String {
        let Some(known) = self.views.objects().get(object) else { return String::new() };
        let class = self.classes.get(&known.label).map_or("", String::as_str);
        format!("{class}, {}, view {view}", known.id())
    }

    fn image(&mut self, object: usize, view: usize) -> Option<Arc<Bitmap>> {
        if let Some(known) = self.images.get(&(object, view)) {
            return Some(Arc::clone(known));
        }
        let side = self.side;
        let mut pixels = vec![0; side * side * 3];
        let valid = object < self.views.objects().len() && view < self.views.views_in(object);
        if !valid || self.views.image(object, view, side, &mut pixels).is_err() {
            return None;
        }
        let image = Arc::new(Bitmap::new(side as u32, side as u32, pixels).ok()?);
        self.images.insert((object, view), Arc::clone(&image));
        Some(image)
    }
}

fn rank_name(rank: usize) -> String {
    format!("{rank}-NN")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::{Mark, Paint};
    use dataset::{CpuRenderer, ObjectSet, OnTheFly, OnTheFlyOptions};
    use render::Quality;
    use scene::LatentRanges;

    /// Frames and words of a grid of the first two of three queries, of one network and of two.
    fn drawn(classes: u32) -> [(Vec<Paint>, Vec<String>); 2] {
        let set = ObjectSet::procedural(dataset::ProceduralSize { classes, objects: 4 }, 0);
        let ids = set.ids();
        let options = OnTheFlyOptions {
            views: 1,
            held_out_views: 0,
            side: 16,
            seed: 0,
            ranges: LatentRanges::BENCH,
            memory: 0,
            prepared: 1,
            ready: false,
        };
        let views = OnTheFly::new(CpuRenderer::new(set, Quality::Fast), &ids, options);
        let found = |object: usize, same_class: bool| FoundView {
            object,
            view: 0,
            same_class,
            rotation_distance: Some(0.125),
            similarity: 0.9,
        };
        let query =
            |object: usize| NeighbourQuery { object, view: 0, found: vec![found(1, true), found(2, false)] };
        let network = |name: &str| (name.to_owned(), (0..3).map(query).collect::<Vec<_>>());
        let mut grid = NeighbourGrid::new(&views);
        let one = grid.of_one(&network("a"), 2);
        [one, grid.side_by_side(&[network("a"), network("b")], 1)].map(|drawing| {
            let mut frames = Vec::new();
            let mut words = Vec::new();
            for mark in &drawing.marks {
                match mark {
                    Mark::Frame(_, paint, _) => frames.push(*paint),
                    Mark::Text(text) => words.push(text.text.clone()),
                    _ => {}
                }
            }
            (frames, words)
        })
    }

    #[test]
    fn one_network_has_a_row_a_query_and_several_have_a_column_each() {
        let [(frames, words), (side, names)] = drawn(2);
        assert_eq!(words[..3], ["query", "1-NN", "2-NN"]);
        assert_eq!(frames, [GOOD, BAD, GOOD, BAD]);
        assert_eq!(names[..3], ["query", "a", "b"]);
        assert_eq!(side, [GOOD, GOOD, BAD, BAD]);
        assert!(
            words.contains(&"airplane".to_owned()) && words.contains(&"rotation 0.12".to_owned()),
            "{words:?}"
        );
    }

    #[test]
    fn of_one_class_objects_are_named_and_nothing_is_framed() {
        let [(frames, words), _] = drawn(1);
        assert!(frames.is_empty());
        assert!(words.contains(&"0001".to_owned()) && !words.contains(&"airplane".to_owned()), "{words:?}");
    }
}
