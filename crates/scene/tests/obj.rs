//! OBJ files as they occur: polygons, indices, materials, normals, and everything that can be wrong with them.

use scene::{LoadOptions, LoadedMesh, Mesh, MeshError, Up, load_mesh};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("creates folders");
        std::fs::write(&path, content).expect("writes");
        path
    }

    fn load(&self, name: &str) -> Result<LoadedMesh, MeshError> {
        load_mesh(&self.path().join(name), &LoadOptions::under(self.path()))
    }
}

fn load(text: impl AsRef<[u8]>) -> Result<LoadedMesh, MeshError> {
    let folder = Folder::new();
    folder.write("mesh.obj", text);
    folder.load("mesh.obj")
}

fn message(text: impl AsRef<[u8]>) -> String {
    load(text).expect_err("it is wrong").to_string()
}

fn png(colour: [u8; 4], width: u32, height: u32) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let image = image::RgbaImage::from_pixel(width, height, image::Rgba(colour));
    image.write_to(&mut bytes, image::ImageFormat::Png).expect("encodes");
    bytes.into_inner()
}

fn area(mesh: &Mesh) -> f64 {
    let corner = |i: u32| mesh.vertices[i as usize].position.map(f64::from);
    mesh.triangles
        .iter()
        .map(|t| {
            let [a, b, c] = t.map(corner);
            let [u, v]: [[f64; 3]; 2] = [b, c].map(|p| std::array::from_fn(|i| p[i] - a[i]));
            let n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
            0.5 * n.iter().map(|x| x * x).sum::<f64>().sqrt()
        })
        .sum()
}

const SQUARE: &str = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n";

#[test]
fn y_up_becomes_z_up() {
    let text = "v 1 2 3\nv 2 2 3\nv 1 3 3\nvn 0 0 1\nf 1//1 2//1 3//1\n";
    let mesh = load(text).expect("loads").mesh;
    assert_eq!(mesh.vertices[0].position, [1.0, -3.0, 2.0]);
    assert_eq!(mesh.vertices[0].normal, [0.0, -1.0, 0.0]);
    let folder = Folder::new();
    let path = folder.write("mesh.obj", text);
    let options = LoadOptions { up: Some(Up::Z), ..LoadOptions::default() };
    let mesh = load_mesh(&path, &options).expect("loads").mesh;
    assert_eq!(mesh.vertices[0].position, [1.0, 2.0, 3.0]);
    assert_eq!(mesh.vertices[0].normal, [0.0, 0.0, 1.0]);
}

#[test]
fn polygons_are_cut_and_indices_may_be_negative() {
    let mesh = load(format!("{SQUARE}f -4 -3 -2 -1\n")).expect("loads").mesh;
    assert_eq!((mesh.triangles.len(), mesh.vertices.len()), (2, 4));
    assert!((area(&mesh) - 1.0).abs() < 1e-6);
    // A concave one, corners ahead of the positions they use, a comment and a continued line.
    let arrow = "f 1 2 \\\n 3 4 # an arrow\nv 0 0 0\nv 2 1 0\nv 0 2 0\nv 1 1 0\n";
    let mesh = load(arrow).expect("loads").mesh;
    assert_eq!(mesh.triangles.len(), 2);
    assert!((area(&mesh) - 1.0).abs() < 1e-6);
}

#[test]
fn all_line_endings_and_attribute_forms_work() {
    let text = format!(
        "{SQUARE}vt 0 0\nvt 1 0\nvt 1 1 0\nvn 0 0 2\nf 1/1/1 2/2/1 3/3/1\nf 1//1 3//1 4//1\nf 1/1 2/2 4\n"
    );
    let expected = load(&text).expect("loads").mesh;
    assert_eq!(expected.triangles.len(), 3);
    assert_eq!(expected.vertices[1].uv, [1.0, 0.0]);
    assert_eq!(expected.vertices[0].normal, [0.0, -1.0, 0.0]);
    for ending in ["\r\n", "\r"] {
        assert_eq!(load(text.replace('\n', ending)).expect("loads").mesh, expected);
    }
}

