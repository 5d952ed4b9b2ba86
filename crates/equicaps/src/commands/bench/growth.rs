//! `equicaps bench render --growth`: how the cost of a view grows with the triangles of the object.

use std::fmt;

use render::PreparedMesh;
use scene::{LatentRanges, Latents, Mesh, Vertex};
use serde::Serialize;

use super::render::{Arguments, SEED, VIEWS_PER_OBJECT, cpu_seconds};
use crate::commands::frame::text_table;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Triangles of the spheres, about.
pub(super) const TRIANGLES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Views that are rendered again and again.
const VIEWS: u64 = 10;

/// Measures on one thread of the CPU, in processor time.
pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let seconds = arguments.seconds / (2.0 * TRIANGLES.len() as f64);
    let views: Vec<Latents> =
        (0..VIEWS).map(|view| LatentRanges::BENCH_T.sample(SEED, "growth", view)).collect();
    // Tables that are made once a program are no part of the cost.
    render::render(None, &views[0], 16, arguments.quality);
    let mut rows = Vec::new();
    let (mut first, mut last) = (None, None);
    for triangles in TRIANGLES {
        let mesh = bumpy_sphere(triangles);
        let mut prepared = PreparedMesh::default();
        let build_ms = 1e3 * repeat(0.2 * seconds, || prepared = PreparedMesh::new(&mesh))?;
        let mut rays = 0;
        let pass = repeat(seconds, || {
            rays = 0;
            for latents in &views {
                let (_, stats) =
                    render::render_with_stats(Some(&prepared), latents, arguments.size, arguments.quality);
                rays += stats.rays;
            }
        })?;
        let view_ms = 1e3 * pass / VIEWS as f64;
        let (beside_first, beside_last) =
            (view_ms / *first.get_or_insert(view_ms), view_ms / last.unwrap_or(view_ms));
        last = Some(view_ms);
        rows.push(Row {
            triangles: mesh.triangles.len(),
            build_ms,
            cpu_ms_per_image: view_ms,
            ratio_to_first: beside_first,
            ratio_to_last: beside_last,
            cpu_ms_per_image_with_build: view_ms + build_ms / VIEWS_PER_OBJECT as f64,
            rays_per_image: rays as f64 / VIEWS as f64,
        });
        terminal.note(format!("{} triangles: {view_ms:.1} ms a view", mesh.triangles.len()));
    }
    let (quality, size) = (arguments.quality.to_string(), arguments.size);
    Outcome::new(&Growth { quality, size, device: "cpu", growth: rows })
}

/// The cost of a view by the triangles of the object.
#[derive(Serialize)]
struct Growth {
    quality: String,
    size: u32,
    device: &'static str,
    growth: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    triangles: usize,
    build_ms: f64,
    cpu_ms_per_image: f64,
    ratio_to_first: f64,
    ratio_to_last: f64,
    cpu_ms_per_image_with_build: f64,
    rays_per_image: f64,
}

impl fmt::Display for Growth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headings = ["triangles", "hierarchy ms", "view ms", "x first", "x last", "with hierarchy/50"];
        let rows = self.growth.iter().map(|row| {
            vec![
                row.triangles.to_string(),
                format!("{:.1}", row.build_ms),
                format!("{:.2}", row.cpu_ms_per_image),
                format!("{:.2}", row.ratio_to_first),
                format!("{:.2}", row.ratio_to_last),
                format!("{:.2}", row.cpu_ms_per_image_with_build),
            ]
        });
        formatter.write_str(text_table(&headings, rows).trim_end())
    }
}

/// Processor time in seconds of one call of `work`, by as many calls as fill `seconds`; at least one.
fn repeat(seconds: f64, mut work: impl FnMut()) -> anyhow::Result<f64> {
    let clock = || {
        cpu_seconds()
            .ok_or_else(|| anyhow::anyhow!("processor time is not known here: /proc/self/stat is needed"))
    };
    let start = clock()?;
    let mut calls = 0.0;
    loop {
        work();
        calls += 1.0;
        let spent = clock()? - start;
        if spent >= seconds {
            return Ok(spent / calls);
        }
    }
}

/// A sphere with bumps of about `triangles` triangles, its diagonal 1.
pub(super) fn bumpy_sphere(triangles: usize) -> Mesh {
    let rows = ((triangles as f64 / 4.0).sqrt().round() as u32).max(2);
    let columns = 2 * rows;
    let mut mesh = Mesh::default();
    for row in 0..=rows {
        for column in 0..=columns {
            let theta = std::f32::consts::PI * row as f32 / rows as f32;
            let phi = std::f32::consts::TAU * column as f32 / columns as f32;
            let normal = [theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()];
            let radius = 0.26 * (1.0 + 0.05 * (9.0 * theta).sin() * (11.0 * phi).sin());
            mesh.vertices.push(Vertex { position: normal.map(|x| radius * x), normal, uv: [0.0; 2] });
        }
    }
    for row in 0..rows {
        for column in 0..columns {
            let a = row * (columns + 1) + column;
            let b = a + columns + 1;
            mesh.triangles.extend([[a, b, a + 1], [a + 1, b, b + 1]]);
        }
    }
    mesh.triangle_materials = vec![u32::MAX; mesh.triangles.len()];
    mesh
}
