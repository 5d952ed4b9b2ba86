//! Rows of what is reached without any information: the floors of probes, the chance of retrieval. Where it is the same for
//! all rows of a table, it is one row; otherwise every protocol has its own.

use std::collections::BTreeSet;

use evaluate::Protocol;

use crate::entry::protocol_words;
use crate::table::{Cell, Row};

/// What is reached without any information where a row of a table has its numbers.
pub(crate) struct Baseline<'a> {
    /// The network of the row.
    pub network: &'a str,
    /// What its name ends with, where it is about other data than most.
    pub end: &'a str,
    /// How it was measured.
    pub protocol: &'a Protocol,
    /// A number for each column.
    pub cells: Vec<Cell>,
}

/// Rows that share a baseline.
#[derive(Clone)]
struct Shared<'a> {
    networks: Vec<&'a str>,
    /// The protocol in words; of several, that of the first.
    protocol: String,
    cells: Vec<Cell>,
}

/// So many networks are named; more of them are the other rows.
const FEW: usize = 3;

/// The rows of the baselines `all`, called `name`.
pub(crate) fn rows(name: &str, all: &[Baseline<'_>]) -> Vec<Row> {
    let mut ends: Vec<&str> = Vec::new();
    for baseline in all {
        if !ends.contains(&baseline.end) {
            ends.push(baseline.end);
        }
    }
    let mut rows = Vec::new();
    for end in ends {
        let of_end = all.iter().filter(|baseline| baseline.end == end);
        for (whose, cells) in told_apart(of_end.map(Shared::of)) {
            rows.push(std::iter::once(format!("{name}{end}{whose}").into()).chain(cells).collect());
        }
    }
    rows
}

/// Baselines of the same data, with what tells whose they are.
fn told_apart<'a>(all: impl Iterator<Item = Shared<'a>>) -> Vec<(String, Vec<Cell>)> {
    let by_protocol = gathered(all, |a, b| a.protocol == b.protocol);
    let by_cells = gathered(by_protocol.iter().cloned(), |_, _| true);
    let protocols: BTreeSet<&str> = by_protocol.iter().map(|shared| shared.protocol.as_str()).collect();
    if by_cells.len() <= 1 {
        by_cells.into_iter().map(|shared| (String::new(), shared.cells)).collect()
    } else if protocols.len() == by_protocol.len() {
        by_protocol.into_iter().map(|shared| (format!(", {}", shared.protocol), shared.cells)).collect()
    } else {
        let most = by_cells.iter().map(|shared| shared.networks.len()).max().filter(|most| *most > FEW);
        let others = by_cells.iter().position(|shared| Some(shared.networks.len()) == most);
        let whose = |index: usize, shared: &Shared<'_>| match Some(index) == others {
            true => "other rows".to_owned(),
            false => shared.networks.join(", "),
        };
        let of_each = by_cells.into_iter().enumerate();
        of_each.map(|(index, shared)| (format!(", {}", whose(index, &shared)), shared.cells)).collect()
    }
}

/// `all`, as one where they are `alike` and have the same numbers.
fn gathered<'a>(
    all: impl Iterator<Item = Shared<'a>>,
    alike: impl Fn(&Shared<'_>, &Shared<'_>) -> bool,
) -> Vec<Shared<'a>> {
    let mut gathered: Vec<Shared<'a>> = Vec::new();
    for shared in all {
        match gathered.iter_mut().find(|other| alike(other, &shared) && other.fits(&shared)) {
            Some(other) => other.absorb(shared),
            None => gathered.push(shared),
        }
    }
    gathered
}

impl<'a> Shared<'a> {
    fn of(baseline: &Baseline<'a>) -> Self {
        let words = protocol_words(baseline.protocol).join(", ");
        let protocol = if words.is_empty() { format!("{} probes", baseline.protocol.preset) } else { words };
        Self { networks: vec![baseline.network], protocol, cells: baseline.cells.clone() }
    }

    /// Whether both show the same where both have a number.
    fn fits(&self, other: &Self) -> bool {
        let is_same =
            |(a, b): (&Cell, &Cell)| *a == Cell::Missing || *b == Cell::Missing || a.text() == b.text();
        self.cells.iter().zip(&other.cells).all(is_same)
    }

    fn absorb(&mut self, other: Self) {
        for (own, cell) in self.cells.iter_mut().zip(other.cells) {
            if *own == Cell::Missing {
                *own = cell;
            }
        }
        for network in other.networks {
            if !self.networks.contains(&network) {
                self.networks.push(network);
            }
        }
    }
}
