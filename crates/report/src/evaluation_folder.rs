//! The folder of one evaluation: `results.json`, tables in three forms, all objects and classes as CSV, and the nearest
//! neighbours of some queries.

use std::path::Path;

use engine::Device;
use evaluate::Results;
use evaluate::evaluation::Outcome;
use evaluate::neighbours::{self, NeighbourQuery};

use crate::entry::Entry;
use crate::table::{Table, write_forms};
use crate::{Result, objects, ours};

/// File of the nearest neighbours found, read again by reports.
pub(crate) const NEIGHBOURS: &str = "neighbours.json";
/// Queries of the neighbour image, and neighbours of each.
const QUERIES: usize = 6;
const NEIGHBOURS_EACH: usize = 3;

/// Writes the folder; `results.json` last, so that its presence says that the folder is complete. Neighbours are named by the
/// numbers that `stored` gives an object and a view: those in the whole dataset.
pub fn write(
    folder: &Path,
    outcome: &Outcome,
    with_images: bool,
    stored: &dyn Fn(usize, usize) -> (usize, usize),
    device: &Device,
) -> Result<()> {
    dataset::durable::create_folder(folder)?;
    let results = &outcome.results;
    let held_out = results.data.split.held_out();
    let captions = ["representations", "embeddings"].map(|of| format!("Probes on {of}, {held_out}"));
    write_forms(&tables(std::slice::from_ref(results), captions), |ending| {
        folder.join(format!("tables.{ending}"))
    })?;
    if with_images {
        let queries = neighbours::choose_queries(&outcome.truth, QUERIES, results.protocol.seed);
        let table = &outcome.features.representation;
        let mut found: Vec<NeighbourQuery> =
            neighbours::find(table, &outcome.truth, &queries, NEIGHBOURS_EACH, device)?;
        for query in &mut found {
            (query.object, query.view) = stored(query.object, query.view);
            for found in &mut query.found {
                (found.object, found.view) = stored(found.object, found.view);
            }
        }
        let text = serde_json::to_string_pretty(&found)?;
        dataset::durable::write(&folder.join(NEIGHBOURS), text.as_bytes())?;
    }
    objects::write(results, folder)?;
    Ok(results.write_into(folder)?)
}

/// The tables of some results: probes on representations, on embeddings, retrieval.
fn tables(all: &[Results], captions: [String; 2]) -> Vec<Table> {
    let entries: Vec<Entry> = all.iter().map(Entry::plain).collect();
    let representations = ours::probes("probes", &captions[0], &entries, false);
    let embeddings = ours::probes("embeddings", &captions[1], &entries, true);
    representations.into_iter().chain(embeddings).chain(ours::retrieval(&entries)).collect()
}

/// The tables of some results as plain text.
pub fn to_text(all: &[Results]) -> String {
    let with_caption = |table: Table| match table.caption.as_str() {
        "" => table.to_text(),
        caption => format!("\n{caption}\n{}", table.to_text()),
    };
    let entries: Vec<Entry> = all.iter().map(Entry::plain).collect();
    let captions = [format!("held out: {}", ours::held_out(&entries)), "embeddings".to_owned()];
    tables(all, captions).into_iter().map(with_caption).collect()
}
