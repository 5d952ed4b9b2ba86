//! The published tables (arXiv 2506.09895, main text and supplement) as data: every column says which quantity it is,
//! every row whose, so that our results can stand beside them. ResNet-18 and 2000 epochs unless said. No repeats or
//! error bars were published; differences below about 0.5 points of top-1 or 0.01 of R² are ties.

/// A dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 3DIEBench.
    ThreeDie,
    /// 3DIEBench-T.
    ThreeDieT,
}

/// What a network was trained for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trained {
    /// Rotation.
    Rotation,
    /// Rotation and object-frame translation.
    ObjectTranslation,
    /// Rotation and base-frame translation.
    BaseTranslation,
}

/// A measured quantity. Shares of 1 are published in percent for top-1 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Metric {
    Top1,
    Rotation,
    TranslationObject,
    TranslationBase,
    Colour,
    EmbeddingRotation,
    EmbeddingTranslation,
    MrrTrain,
    MrrVal,
    H1Train,
    H1Val,
    H5Train,
    H5Val,
    PreRotationTrainTrain,
    PreRotationValVal,
    PreRotationValAll,
    PreTranslationTrainTrain,
    PreTranslationValVal,
    PreTranslationValAll,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedColumn {
    /// Heading over neighbouring columns.
    pub group: &'static str,
    /// Its own heading.
    pub heading: &'static str,
    /// The quantity.
    pub metric: Metric,
    /// On which dataset.
    pub kind: Kind,
    /// For what the network was trained.
    pub trained: Trained,
    /// After how many epochs; 2000, or whatever a run has at its end, where `None`.
    pub epochs: Option<u64>,
}

/// Whose numbers a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedRow {
    /// The method as configurations call it.
    pub method: &'static str,
    /// Its name in the paper.
    pub name: &'static str,
    /// Number of capsules, in the table about that.
    pub capsules: Option<usize>,
    /// The changed terms of the loss, in the table about that.
    pub ablation: &'static str,
    /// The backbone.
    pub backbone: &'static str,
}

/// A published table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// A short name.
    pub name: &'static str,
    /// The caption.
    pub caption: &'static str,
    /// The columns.
    pub columns: &'static [PublishedColumn],
    /// The rows with their numbers.
    pub rows: &'static [(PublishedRow, &'static [f64])],
    /// A remark; may be empty.
    pub note: &'static str,
}

const fn method(method: &'static str, name: &'static str) -> PublishedRow {
    PublishedRow { method, name, capsules: None, ablation: "", backbone: "resnet18" }
}

const fn vit(method: &'static str, name: &'static str) -> PublishedRow {
    PublishedRow { method, name, capsules: None, ablation: "", backbone: "vit_tiny" }
}

const fn capsules(count: usize) -> PublishedRow {
    let name = match count {
        16 => "16 capsules",
        32 => "32 capsules",
        _ => "64 capsules",
    };
    PublishedRow { method: "equicaps", name, capsules: Some(count), ablation: "", backbone: "resnet18" }
}

const fn ablation(ablation: &'static str, name: &'static str) -> PublishedRow {
    PublishedRow { method: "equicaps", name, capsules: None, ablation, backbone: "resnet18" }
}

mod tables;

pub use tables::TABLES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_number_for_every_column() {
        for table in TABLES {
            for (row, numbers) in table.rows {
                assert_eq!(numbers.len(), table.columns.len(), "{} {}", table.name, row.name);
                assert!(numbers.iter().all(|number| (0.0..=100.0).contains(number)));
            }
        }
    }

    #[test]
    fn some_numbers_are_where_they_belong() {
        let find = |name: &str, method: &str, column: usize| {
            let table = TABLES.iter().find(|table| table.name == name).unwrap();
            table.rows.iter().find(|(row, _)| row.method == method).unwrap().1[column]
        };
        assert_eq!(find("rotation-only", "equicaps", 2), 0.78);
        assert_eq!(find("rotation-translation", "equicaps", 0), 78.25);
        assert_eq!(find("retrieval-t", "sie", 7), 2.73);
        assert_eq!(find("convergence-top1-t", "vicreg", 4), 74.71);
        assert_eq!(find("base-frame-trained", "capsie", 2), 0.96);
        assert_eq!(find("embeddings", "sie", 0), 0.60);
        // The same weights appear in several tables.
        assert_eq!(find("rotation-only", "sie", 1), find("base-frame", "sie", 0));
        assert_eq!(find("convergence-rotation", "equicaps", 4), find("rotation-only", "equicaps", 2));
    }
}
