//! What glTF has of its own: nodes, materials, accessors of many types, claims that must be checked.

use crate::cube::*;
use crate::{error, load_in, load_with, sample};
use scene::{Material, Up};
use tempfile::TempDir;

#[test]
fn gltf_nodes_place_and_mirror_their_meshes() {
    // Scaled by 2, turned by 90 degrees about z, moved; and a mirrored copy below another node.
    let half = std::f32::consts::FRAC_1_SQRT_2;
    let nodes = format!(
        r#"[{{"mesh":0,"translation":[10,0,0],"rotation":[0,0,{half},{half}],"scale":[2,2,2],"children":[1]}},
            {{"mesh":0,"matrix":[-1,0,0,0, 0,1,0,0, 0,0,1,0, 0,5,0,1]}}]"#
    );
    let text = cube_gltf("cube.bin", &nodes, "", "");
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("cube.bin"), cube_buffer()).expect("writes");
    let mesh = load_in(folder.path(), "cube.gltf", text.as_bytes(), Some(Up::Z)).expect("loads").mesh;
    assert_eq!(mesh.triangles.len(), 24);
    let bounds = |range: std::ops::Range<usize>| {
        let positions =
            mesh.triangles[range].as_flattened().iter().map(|i| mesh.vertices[*i as usize].position);
        positions.fold(([f32::MAX; 3], [f32::MIN; 3]), |(low, high), p| {
            (std::array::from_fn(|i| low[i].min(p[i])), std::array::from_fn(|i| high[i].max(p[i])))
        })
    };
    let close = |(low, high): ([f32; 3], [f32; 3]), (l, h): ([f32; 3], [f32; 3])| {
        (0..3).all(|i| (low[i] - l[i]).abs() < 1e-5 && (high[i] - h[i]).abs() < 1e-5)
    };
    // The cube is 1 x 2 x 3 from the origin: x becomes y, y becomes -x.
    assert!(close(bounds(0..12), ([6.0, 0.0, 0.0], [10.0, 2.0, 6.0])), "{:?}", bounds(0..12));
    assert!(close(bounds(12..24), ([-4.0, -2.0, 0.0], [0.0, 0.0, 6.0])), "{:?}", bounds(12..24));
    // Normals point away from the middle of either cube, mirrored or not.
    for (range, centre) in [(0..12, [8.0, 1.0, 3.0]), (12..24, [-2.0, -1.0, 3.0])] {
        for index in mesh.triangles[range].as_flattened() {
            let vertex = mesh.vertices[*index as usize];
            let out: f32 = (0..3).map(|i| vertex.normal[i] * (vertex.position[i] - centre[i])).sum();
            assert!(out > 0.5, "{vertex:?}");
        }
    }
}

