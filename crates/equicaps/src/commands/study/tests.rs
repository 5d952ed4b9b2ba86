//! The studies of the repository.

use super::*;

fn site(name: &str) -> Site {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(name);
    let study = Study::read(&file).unwrap();
    Site::new(name, study, PathBuf::from("out"), "cpu")
}

#[test]
fn every_study_of_the_repository_is_whole() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert_eq!(names, ["builtin.toml", "demo.toml", "hour.toml", "paper.toml"]);
    for name in &names {
        let site = site(name);
        // Every command is one that the program takes, every setting one that there is.
        let configurations = site.configurations().unwrap();
        for (run, config) in site.study.runs.iter().zip(&configurations) {
            // As `--dry-run` does it, but nothing is measured.
            let device = engine::Device::cpu();
            let (config, views) = &site.planned(run, config, &device).unwrap();
            let plan = train::Plan::taking(config, &**views, &device, |_| 1.0).unwrap();
            match name.as_str() {
                "hour.toml" => {
                    assert_eq!((config.method.image_size, config.method.batch), (128, 1024), "{}", run.name);
                    assert!(plan.steps == 4104 || plan.steps >= 20_000, "{}: {}", run.name, plan.steps);
                }
                "paper.toml" => {
                    assert_eq!((plan.epochs, plan.steps), (2000, 82_000), "{}", run.name);
                    assert_eq!((config.method.image_size, config.method.batch), (256, 1024), "{}", run.name);
                }
                "builtin.toml" => {
                    // What ships is what this study makes.
                    let weights = evaluate::weights::find(
                        std::path::Path::new(evaluate::builtin::NAME),
                        &evaluate::weights::Which::Newest,
                    );
                    let shipped = weights.unwrap().remove(0).config;
                    let about = |config: &Config| {
                        let method = &config.method;
                        (config.epochs, method.image_size, method.network.width, method.name, config.seed)
                    };
                    assert_eq!(about(config), about(&shipped));
                    assert_eq!(config.data, evaluate::builtin::DATA);
                }
                _ => assert_eq!(config.method.image_size, 32),
            }
        }
    }
}

#[test]
fn the_hour_begins_with_what_matters_most() {
    let names: Vec<String> = site("hour.toml").study.runs.into_iter().map(|run| run.name).collect();
    assert_eq!(names[0], "T-equicaps-s0");
    let place = |start: &str| names.iter().position(|name| name.starts_with(start)).unwrap();
    let order = [
        "T-equicaps-s0",
        "B-equicaps-s0",
        "T-equicaps-rotation+object",
        "T-equicaps-rotation+base",
        "T-equicaps-capsules16",
        "T-equicaps-rotation-4x4",
        "B-equicaps-only-equivariance",
        "T-equicaps-vit_tiny",
        "T-equicaps-long",
        "T-supervised-task_classification",
    ];
    let places: Vec<usize> = order.iter().map(|start| place(start)).collect();
    assert!(places.is_sorted(), "{places:?}");
    // All nine methods, and three seeds of those that come near each other.
    for method in ["vicreg", "simclr", "simclr_augself", "sen", "equimod", "sie", "capsie", "equicaps"] {
        assert!(names.contains(&format!("T-{method}-s0")), "{method}");
        assert!(names.contains(&format!("B-{method}-s0")), "{method}");
    }
    for method in ["equicaps", "simclr_augself", "capsie"] {
        assert!((0..3).all(|seed| names.contains(&format!("T-{method}-s{seed}"))), "{method}");
    }
}
