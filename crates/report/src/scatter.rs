//! Scatter charts: named points, with whiskers of their spread.

use crate::axis::Axis;
use crate::drawing::{Anchor, Drawing, Mark, Paint};
use crate::font;
use crate::line_chart::{Level, Plot, horizontal_axis, short, title_and_legend, vertical_axis};

/// A named point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Its name, written beside it.
    pub name: String,
    /// The row of a table that it belongs to.
    pub of: String,
    /// Where it is.
    pub at: (f64, f64),
    /// Half-lengths of its whiskers.
    pub spread: (f64, f64),
    /// Points of one group have one colour.
    pub group: usize,
}

/// Points over two axes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScatterChart {
    /// The heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The points.
    pub points: Vec<Point>,
    /// Names of the groups; the legend.
    pub groups: Vec<String>,
    /// Horizontal dashed lines, named in the legend.
    pub references: Vec<(f64, String)>,
}

const TEXT: f64 = 11.0;
const LINE: f64 = 12.0;
/// Of a point.
const RADIUS: f64 = 4.5;
/// So many points are all named; of more, a name may be this far below its point.
pub(crate) const MANY: usize = 12;
const FAR: f64 = 30.0;

impl ScatterChart {
    /// Draws the chart at this size in pixels.
    pub(crate) fn draw(&self, width: f64, height: f64) -> Drawing {
        let mut drawing = Drawing::new(width.max(200.0), height.max(160.0), self.title.clone());
        let ends = |at: f64, spread: f64| [at - spread, at + spread];
        let x = self.x.fit(self.points.iter().flat_map(|point| ends(point.at.0, point.spread.0)));
        let all = self.points.iter().flat_map(|point| ends(point.at.1, point.spread.1));
        let y = self.y.fit(all.chain(self.references.iter().map(|reference| reference.0)));
        let group = |(index, name)| (Paint::Series(index), name);
        let groups: Vec<(Paint, &str)> =
            self.groups.iter().map(String::as_str).enumerate().map(group).collect();
        let levels = Level::of(&self.references);
        let top = title_and_legend(&mut drawing, &self.title, &groups, &levels);
        let plot = vertical_axis(&mut drawing, &self.y.label, &y, top, true);
        horizontal_axis(&mut drawing, &self.x.label, &x, &plot);
        let lines = levels.iter().filter_map(|level| level.draw(&mut drawing, &plot, &y));
        let taken = lines.map(|at| line_area(&plot, at)).collect();
        let place = |at: (f64, f64)| {
            let (u, v) = (x.place(at.0)?.clamp(0.0, 1.0), y.place(at.1)?.clamp(0.0, 1.0));
            Some((plot.left + u * plot.width, plot.top + (1.0 - v) * plot.height))
        };
        let points = self.points.iter().filter_map(|point| place(point.at)).collect();
        let mut names = Names { taken, points };
        let mut order: Vec<&Point> = self.points.iter().collect();
        order.sort_by(|a, b| b.at.1.total_cmp(&a.at.1));
        for point in &order {
            let Some(at) = place(point.at) else { continue };
            let paint = Paint::Series(point.group);
            for (from, to) in [
                ((point.at.0 - point.spread.0, point.at.1), (point.at.0 + point.spread.0, point.at.1)),
                ((point.at.0, point.at.1 - point.spread.1), (point.at.0, point.at.1 + point.spread.1)),
            ] {
                if let (Some(from), Some(to)) = (place(from), place(to)) {
                    drawing.line(vec![from, to], paint, 1.0, false);
                }
            }
            let said = format!(
                "{}: {} {}, {} {}",
                point.name,
                self.x.label,
                short(point.at.0),
                self.y.label,
                short(point.at.1)
            );
            drawing.marks.push(Mark::Disc(at, RADIUS, paint).told(said, point.of.as_str()));
            let length = font::width(&point.name, TEXT) * 1.08;
            let bounds = [plot.left, drawing.width, plot.top + plot.height - 4.0];
            let free = names.free(at, length, bounds);
            // Of many points, names that would lie on others or far away are left out; pointing says them.
            if order.len() > MANY && !free.is_some_and(|place| place.base - at.1 < FAR) {
                continue;
            }
            let place =
                free.unwrap_or_else(|| NamePlace::beside(at, length, at.0 + 8.0 + length <= drawing.width));
            names.taken.push(place.area(length));
            let (start, anchor) =
                if place.is_right { (place.left, Anchor::Start) } else { (place.left + length, Anchor::End) };
            drawing.text((start, place.base), point.name.as_str(), TEXT, anchor, Paint::Ink);
        }
        drawing
    }
}

