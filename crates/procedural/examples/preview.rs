//! A contact sheet of classes: one row of instances each, and how visible their turns are.
//! `preview OUT.png LABELS [COLUMNS [SIZE [SEED [MEASURED]]]]`

#[path = "../tests/raster/mod.rs"]
mod raster;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: usize| -> Result<usize, std::num::ParseIntError> {
        arguments.get(i).map_or(Ok(default), |a| a.parse())
    };
    let out = arguments.first().ok_or("usage: preview OUT.png LABELS [COLUMNS [SIZE [SEED [MEASURED]]]]")?;
    let labels: Vec<usize> = match arguments.get(1).map(String::as_str) {
        None | Some("all") => (0..55).collect(),
        Some(list) => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
    };
    let (columns, size, seed) = (number(2, 6)?, number(3, 128)?, number(4, 1)?);
    let measured = number(5, 12)?;
    let mut sheet = image::RgbImage::new((columns * size) as u32, (labels.len() * size) as u32);
    for (row, &label) in labels.iter().enumerate() {
        let (mut low, mut high) = (usize::MAX, 0);
        for index in 0..columns {
            let mesh = procedural::build(seed as u64, label, index as u64);
            low = low.min(mesh.triangles.len());
            high = high.max(mesh.triangles.len());
            let yaw = [25.0, -35.0, 0.0, 60.0, -10.0, -70.0, 45.0, 90.0][index % 8];
            let tilt = if index % 3 == 2 { 20.0 } else { 0.0 };
            let picture = raster::draw_zoomed(&mesh, [tilt, 0.0, yaw], size, 2, 1.75);
            for (i, rgb) in picture.rgb.iter().enumerate() {
                let (x, y) = (index * size + i % size, row * size + i / size);
                let rgb = if std::env::var_os("INSIDE").is_some() && picture.back[i] {
                    [255.0, 0.0, 255.0]
                } else {
                    *rgb
                };
                sheet.put_pixel(x as u32, y as u32, image::Rgb(rgb.map(|c| c as u8)));
            }
        }
        // How little the least visible turn of each instance changes the picture, and how much inside shows.
        let mut least = Vec::new();
        let mut worst_inside = (0.0, 0);
        for index in 0..measured as u64 {
            let mesh = procedural::build(seed as u64, label, index);
            let upright = raster::draw(&mesh, [0.0; 3], 64);
            let turned =
                |turn: [f32; 3]| (raster::difference(&upright, &raster::draw(&mesh, turn, 64)), turn);
            let d = raster::TURNS.map(turned).into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
            let kind = procedural::describe(seed as u64, label, index)[0].1;
            least.extend(d.map(|(d, turn)| (d, turn, index, kind)));
            let below = raster::draw(&mesh, [180.0, 0.0, 40.0], 64);
            let count = |p: &raster::Picture| p.back.iter().filter(|b| **b).count() as f32;
            let seen = upright.mask.iter().chain(&below.mask).filter(|m| **m).count() as f32;
            let inside = (count(&upright) + count(&below)) / seen;
            if inside > worst_inside.0 {
                worst_inside = (inside, index);
            }
        }
        least.sort_by(|a, b| a.0.total_cmp(&b.0));
        least.truncate(2);
        let name = procedural::classes()[label].name;
        println!("{label:2} {name:15} {low}..{high} triangles, inside {worst_inside:.2?}, least {least:.1?}");
    }
    sheet.save(out)?;
    Ok(())
}
