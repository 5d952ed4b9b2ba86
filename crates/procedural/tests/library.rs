//! What the library promises about every class: distinct, well-formed, normalised, repeatable objects whose pose
//! shows in the image.

mod images;

use images::Seen;
use rayon::prelude::*;
use render::PreparedMesh;
use scene::Mesh;
use std::collections::HashSet;

const SEED: u64 = 11;
const INSTANCES: u64 = 50;

/// A hash of positions and triangles: two instances that share it share their geometry.
fn geometry(mesh: &Mesh) -> u64 {
    let mut bytes = Vec::with_capacity(mesh.vertices.len() * 12);
    for v in &mesh.vertices {
        for c in v.position {
            bytes.extend(((c * 1e4).round() as i32).to_le_bytes());
        }
    }
    random::fnv1a(&bytes)
}

fn whole(mesh: &Mesh) -> u64 {
    random::fnv1a(format!("{mesh:?}").as_bytes())
}

fn for_each_class(check: impl Fn(usize) + Sync + Send) {
    (0..55).into_par_iter().for_each(check);
}

#[test]
fn classes_are_in_label_order_with_ascending_synsets() {
    let classes = procedural::classes();
    assert_eq!(classes.len(), 55);
    assert!(classes.iter().enumerate().all(|(i, c)| c.label == i && c.synset.len() == 8));
    assert!(classes.windows(2).all(|w| w[0].synset < w[1].synset));
    assert_eq!((classes[18].synset, classes[18].name), ("03001627", "chair"));
}

#[test]
fn fifty_instances_of_a_class_are_distinct_and_well_formed() {
    for_each_class(|label| {
        let name = procedural::classes()[label].name;
        let mut seen = HashSet::new();
        for index in 0..INSTANCES {
            let mesh = procedural::build(SEED, label, index);
            let n = mesh.triangles.len();
            assert!((500..=20_000).contains(&n), "{name} {index} has {n} triangles");
            assert!(seen.insert(geometry(&mesh)), "{name} {index} repeats an earlier instance");
            check_mesh(&mesh, name, index);
        }
    });
}

fn check_mesh(mesh: &Mesh, name: &str, index: u64) {
    assert_eq!(mesh.triangles.len(), mesh.triangle_materials.len());
    assert!(mesh.triangle_materials.iter().all(|&m| (m as usize) < mesh.materials.len()));
    let (mut low, mut high) = ([f64::MAX; 3], [f64::MIN; 3]);
    for v in &mesh.vertices {
        assert!(v.position.iter().chain(&v.normal).chain(&v.uv).all(|c| c.is_finite()), "{name} {index}");
        let length = v.normal.iter().map(|c| c * c).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-3, "{name} {index}: normal of length {length}");
        for k in 0..3 {
            low[k] = low[k].min(f64::from(v.position[k]));
            high[k] = high[k].max(f64::from(v.position[k]));
        }
    }
    let diagonal = (0..3).map(|k| (high[k] - low[k]).powi(2)).sum::<f64>().sqrt();
    assert!((diagonal - 1.0).abs() < 1e-5, "{name} {index}: diagonal {diagonal}");
    assert!((0..3).all(|k| (low[k] + high[k]).abs() < 1e-5), "{name} {index} is off centre");
    let mut against = 0;
    for t in &mesh.triangles {
        let p = t.map(|i| glam::Vec3::from(mesh.vertices[i as usize].position));
        let n = t.map(|i| glam::Vec3::from(mesh.vertices[i as usize].normal));
        let cross = (p[1] - p[0]).cross(p[2] - p[0]);
        assert!(cross.length() > 0.9e-9, "{name} {index} has a degenerate triangle");
        against += usize::from(cross.dot(n[0] + n[1] + n[2]) <= 0.0);
    }
    // Normals may disagree with the winding only on slivers of strongly bent surfaces.
    assert!(
        against * 100 <= mesh.triangles.len(),
        "{name} {index}: {against} triangles face against their normals"
    );
    for m in &mesh.materials {
        assert!(m.base_colour.iter().all(|c| (0.0..=1.0).contains(c)) && m.alpha == 1.0, "{name} {index}");
        assert!((0.0..=1.0).contains(&m.roughness) && (0.0..=1.0).contains(&m.specular), "{name} {index}");
        if let Some(t) = &m.texture {
            assert!(t.width <= 64 && t.height <= 64 && t.pixels.len() == (t.width * t.height) as usize);
        }
    }
}

#[test]
fn every_class_varies_at_least_four_parameters() {
    for_each_class(|label| {
        let name = procedural::classes()[label].name;
        let mut values: std::collections::BTreeMap<&str, HashSet<u64>> = Default::default();
        for index in 0..INSTANCES {
            let parameters = procedural::describe(SEED, label, index);
            let names: HashSet<&str> = parameters.iter().map(|p| p.0).collect();
            assert_eq!(names.len(), parameters.len(), "{name} {index} names a parameter twice");
            for (key, value) in parameters {
                values.entry(key).or_default().insert(value.to_bits());
            }
        }
        let varied = values.values().filter(|v| v.len() > 1).count();
        assert!(varied >= 4, "{name} varies only {varied} parameters");
    });
}

#[test]
fn an_instance_depends_only_on_seed_class_and_index() {
    for_each_class(|label| {
        let first = whole(&procedural::build(5, label, 7));
        assert_eq!(first, whole(&procedural::build(5, label, 7)));
        let other_thread = std::thread::spawn(move || whole(&procedural::build(5, label, 7)));
        assert_eq!(first, other_thread.join().expect("the thread built its mesh"));
        assert_ne!(first, whole(&procedural::build(6, label, 7)));
        assert_ne!(first, whole(&procedural::build(5, label, 8)));
    });
}

#[test]
fn quarter_and_half_turns_change_the_image() {
    for_each_class(|label| {
        let name = procedural::classes()[label].name;
        for index in 0..3 {
            let mesh = procedural::build(SEED, label, index);
            let prepared = PreparedMesh::new(&mesh);
            let upright = images::draw(&prepared, &mesh, [0.0; 3], 64);
            for turn in images::TURNS {
                let d = images::difference(&upright, &images::draw(&prepared, &mesh, turn, 64));
                assert!(d >= 8.0, "{name} {index}: turning by {turn:?} changes the image by only {d:.1}/255");
            }
        }
    });
}

#[test]
fn surfaces_face_outwards() {
    for_each_class(|label| {
        let name = procedural::classes()[label].name;
        for index in 0..8 {
            let mesh = procedural::build(SEED, label, index);
            let (mut seen, mut inside) = (0, 0);
            for turn in [[0.0; 3], [180.0, 0.0, 40.0], [60.0, 0.0, 120.0], [90.0, 30.0, 200.0]] {
                let pixels = images::facing(&mesh, turn, 64);
                seen += pixels.iter().filter(|s| **s != Seen::Floor).count();
                inside += pixels.iter().filter(|s| **s == Seen::Inside).count();
            }
            let share = inside as f32 / seen as f32;
            assert!(share < 0.03, "{name} {index} shows the inside of its surface at {:.1} %", 100.0 * share);
        }
    });
}

#[test]
fn the_benchmark_set_is_detailed() {
    let set = procedural::benchmark_set();
    assert_eq!(set.len(), 20);
    for (i, mesh) in set.iter().enumerate() {
        let n = mesh.triangles.len();
        assert!((5_000..=20_000).contains(&n), "object {i} has {n} triangles");
    }
}