#[test]
fn normals_are_flat_or_smooth_over_all_faces_of_an_object() {
    let roof = "v 0 0 0\nv 0 0 1\nv 1 1 0\nv 1 1 1\nv 2 0 0\nv 2 0 1\n";
    let faces = "f 1 2 4 3\nf 3 4 6 5\n";
    let ridge_normals = |text: String| {
        let mesh = load(text).expect("loads").mesh;
        let mut normals: Vec<[i32; 3]> = mesh
            .vertices
            .iter()
            .filter(|vertex| vertex.position[0] == 1.0)
            .map(|vertex| vertex.normal.map(|n| (n * 1000.0).round() as i32))
            .collect();
        normals.sort_unstable();
        normals.dedup();
        normals
    };
    let flat = vec![[-707, 0, 707], [707, 0, 707]];
    assert_eq!(ridge_normals(format!("{roof}{faces}")), flat);
    assert_eq!(ridge_normals(format!("{roof}s 1\n{faces}s off\n")), vec![[0, 0, 1000]]);
    // As in the importer of the published generator: groups are not kept apart, 0 is one of them, flat faces count in
    // the mean, objects are separate.
    assert_eq!(ridge_normals(format!("{roof}s 1\nf 1 2 4 3\ns 2\nf 3 4 6 5\n")), vec![[0, 0, 1000]]);
    assert_eq!(ridge_normals(format!("{roof}s 0\n{faces}")), vec![[0, 0, 1000]]);
    assert_eq!(
        ridge_normals(format!("{roof}s 1\nf 1 2 4 3\ns off\nf 3 4 6 5\n")),
        vec![[0, 0, 1000], [707, 0, 707]]
    );
    assert_eq!(ridge_normals(format!("{roof}o a\ns 1\nf 1 2 4 3\no b\nf 3 4 6 5\n")), flat);
    assert_eq!(ridge_normals(format!("{roof}s off\n{faces}")), flat);
}

#[test]
fn materials_and_textures_are_found_under_the_root() {
    let folder = Folder::new();
    let obj =
        format!("mtllib my model.mtl\n{SQUARE}vt 0 0\nusemtl a b\nf 1/1 2/1 3/1\nusemtl none\nf 1 3 4\n");
    folder.write("class/object/models/model.obj", obj);
    folder.write(
        "class/object/models/my model.mtl",
        "newmtl a b\nKd 0.5 0.25 1\nKs 0.4 0.4 0.4\nNs 10\nmap_Kd -s 1 1 1 ..\\images\\Wood Grain.PNG\n\
         newmtl none\nKd 0.1 0.1 0.1\nmap_Kd missing.png\n",
    );
    folder.write("class/object/images/wood grain.png", png([10, 20, 30, 255], 3, 2));
    let loaded = folder.load("class/object/models/model.obj").expect("loads");
    let [first, second] = &loaded.mesh.materials[..] else { panic!("two materials") };
    assert_eq!((first.name.as_str(), first.base_colour), ("a b", [0.5, 0.25, 1.0]));
    let texture = first.texture.as_ref().expect("a texture");
    assert_eq!((texture.width, texture.height, texture.pixels[5]), (3, 2, [10, 20, 30, 255]));
    assert!(second.texture.is_none());
    assert_eq!(second.base_colour, [0.1; 3]);
    assert_eq!(loaded.mesh.triangle_materials, [0, 1]);
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].contains("my model.mtl:8") && loaded.warnings[0].contains("missing.png"));
}

#[test]
fn maps_are_taken_as_the_importer_takes_them() {
    let folder = Folder::new();
    folder.write("half.png", png([200, 100, 50, 128], 2, 2));
    let mut grey = std::io::Cursor::new(Vec::new());
    image::GrayImage::from_pixel(1, 1, image::Luma([100]))
        .write_to(&mut grey, image::ImageFormat::Png)
        .expect("encodes");
    folder.write("grey.png", grey.into_inner());
    let load = |statements: &str| {
        folder.write("m.mtl", format!("newmtl a\n{statements}\n"));
        folder.write("mesh.obj", format!("mtllib m.mtl\n{SQUARE}usemtl a\nf 1 2 3 4\n"));
        folder.load("mesh.obj").expect("loads")
    };
    // A colour is multiplied by its alpha; opacity is the alpha, or the brightness of an image without.
    let m = load("d 0.3\nmap_Kd half.png\nmap_d half.png").mesh.materials[0].clone();
    assert_eq!(m.texture.expect("a texture").pixels[0], [100, 50, 25, 255]);
    assert_eq!((m.opacity.expect("holes").pixels[0][3], m.alpha), (128, 1.0));
    let m = load("map_d grey.png").mesh.materials[0].clone();
    assert_eq!(m.opacity.expect("holes").pixels[0][3], 100);
    // The other maps replace their numbers.
    let m =
        load("Ks 0.1 0.1 0.1\nmap_Ks grey.png\nKe 0.2 0.2 0.2\nmap_Ke half.png\nmap_bump -bm 0.5 half.png");
    let m = m.mesh.materials[0].clone();
    assert_eq!((m.specular, m.surface_map.expect("a map").pixels[0]), (1.0, [100, 255, 255, 255]));
    assert_eq!((m.emission, m.emission_map.expect("a map").pixels[0][0]), ([1.0; 3], 100));
    assert_eq!((m.normal_strength, m.normal_map.expect("a map").pixels[0]), (0.5, [200, 100, 50, 128]));
    let m = load("map_Kd -s 2 4 1 -o 0.5 0 0 grey.png").mesh.materials[0].clone();
    assert_eq!(m.texture.map(|map| (map.scale, map.offset)), Some(([0.5, 0.25], [-0.25, 0.0])));
    // What is not made is named.
    let loaded = load("refl -type sphere half.png");
    assert!(loaded.warnings[0].contains("m.mtl:2: refl is not supported"), "{:?}", loaded.warnings);
}