#[test]
fn gltf_materials_have_colour_texture_roughness_and_alpha() {
    let mut png = std::io::Cursor::new(Vec::new());
    let image = image::RgbaImage::from_pixel(2, 2, image::Rgba([255, 188, 0, 255]));
    image.write_to(&mut png, image::ImageFormat::Png).expect("encodes");
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("cube.bin"), cube_buffer()).expect("writes");
    std::fs::write(folder.path().join("my image.png"), png.into_inner()).expect("writes");
    let load = |material: &str| {
        let extra = format!(
            r#","materials":[{material}],"textures":[{{"source":0}}],"images":[{{"uri":"my%20image.png"}}]"#
        );
        let text = cube_gltf("cube.bin", r#"[{"mesh":0}]"#, &extra, r#","material":0"#);
        load_in(folder.path(), "cube.gltf", text.as_bytes(), None).expect("loads").mesh.materials[0].clone()
    };
    let plain = load(
        r#"{"name":"m","alphaMode":"BLEND","pbrMetallicRoughness":{"baseColorFactor":[0.5,0.25,1,0.5],"roughnessFactor":0.3}}"#,
    );
    let expected = Material {
        name: "m".to_owned(),
        base_colour: [0.5, 0.25, 1.0],
        roughness: 0.3,
        specular: 0.5,
        metallic: 1.0,
        alpha: 0.5,
        ..Material::default()
    };
    assert_eq!(plain, expected);
    let opaque = load(r#"{"pbrMetallicRoughness":{"baseColorFactor":[1,1,1,0.1]}}"#);
    assert_eq!((opaque.alpha, opaque.roughness), (1.0, 1.0));
    assert_eq!(
        load(r#"{"alphaMode":"MASK","pbrMetallicRoughness":{"baseColorFactor":[1,1,1,0.1]}}"#).alpha,
        0.0
    );
    let textured =
        load(r#"{"pbrMetallicRoughness":{"baseColorFactor":[1,0.5,1,1],"baseColorTexture":{"index":0}}}"#);
    let pixel = textured.texture.expect("a texture").pixels[3];
    assert_eq!((pixel[0], pixel[2]), (255, 0));
    assert!((i32::from(pixel[1]) - 137).abs() <= 1, "{pixel:?}");
    let glossy = load(
        r#"{"pbrMetallicRoughness":{"baseColorFactor":[1,0,0,1]},"extensions":{"KHR_materials_pbrSpecularGlossiness":
            {"diffuseFactor":[0,0.5,1,1],"diffuseTexture":{"index":0},"glossinessFactor":0.75}}}"#,
    );
    assert_eq!((glossy.base_colour, glossy.roughness), ([0.0, 0.5, 1.0], 0.25));
    assert!(glossy.texture.is_some());
}

#[test]
fn gltf_materials_have_metal_emission_holes_and_normals() {
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("cube.bin"), cube_buffer()).expect("writes");
    let write = |name: &str, format: image::ImageFormat| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        let image =
            image::RgbaImage::from_fn(2, 1, |x, _| image::Rgba([10, 20, 30, if x == 0 { 255 } else { 60 }]));
        image.write_to(&mut bytes, format).expect("encodes");
        std::fs::write(folder.path().join(name), bytes.into_inner()).expect("writes");
    };
    write("i.png", image::ImageFormat::Png);
    write("i.webp", image::ImageFormat::WebP);
    let load = |material: &str| {
        let extra = format!(
            r#","materials":[{material}],"images":[{{"uri":"gone.png"}},{{"uri":"i.png"}},{{"uri":"i.webp"}}],
            "textures":[{{"source":1}},{{"source":0,"extensions":{{"EXT_texture_webp":{{"source":2}}}}}}]"#
        );
        let text = cube_gltf("cube.bin", r#"[{"mesh":0}]"#, &extra, r#","material":0"#);
        load_in(folder.path(), "cube.gltf", text.as_bytes(), None).expect("loads")
    };
    let loaded = load(
        r#"{"pbrMetallicRoughness":{"metallicFactor":0.5,"metallicRoughnessTexture":{"index":0}},
            "normalTexture":{"index":1,"scale":0.5},"emissiveFactor":[1,0.5,0],"emissiveTexture":{"index":0},
            "extensions":{"KHR_materials_emissive_strength":{"emissiveStrength":4}}}"#,
    );
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let m = loaded.mesh.materials[0].clone();
    assert_eq!((m.metallic, m.roughness, m.emission), (0.5, 1.0, [4.0, 2.0, 0.0]));
    assert_eq!(m.surface_map.expect("a map").pixels[0], [255, 20, 30, 255]);
    assert_eq!((m.normal_map.expect("a map").pixels[1], m.normal_strength), ([10, 20, 30, 60], 0.5));
    assert_eq!(m.emission_map.expect("a map").pixels[0][2], 30);
    let colour = r#""pbrMetallicRoughness":{"baseColorFactor":[1,1,1,0.5],"baseColorTexture":{"index":1}}"#;
    let alphas = |mode: &str| {
        let m = load(&format!(r#"{{"alphaMode":{mode},{colour}}}"#)).mesh.materials[0].clone();
        (m.alpha, m.opacity.map(|map| [map.pixels[0][3], map.pixels[1][3]]))
    };
    assert_eq!(alphas(r#""OPAQUE""#), (1.0, None));
    assert_eq!(alphas(r#""BLEND""#), (0.5, Some([255, 60])));
    assert_eq!(alphas(r#""MASK","alphaCutoff":0.2"#), (1.0, Some([255, 0])));
    // Maps with texture coordinates of their own are left out, and named.
    let loaded = load(
        r#"{"name":"m","pbrMetallicRoughness":{"baseColorTexture":{"index":0}},"emissiveTexture":{"index":0,"texCoord":1}}"#,
    );
    assert!(
        loaded.warnings[0].contains("material \"m\": the map of its emission is left out"),
        "{:?}",
        loaded.warnings
    );
    assert!(loaded.mesh.materials[0].emission_map.is_none());
    // Maps that are moved together stay together.
    let moved = r#"{"index":0,"extensions":{"KHR_texture_transform":{"offset":[0.5,0]}}}"#;
    let loaded = load(&format!(
        r#"{{"pbrMetallicRoughness":{{"baseColorTexture":{moved}}},"normalTexture":{moved}}}"#
    ));
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert!(loaded.mesh.materials[0].normal_map.is_some());
}

#[test]
fn what_is_not_made_of_gltf_materials_is_named_once() {
    let folder = TempDir::new().expect("a temporary folder");
    std::fs::write(folder.path().join("cube.bin"), cube_buffer()).expect("writes");
    let warnings = |materials: &str| {
        let required = r#","extensionsRequired":["KHR_materials_clearcoat"]"#;
        let extra = format!(r#","materials":[{materials}]{required}"#);
        let text = cube_gltf("cube.bin", r#"[{"mesh":0}]"#, &extra, r#","material":0"#);
        load_in(folder.path(), "cube.gltf", text.as_bytes(), None).expect("loads").warnings
    };
    // Each is used by two materials.
    for (material, name) in [
        (r#""occlusionTexture":{"index":0}"#, "the map of occlusion"),
        (
            r#""extensions":{"KHR_materials_clearcoat":{"clearcoatFactor":1}}"#,
            "clearcoat (KHR_materials_clearcoat)",
        ),
        (
            r#""extensions":{"KHR_materials_sheen":{"sheenColorFactor":[0,0.5,0]}}"#,
            "sheen (KHR_materials_sheen)",
        ),
        (
            r#""extensions":{"KHR_materials_transmission":{"transmissionFactor":0.9}}"#,
            "transmission (KHR_materials_transmission)",
        ),
        (
            r#""extensions":{"KHR_materials_ior":{"ior":1.33}}"#,
            "another index of refraction than 1.5 (KHR_materials_ior)",
        ),
        (
            r#""extensions":{"KHR_materials_specular":{"specularFactor":0.2}}"#,
            "strength and colour of the gloss (KHR_materials_specular)",
        ),
        (
            r#""extensions":{"KHR_materials_pbrSpecularGlossiness":{"specularFactor":[0.9,0.6,0.2]}}"#,
            "another colour of the gloss than 4 % grey (KHR_materials_pbrSpecularGlossiness)",
        ),
        (r#""extensions":{"KHR_materials_unlit":{}}"#, "surfaces without light (KHR_materials_unlit)"),
        (r#""extensions":{"KHR_materials_glow":{}}"#, "KHR_materials_glow"),
    ] {
        let found = warnings(&format!(r#"{{"name":"m",{material}}},{{{material}}}"#));
        assert_eq!(found.len(), 1, "{found:?}");
        let end = format!("material \"m\": {name} is not supported and left out");
        assert!(found[0].ends_with(&end), "{found:?}");
    }
    // What would not show is not mentioned.
    let unseen = r#"{"occlusionTexture":{"index":0,"strength":0},"extensions":{"KHR_materials_clearcoat":{},
        "KHR_materials_sheen":{"sheenRoughnessFactor":0.5},"KHR_materials_transmission":{"transmissionFactor":0},
        "KHR_materials_ior":{"ior":1.5},"KHR_materials_specular":{"specularColorFactor":[1,1,1]},
        "KHR_materials_volume":{"attenuationColor":[1,0,0]},"KHR_materials_emissive_strength":{"emissiveStrength":2}}}"#;
    assert_eq!(warnings(unseen), Vec::<String>::new());
}

/// A strip of four corners with 8-bit colours, normalised 16-bit texture coordinates, one corner moved by a sparse
/// accessor, and the same corners as a fan.

#[test]
fn gltf_accessors_come_in_many_types() {
    let mut data: Vec<u8> = [[0.0_f32, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [9.0, 9.0, 9.0]]
        .as_flattened()
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    data.extend([255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255, 255, 255, 255]); // 48: colours
    data.extend([0_u16, 0, 65535, 0, 0, 65535, 65535, 65535].iter().flat_map(|value| value.to_le_bytes())); // 64
    data.extend([3, 0, 0, 0]); // 80: sparse index
    data.extend([1.0_f32, 1.0, 0.0].iter().flat_map(|value| value.to_le_bytes())); // 84: its value
    data.extend([0, 1, 3, 2]); // 96: fan
    let text = format!(
        r#"{{"asset":{{"version":"2.0"}},"nodes":[{{"mesh":0}}],
        "meshes":[{{"primitives":[{{"mode":5,"attributes":{{"POSITION":0,"COLOR_0":1,"TEXCOORD_0":2}}}},
                                  {{"mode":6,"attributes":{{"POSITION":0,"TEXCOORD_0":2}},"indices":3}},
                                  {{"mode":1,"attributes":{{"POSITION":0}}}}]}}],
        "accessors":[{{"bufferView":0,"componentType":5126,"count":4,"type":"VEC3","sparse":{{"count":1,
                        "indices":{{"bufferView":3,"componentType":5121}},"values":{{"bufferView":4}}}}}},
                     {{"bufferView":1,"componentType":5121,"count":4,"type":"VEC4","normalized":true}},
                     {{"bufferView":2,"componentType":5123,"count":4,"type":"VEC2","normalized":true}},
                     {{"bufferView":5,"componentType":5121,"count":4,"type":"SCALAR"}}],
        "bufferViews":[{{"buffer":0,"byteLength":48}},{{"buffer":0,"byteOffset":48,"byteLength":16}},
                       {{"buffer":0,"byteOffset":64,"byteLength":16}},{{"buffer":0,"byteOffset":80,"byteLength":4}},
                       {{"buffer":0,"byteOffset":84,"byteLength":12}},{{"buffer":0,"byteOffset":96,"byteLength":4}}],
        "buffers":[{{"uri":"{}","byteLength":{}}}]}}"#,
        data_uri(&data),
        data.len()
    );
    let mesh = load_with("a.gltf", text.as_bytes(), Some(Up::Z)).expect("loads").mesh;
    assert_eq!(mesh.triangles.len(), 4);
    assert!(mesh.vertices.iter().all(|vertex| vertex.normal == [0.0, 0.0, 1.0]));
    let corners = |range: std::ops::Range<usize>| {
        let indices = mesh.triangles[range].as_flattened().iter();
        indices.map(|i| mesh.vertices[*i as usize]).collect::<Vec<_>>()
    };
    // The strip takes the colours of its corners, half of the triangles in the other order.
    let coloured = &mesh.materials[mesh.triangle_materials[0] as usize];
    for vertex in corners(0..2) {
        let expected = match vertex.position {
            [0.0, 0.0, 0.0] => [255.0, 0.0, 0.0],
            [1.0, 0.0, 0.0] => [0.0, 255.0, 0.0],
            [0.0, 1.0, 0.0] => [0.0, 0.0, 255.0],
            position => {
                assert_eq!(position, [1.0, 1.0, 0.0]);
                [255.0; 3]
            }
        };
        let found = sample(coloured, vertex.uv);
        assert!((0..3).all(|i| (found[i] - expected[i]).abs() < 0.1), "{found:?} {expected:?}");
    }
    // The fan is grey; its texture coordinates begin at the bottom left.
    assert!(mesh.materials[mesh.triangle_materials[2] as usize].texture.is_none());
    for vertex in corners(2..4) {
        assert_eq!(vertex.uv, [vertex.position[0], 1.0 - vertex.position[1]]);
    }
}

#[test]
fn gltf_claims_are_checked() {
    let glb = cube_glb();
    let mut lying = glb.clone();
    lying[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(error("a.glb", &lying).contains("claims 4294967295 bytes"));
    lying = glb.clone();
    lying[12..16].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    assert!(error("a.glb", &lying).contains("claims a chunk"));
    assert!(error("a.glb", &glb[..glb.len() - 40]).contains("claims"));
    let replaced = |from: &str, to: &str| {
        let text = cube_gltf(&data_uri(&cube_buffer()), r#"[{"mesh":0}]"#, "", "");
        assert!(text.contains(from), "{text}");
        error("a.gltf", text.replacen(from, to, 1))
    };
    assert!(replaced("\"count\":8", "\"count\":9").contains("exceeds"));
    assert!(replaced("\"count\":8", "\"count\":4000000000").contains("accessor claims 4000000000"));
    let beyond = |text: String| text.replace("\"byteLength\":96", "\"byteLength\":9000");
    let text = cube_gltf(&data_uri(&cube_buffer()), r#"[{"mesh":0}]"#, "", "")
        .replace("\"count\":8", "\"count\":15");
    assert!(error("a.gltf", beyond(text)).contains("exceeds buffer 0 of 168 bytes"));
    assert!(replaced("\"mesh\":0", "\"mesh\":7").contains("no mesh 7"));
    assert!(replaced("\"mesh\":0", "\"mesh\":0,\"children\":[0]").contains("not a tree"));
    assert!(replaced("\"VEC3\"", "\"VEC2\"").contains("2 components, expected 3"));
    assert!(replaced("data:", "http://x/").contains("does not exist"));
    assert!(
        replaced("{\"asset\"", "{\"extensionsRequired\":[\"KHR_draco_mesh_compression\"],\"asset\"")
            .contains("KHR_draco")
    );
    assert!(replaced("\"asset\"", "\"asset").contains("line 1"));
}
