//! Damaged and lying files: never a panic, and memory stays in proportion to what is really there.

mod cube;

use cube::every_cube;
use proptest::prelude::*;
use scene::{LoadOptions, load_mesh};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is allocated and its peak.
struct Counting;

static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// One test at a time, so that the counts are its own.
static TURN: Mutex<()> = Mutex::new(());

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = CURRENT.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn load(name: &str, bytes: &[u8]) -> Result<usize, String> {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("writes");
    let loaded = load_mesh(&path, &LoadOptions::default()).map_err(|error| error.to_string())?;
    let mesh = loaded.mesh;
    // Whatever loads is sound.
    assert_eq!(mesh.triangles.len(), mesh.triangle_materials.len());
    assert!(mesh.triangles.as_flattened().iter().all(|i| (*i as usize) < mesh.vertices.len()));
    assert!(mesh.triangle_materials.iter().all(|i| (*i as usize) < mesh.materials.len()));
    for vertex in &mesh.vertices {
        let length: f32 = vertex.normal.iter().map(|n| n * n).sum();
        assert!((length - 1.0).abs() < 1e-3, "{vertex:?}");
        assert!(vertex.position.iter().chain(&vertex.uv).all(|value| value.is_finite()), "{vertex:?}");
    }
    Ok(mesh.triangles.len())
}

#[test]
fn headers_that_lie_allocate_nothing() {
    let _turn = TURN.lock();
    let ply = |format: &str, count: &str| {
        format!(
            "ply\nformat {format} 1.0\nelement vertex {count}\nproperty float x\nproperty float y\nproperty float z\n\
             element face {count}\nproperty list uint int vertex_indices\nend_header\n0 0 0 "
        )
        .into_bytes()
    };
    let mut list = ply("binary_little_endian", "1");
    list.extend([0; 12]);
    list.extend([0xff; 4]);
    list.extend([0; 400]);
    let mut stl = vec![0; 84];
    stl[80..84].copy_from_slice(&u32::MAX.to_le_bytes());
    let gltf = cube::cube_gltf(&cube::data_uri(&cube::cube_buffer()), r#"[{"mesh":0}]"#, "", "");
    let huge_view = gltf
        .replace("\"count\":8", "\"count\":29000000")
        .replace("\"byteLength\":96", "\"byteLength\":4000000000")
        .replace("\"byteLength\":168", "\"byteLength\":4000000000");
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbaImage::new(4, 4).write_to(&mut png, image::ImageFormat::Png).expect("encodes");
    let mut png = png.into_inner();
    png[16..20].copy_from_slice(&10_000_u32.to_be_bytes());
    png[20..24].copy_from_slice(&10_000_u32.to_be_bytes());
    let sum = crc(&png[12..29]);
    png[29..33].copy_from_slice(&sum.to_be_bytes());
    let textured = cube::cube_gltf(
        &cube::data_uri(&cube::cube_buffer()),
        r#"[{"mesh":0}]"#,
        &format!(
            r#","materials":[{{"pbrMetallicRoughness":{{"baseColorTexture":{{"index":0}}}}}}],
            "textures":[{{"source":0}}],"images":[{{"uri":"{}"}}]"#,
            cube::data_uri(&png)
        ),
        r#","material":0"#,
    );
    for (name, bytes) in [
        ("a.ply", ply("ascii", "4000000000")),
        ("a.ply", ply("binary_little_endian", "4000000000")),
        ("a.ply", ply("binary_big_endian", "18446744073709551615")),
        ("a.ply", list),
        ("a.stl", stl),
        ("a.off", b"OFF\n4000000000 4000000000 0\n0 0 0\n".to_vec()),
        ("a.off", b"OFF\n1 1 0\n0 0 0\n4000000000 0 0\n".to_vec()),
        ("a.gltf", huge_view.into_bytes()),
        ("a.gltf", textured.into_bytes()),
    ] {
        let before = CURRENT.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let result = load(name, &bytes);
        let peak = PEAK.load(Ordering::Relaxed) - before;
        assert!(peak < 8 << 20, "{name}: {result:?} took {peak} bytes");
    }
}

/// The checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 },
        )
    })
}