#[test]
fn what_is_not_made_of_materials_is_named_once() {
    let folder = Folder::new();
    folder.write("a.png", png([200, 100, 50, 255], 2, 2));
    let block = "Pm 0.5\nPcr 0.03\nmap_Disp a.png\nmap_Kd -clamp on a.png\n";
    folder.write("m.mtl", format!("newmtl a\n{block}newmtl b\n{block}newmtl unused\nrefl a.png\n"));
    folder.write("mesh.obj", format!("mtllib m.mtl\n{SQUARE}usemtl a\nf 1 2 3\nusemtl b\nf 1 3 4\n"));
    let warnings = folder.load("mesh.obj").expect("loads").warnings;
    let ends = [
        "m.mtl:2: Pm is not supported and left out",
        "m.mtl:4: map_disp is not supported and left out",
        "m.mtl:5: the option -clamp of a map is not supported and left out",
    ];
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings.iter().zip(ends).all(|(warning, end)| warning.ends_with(end)), "{warnings:?}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_linked_into_the_root_belongs_to_it() {
    let folder = Folder::new();
    folder.write("elsewhere/chair/m.mtl", "newmtl b\nmap_Kd ../wood.png\n");
    folder.write("elsewhere/wood.png", png([1, 2, 3, 255], 1, 1));
    folder.write("elsewhere/chair/mesh.obj", format!("mtllib m.mtl\n{SQUARE}usemtl b\nf 1 2 3\n"));
    std::fs::create_dir(folder.path().join("root")).expect("a folder");
    std::os::unix::fs::symlink("../elsewhere", folder.path().join("root/class")).expect("links");
    let options = LoadOptions::under(folder.path().join("root"));
    let loaded = load_mesh(&folder.path().join("root/class/chair/mesh.obj"), &options).expect("loads");
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert!(loaded.mesh.materials[0].texture.is_some());
}

#[cfg(unix)]
#[test]
fn nothing_outside_the_root_is_read() {
    let folder = Folder::new();
    folder.write("secret/outside.png", png([1, 2, 3, 255], 1, 1));
    folder.write("secret/outside.mtl", "newmtl a\nKd 1 0 0\n");
    folder.write(
        "root/mesh.obj",
        format!("mtllib ../secret/outside.mtl link.mtl ok.mtl\n{SQUARE}usemtl b\nf 1 2 3\n"),
    );
    folder.write("root/ok.mtl", "newmtl b\nmap_Kd link.png\n");
    std::os::unix::fs::symlink("../secret/outside.png", folder.path().join("root/link.png")).expect("links");
    std::os::unix::fs::symlink("../secret/outside.mtl", folder.path().join("root/link.mtl")).expect("links");
    let path = folder.path().join("root/mesh.obj");
    let inside = load_mesh(&path, &LoadOptions::under(folder.path().join("root"))).expect("loads");
    assert!(inside.mesh.materials[0].texture.is_none());
    let outside =
        inside.warnings.iter().filter(|warning| warning.contains("outside of the folder of the meshes"));
    assert_eq!(outside.count(), 3);
    let wider = load_mesh(&path, &LoadOptions::under(folder.path())).expect("loads");
    assert!(wider.mesh.materials[0].texture.is_some() && wider.warnings.is_empty());
}

