//! A box of 1 x 2 x 3 with one corner in the origin, written in every format.

#![allow(dead_code, reason = "not every test uses every format")]

pub const CORNERS: [[f32; 3]; 8] = [
    [0.0, 0.0, 0.0],
    [1.0, 0.0, 0.0],
    [1.0, 2.0, 0.0],
    [0.0, 2.0, 0.0],
    [0.0, 0.0, 3.0],
    [1.0, 0.0, 3.0],
    [1.0, 2.0, 3.0],
    [0.0, 2.0, 3.0],
];

/// Outward.
pub const QUADS: [[u32; 4]; 6] =
    [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]];

pub fn triangles() -> Vec<[u32; 3]> {
    QUADS.iter().flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]).collect()
}

pub fn every_cube() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("cube.obj", cube_obj().into_bytes()),
        ("cube.off", cube_off().into_bytes()),
        ("ascii.ply", cube_ply("ascii")),
        ("little.ply", cube_ply("binary_little_endian")),
        ("big.ply", cube_ply("binary_big_endian")),
        ("ascii.stl", cube_stl_ascii().into_bytes()),
        ("binary.stl", cube_stl_binary()),
        ("cube.glb", cube_glb()),
        ("cube.gltf", cube_gltf(&data_uri(&cube_buffer()), r#"[{"mesh":0}]"#, "", "").into_bytes()),
    ]
}

pub fn cube_obj() -> String {
    let vertices: String = CORNERS.iter().map(|[x, y, z]| format!("v {x} {y} {z}\n")).collect();
    let face = |q: &[u32; 4]| format!("f {} {} {} {}\n", q[0] + 1, q[1] + 1, q[2] + 1, q[3] + 1);
    vertices + &QUADS.iter().map(face).collect::<String>()
}

pub fn cube_off() -> String {
    let vertices: String = CORNERS.iter().map(|[x, y, z]| format!("{x} {y} {z}\n")).collect();
    let faces: String = QUADS.iter().map(|q| format!("4 {} {} {} {}\n", q[0], q[1], q[2], q[3])).collect();
    format!("OFF\n8 6 0\n# a box\n{vertices}{faces}")
}

pub fn cube_ply(format: &str) -> Vec<u8> {
    let mut bytes = format!(
        "ply\nformat {format} 1.0\ncomment a box\nelement vertex 8\nproperty float x\nproperty float y\n\
         property float z\nelement face 6\nproperty list uchar int vertex_indices\nend_header\n"
    )
    .into_bytes();
    let big = format.ends_with("big_endian");
    for corner in CORNERS {
        match format {
            "ascii" => bytes.extend(format!("{} {} {}\n", corner[0], corner[1], corner[2]).into_bytes()),
            _ => {
                bytes.extend(corner.iter().flat_map(|c| if big { c.to_be_bytes() } else { c.to_le_bytes() }))
            }
        }
    }
    for quad in QUADS {
        if format == "ascii" {
            bytes.extend(format!("4 {} {} {} {}\n", quad[0], quad[1], quad[2], quad[3]).into_bytes());
        } else {
            bytes.push(4);
            bytes.extend(quad.iter().flat_map(|i| if big { i.to_be_bytes() } else { i.to_le_bytes() }));
        }
    }
    bytes
}

pub fn cube_stl_ascii() -> String {
    let facet = |triangle: [u32; 3]| {
        let vertex = |i: u32| {
            let [x, y, z] = CORNERS[i as usize];
            format!("      vertex {x:e} {y:e} {z:e}\n")
        };
        let vertices: String = triangle.into_iter().map(vertex).collect();
        format!("  facet normal 0 0 0\n    outer loop\n{vertices}    endloop\n  endfacet\n")
    };
    format!("solid box\n{}endsolid box\n", triangles().into_iter().map(facet).collect::<String>())
}

pub fn cube_stl_binary() -> Vec<u8> {
    let mut bytes = vec![0; 80];
    bytes.extend(12_u32.to_le_bytes());
    for triangle in triangles() {
        bytes.extend([0; 12]);
        bytes.extend(triangle.iter().flat_map(|i| CORNERS[*i as usize]).flat_map(f32::to_le_bytes));
        bytes.extend([0; 2]);
    }
    bytes
}

/// Positions, then 16-bit indices.
pub fn cube_buffer() -> Vec<u8> {
    let mut bytes: Vec<u8> = CORNERS.as_flattened().iter().flat_map(|c| c.to_le_bytes()).collect();
    bytes.extend(triangles().as_flattened().iter().flat_map(|i| (*i as u16).to_le_bytes()));
    bytes
}

pub fn data_uri(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("data:application/octet-stream;base64,");
    for group in bytes.chunks(3) {
        let at = |i: usize| u32::from(group.get(i).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let symbol = SYMBOLS[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= group.len() { char::from(symbol) } else { '=' });
        }
    }
    text
}

/// `uri` empty for the data of a binary file; `extra` goes into the document, `primitive` into the primitive.
pub fn cube_gltf(uri: &str, nodes: &str, extra: &str, primitive: &str) -> String {
    let uri = if uri.is_empty() { String::new() } else { format!(r#""uri":"{uri}","#) };
    format!(
        r#"{{"asset":{{"version":"2.0"}},"scene":0,"scenes":[{{"nodes":[0]}}],"nodes":{nodes},
        "meshes":[{{"primitives":[{{"attributes":{{"POSITION":0}},"indices":1{primitive}}}]}}],
        "accessors":[{{"bufferView":0,"componentType":5126,"count":8,"type":"VEC3","min":[0,0,0],"max":[1,2,3]}},
                     {{"bufferView":1,"componentType":5123,"count":36,"type":"SCALAR"}}],
        "bufferViews":[{{"buffer":0,"byteLength":96}},{{"buffer":0,"byteOffset":96,"byteLength":72}}],
        "buffers":[{{{uri}"byteLength":168}}]{extra}}}"#
    )
}

pub fn cube_glb() -> Vec<u8> {
    let mut json = cube_gltf("", r#"[{"mesh":0}]"#, "", "").into_bytes();
    json.resize(json.len().next_multiple_of(4), b' ');
    let data = cube_buffer();
    let mut bytes = b"glTF".to_vec();
    bytes.extend(2_u32.to_le_bytes());
    bytes.extend(((12 + 8 + json.len() + 8 + data.len()) as u32).to_le_bytes());
    bytes.extend((json.len() as u32).to_le_bytes());
    bytes.extend(b"JSON");
    bytes.extend(json);
    bytes.extend((data.len() as u32).to_le_bytes());
    bytes.extend(b"BIN\0");
    bytes.extend(data);
    bytes
}