/// Text that is nearly right is more dangerous than noise.
const FRAGMENTS: &[&str] = &[
    "v 0 0 0\n",
    "v 1 0 0\n",
    "v 0 1 0\n",
    "v 1e38 -1e38 1\n",
    "v 1 1 1 0.5 0.5 0.5\n",
    "vt 0 0\n",
    "vn 0 0 1\n",
    "vn 0 0 0\n",
    "f 1 2 3\n",
    "f 1 2 3 4 5\n",
    "f -1 -2 -3\n",
    "f 1/1/1 2/1/1 3//1\n",
    "f\n",
    "s 1\n",
    "s off\n",
    "usemtl a\n",
    "mtllib a.mtl\n",
    "\\\n",
    "OFF\n",
    "COFF 3 1\n",
    "3 1 0\n",
    "3 0 1 2\n",
    "0 0 0\n",
    "1 0 0\n",
    "0 1 0\n",
    "ply\n",
    "format ascii 1.0\n",
    "element vertex 3\n",
    "element face 1\n",
    "property float x\n",
    "property float y\n",
    "property float z\n",
    "property list uchar int vertex_indices\n",
    "end_header\n",
    "solid\n",
    "facet normal 0 0 0\n",
    "vertex 0 0 0\n",
    "vertex 1 0 0\n",
    "vertex 0 1 0\n",
    "endfacet\n",
    "{",
    "}",
    "\"asset\":{\"version\":\"2.0\"}",
    "#",
    "\0",
    "\r",
    " ",
];

/// An image with some structure.
fn image(format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let colour = |x: u32, y: u32| image::Rgb([(x * 37) as u8, (y * 53) as u8, (x * y) as u8]);
    image::RgbImage::from_fn(19, 23, colour).write_to(&mut bytes, format).expect("encodes");
    bytes.into_inner()
}

proptest! {
    #[test]
    fn damaged_companions_never_panic(
        format in prop::sample::select(vec![image::ImageFormat::Png, image::ImageFormat::Jpeg]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        statements in prop::collection::vec(prop::sample::select(vec![
            "newmtl a", "newmtl b", "Kd 1 0 0", "Kd", "Kd x", "Ks 0.5", "Ns 1e9", "d -halo 0.5", "Tr nan", "illum 2",
            "map_Kd t.img", "map_Kd -s 1 1 1 t.img", "map_Kd -o", "map_Kd ../../t.img", "map_Kd .", "\0", "#",
        ]), 0..12),
    ) {
        let _turn = TURN.lock();
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let mut bytes = image(format);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let path = folder.path().join("mesh.obj");
        let obj = "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\nusemtl b\nf 1 2 3\n";
        std::fs::write(folder.path().join("t.img"), bytes).expect("writes");
        std::fs::write(folder.path().join("m.mtl"), format!("{}\n", statements.join("\n"))).expect("writes");
        std::fs::write(&path, obj).expect("writes");
        let mesh = load_mesh(&path, &LoadOptions::default()).expect("what is wrong is only a warning").mesh;
        for material in &mesh.materials {
            prop_assert!(material.base_colour.iter().all(|channel| (0.0..=1.0).contains(channel)));
            prop_assert!((0.0..=1.0).contains(&material.roughness) && (0.0..=1.0).contains(&material.alpha));
            if let Some(texture) = &material.texture {
                prop_assert_eq!(texture.pixels.len(), (texture.width * texture.height) as usize);
            }
        }
    }

    #[test]
    fn damaged_files_never_panic(
        which in 0_usize..9,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let _turn = TURN.lock();
        let (name, mut bytes) = every_cube().swap_remove(which);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = load(name, &bytes);
    }

    #[test]
    fn nearly_right_text_never_panics(
        extension in prop::sample::select(vec!["obj", "off", "ply", "stl", "gltf", "xyz"]),
        pieces in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..40),
    ) {
        let _turn = TURN.lock();
        let _ = load(&format!("mesh.{extension}"), pieces.concat().as_bytes());
    }

    #[test]
    fn noise_never_panics(
        extension in prop::sample::select(vec!["obj", "off", "ply", "stl", "glb", "xyz"]),
        start in prop::sample::select(vec!["", "ply\n", "OFF\n", "glTF", "solid", "v ", "{"]),
        noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let _turn = TURN.lock();
        let mut bytes = start.as_bytes().to_vec();
        bytes.extend(noise);
        let _ = load(&format!("mesh.{extension}"), &bytes);
    }
}