/// Left, top, right and bottom.
type Area = [f64; 4];

/// What a dashed line covers at the height `at`, and a little around it: letters reach below the line that they stand on.
fn line_area(plot: &Plot, at: f64) -> Area {
    [plot.left, at - 4.0, plot.left + plot.width, at + 2.0]
}

/// Where the name of a point may stand.
#[derive(Clone, Copy, Debug, PartialEq)]
struct NamePlace {
    left: f64,
    base: f64,
    is_right: bool,
}

impl NamePlace {
    /// Beside a point, above its whisker.
    fn beside(at: (f64, f64), length: f64, is_right: bool) -> Self {
        let left = if is_right { at.0 + 8.0 } else { at.0 - 8.0 - length };
        Self { left, base: at.1 - 5.0, is_right }
    }

    fn area(&self, length: f64) -> Area {
        [self.left, self.base - LINE, self.left + length, self.base]
    }
}

/// What names must not cover: dashed lines, other names and other points.
#[derive(Debug, Default)]
struct Names {
    taken: Vec<Area>,
    points: Vec<(f64, f64)>,
}

impl Names {
    /// The place for a name nearest to its point where nothing else is, right of it or left, within left, right and bottom
    /// `bounds`.
    fn free(&self, at: (f64, f64), length: f64, bounds: [f64; 3]) -> Option<NamePlace> {
        let sides = [true, false].map(|is_right| NamePlace::beside(at, length, is_right));
        let lower = |step: u32| {
            let drop = 2.0 * f64::from(step);
            sides.map(|place| NamePlace { base: place.base + drop, ..place })
        };
        let steps = ((bounds[2] - sides[0].base) / 2.0).max(0.0).ceil() as u32;
        (0..=steps).flat_map(lower).find(|place| {
            let [left, top, right, bottom] = place.area(length);
            let meets =
                |other: &Area| left < other[2] && other[0] < right && top < other[3] && other[1] < bottom;
            let disc = |(u, v): (f64, f64)| [u - RADIUS, v - RADIUS, u + RADIUS, v + RADIUS];
            let others = self.points.iter().filter(|point| **point != at);
            left > bounds[0]
                && right <= bounds[1]
                && !self.taken.iter().any(meets)
                && !others.into_iter().any(|point| meets(&disc(*point)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cover_neither_names_nor_points() {
        let bounds = [0.0, 400.0, 300.0];
        let mut names = Names { taken: Vec::new(), points: vec![(100.0, 50.0), (160.0, 46.0)] };
        // The right one has room; the left one would cover it, and goes to the left.
        let right = names.free((160.0, 46.0), 80.0, bounds).unwrap();
        assert_eq!((right.left, right.base, right.is_right), (168.0, 41.0, true));
        names.taken.push(right.area(80.0));
        let left = names.free((100.0, 50.0), 80.0, bounds).unwrap();
        assert_eq!((left.left, left.base, left.is_right), (12.0, 45.0, false));
        // Without room there it goes below.
        let low = names.free((100.0, 50.0), 95.0, bounds).unwrap();
        assert!(low.is_right && low.base - LINE >= 46.0 + RADIUS, "{low:?}");
        assert_eq!(names.free((100.0, 50.0), 500.0, bounds), None);
    }

    #[test]
    fn no_line_goes_through_a_name() {
        let point = |name: &str, y: f64| Point {
            name: name.to_owned(),
            at: (70.0 + 10.0 * y, y),
            ..Point::default()
        };
        for above in 0..40 {
            let floor = 0.25 + 0.002 * f64::from(above);
            let chart = ScatterChart {
                title: "Equivariance over invariance".to_owned(),
                points: vec![point("untrained (EquiCaps)", 0.24), point("EquiCaps", 0.8)],
                references: vec![(floor, "no information".to_owned())],
                ..ScatterChart::default()
            };
            let drawing = chart.draw(620.0, 400.0);
            let mut lines = drawing.marks.iter().filter_map(|mark| match mark {
                Mark::Line { points, dashed: true, .. } => Some(points[0].1),
                _ => None,
            });
            let base = drawing.marks.iter().find_map(|mark| match mark {
                Mark::Text(text) if text.text == "untrained (EquiCaps)" => Some(text.at.1),
                _ => None,
            });
            let base = base.unwrap();
            // The first is the legend's.
            let line = lines.next_back().unwrap();
            assert!(line <= base - LINE || line >= base + 3.0, "the line at {line}, a name on {base}");
        }
    }
}
