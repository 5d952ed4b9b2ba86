//! What the names of metrics mean, in words.

/// What the number called `name` is; nothing where nobody has said.
pub fn meaning(name: &str) -> Option<String> {
    let text = match name.split('/').collect::<Vec<_>>()[..] {
        ["loss"] => "what is minimised: the terms below times their weights (loss.* in the settings)".to_owned(),
        ["loss", term] => term_meaning(term)?.to_owned(),
        ["probe", task, place] => {
            let task = match task {
                "class_accuracy" => "share of views whose class a linear probe finds",
                "knn_accuracy" => "share of views whose class the nearest training views have",
                "rotation_r2" => "R2 of the rotation between two views, by a probe of three layers",
                "translation_r2" => "R2 of the translation between two views, by a probe of three layers",
                _ => return None,
            };
            format!("{task}, on the {}", place.replace('_', " "))
        }
        ["floor", _] => "what is reached without any information".to_owned(),
        ["health", what] => match what {
            "std_mean" => "standard deviation of the representation over a batch, mean over dimensions; near 0: collapsed",
            "std_min" => "the same of the dimension that varies least",
            "effective_rank" => "directions that the representation uses; 1: collapsed",
            "capsule_entropy" => "1: all capsules are used alike over a batch, 0: one only",
            "sample_entropy" => "1: every view activates all capsules alike (as before training), 0: one each",
            _ => return None,
        }
        .to_owned(),
        ["bad_samples"] => "images that could not be read and were replaced".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// A term of the loss, by its name in the published code, before its weight.
fn term_meaning(term: &str) -> Option<&'static str> {
    Some(match term {
        "repr_loss_inv" => "invariance: how far the invariant parts of two views of an object are apart",
        "repr_loss_equi" => {
            "equivariance: how far the transformed embedding of a view is from that of the other"
        }
        "std_loss" => "variance: how far dimensions are below the wanted standard deviation of 1",
        "pred_std_loss" => "the same of what the predictor makes",
        "cov_loss" => "covariance: how much dimensions say the same",
        "MEMAX_loss" => "mean entropy: 0 where all capsules are used alike",
        "class_loss" => "cross-entropy of the classes",
        "regression_loss" => "mean squared error of what is regressed",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use methods::Health;

    #[test]
    fn every_name_that_is_written_has_a_meaning() {
        // Terms are named where they are made.
        let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../methods/src")).unwrap();
        let mut terms = 0;
        for source in sources.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            let text = std::fs::read_to_string(source).unwrap();
            for rest in text.split("Term::new(\"").skip(1) {
                let term = rest.split('"').next().unwrap();
                assert!(meaning(&format!("loss/{term}")).is_some(), "{term}");
                terms += 1;
            }
        }
        assert!(terms > 10, "found {terms} terms");
        let health = Health::of(&[0.0, 1.0, 2.0, 4.0], 2, Some((&[0.5, 0.5, 0.1, 0.9], 2)));
        for (name, _) in health.values() {
            assert!(meaning(&name).is_some(), "{name}");
        }
        let on = meaning("probe/rotation_r2/equivariant_half").unwrap();
        assert!(on.ends_with("on the equivariant half"), "{on}");
        for name in ["loss", "bad_samples", "floor/rotation_r2", "probe/knn_accuracy/representation"] {
            assert!(meaning(name).is_some(), "{name}");
        }
        assert_eq!((meaning("loss/other"), meaning("other")), (None, None));
    }
}