#[test]
fn missing_libraries_and_materials_are_grey_with_a_warning() {
    let loaded = load(format!("mtllib gone.mtl\n{SQUARE}usemtl a\nf 1 2 3 4\n")).expect("loads");
    assert_eq!(loaded.mesh.materials[0].base_colour, [0.8; 3]);
    assert!(loaded.warnings[0].contains("mesh.obj:1") && loaded.warnings[0].contains("gone.mtl"));
    assert!(loaded.warnings[1].contains("\"a\""));
    let loaded = load(format!("{SQUARE}f 1 2 3 4\n")).expect("loads");
    assert_eq!((loaded.mesh.materials.len(), loaded.warnings.len()), (1, 0));
}

#[test]
fn mistakes_are_named_with_file_and_line() {
    for (text, expected) in [
        ("v 0 0 nan\n", "mesh.obj:1: \"nan\""),
        ("v 0 0 1e60\n", "mesh.obj:1: \"1e60\""),
        ("v 0 0\n", "mesh.obj:1: expected 3 numbers, found 2"),
        ("\nvn 0 inf 0\n", "mesh.obj:2: \"inf\""),
        ("v 0 0 0\nf 1 2 3\n", "mesh.obj:2: index 3, but the file has only 1 \"v\""),
        ("v 0 0 0\nf 1 1 0\n", "mesh.obj:2: index 0"),
        ("v 0 0 0\nf -2 1 1\n", "mesh.obj:2: index -2"),
        ("v 0 0 0\nf 1/1 1/1 1/1\n", "mesh.obj:2: index 1, but the file has only 0 \"vt\""),
        ("v 0 0 0\nf 1/ /1 1\n", "mesh.obj:2: \"/1\" is not a corner"),
        ("v 0 0 0\nf 1.5 1 1\n", "mesh.obj:2: \"1.5\" is not an index"),
        ("v 0 0 0\nf 99999999999999999999 1 1\n", "is not an index"),
        ("v 0 0 0\nv 1 0 0\nl 1 2\n", "mesh.obj: has no faces"),
        ("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "mesh.obj: has no face with an area"),
    ] {
        assert!(message(text).contains(expected), "{text:?}: {}", message(text));
    }
    let missing = load_mesh(Path::new("/no/such/mesh.obj"), &LoadOptions::default());
    assert!(missing.expect_err("missing").to_string().contains("/no/such/mesh.obj"));
}

#[test]
fn degenerate_faces_are_dropped() {
    let loaded = load(format!("{SQUARE}f 1 2 3\nf 1 1 2\nf 1 2\nf 1 2 1 2\nf\n")).expect("loads");
    assert_eq!(loaded.mesh.triangles.len(), 1);
    assert!(loaded.warnings[0].contains("4 faces"), "{:?}", loaded.warnings);
}

#[test]
fn large_offsets_keep_their_detail() {
    let text = "v 1000000 0 0\nv 1000000.01 0 0\nv 1000000 0.01 0\nf 1 2 3\n";
    let mesh = load(text).expect("loads").mesh;
    assert!((area(&mesh) - 0.00005).abs() < 1e-8);
}

#[test]
fn materials_have_a_limit() {
    let many: String = (0..70_000).map(|i| format!("usemtl {i}\n")).collect();
    let error = message(format!("{SQUARE}{many}f 1 2 3\n"));
    assert!(error.contains("mesh.obj:65541: the mesh uses more than 65536 materials"), "{error}");
}

#[test]
fn limits_hold() {
    let folder = Folder::new();
    let path = folder.write("mesh.obj", format!("{SQUARE}{}", "f 1 2 3\n".repeat(100)));
    let options = LoadOptions { max_triangles: 50, ..LoadOptions::default() };
    let error = load_mesh(&path, &options).expect_err("too many").to_string();
    assert!(error.contains("more than 50 triangles"), "{error}");
    folder.write("t.mtl", "newmtl a\nmap_Kd t.png\n");
    folder.write("t.png", png([0; 4], 100, 100));
    let path = folder.write("mesh.obj", format!("mtllib t.mtl\n{SQUARE}usemtl a\nf 1 2 3\n"));
    let options = LoadOptions { max_texture_bytes: 1000, ..LoadOptions::default() };
    let loaded = load_mesh(&path, &options).expect("loads");
    assert!(loaded.mesh.materials[0].texture.is_none() && loaded.warnings[0].contains("100 x 100"));
}
