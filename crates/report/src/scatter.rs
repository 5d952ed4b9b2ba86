//! Scatter charts: named points, with whiskers of their spread.

use crate::axis::Axis;
use crate::drawing::{Anchor, Drawing, Mark, Paint};
use crate::font;
use crate::line_chart::{horizontal_axis, short, title_and_legend, vertical_axis};

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
        let groups: Vec<(usize, &str)> = self.groups.iter().map(String::as_str).enumerate().collect();
        let top = title_and_legend(&mut drawing, &self.title, &groups, &self.references);
        let plot = vertical_axis(&mut drawing, &self.y.label, &y, top, true);
        horizontal_axis(&mut drawing, &self.x.label, &x, &plot);
        for (value, _) in &self.references {
            crate::line_chart::reference(&mut drawing, &plot, &y, *value);
        }
        let place = |at: (f64, f64)| {
            let (u, v) = (x.place(at.0)?.clamp(0.0, 1.0), y.place(at.1)?.clamp(0.0, 1.0));
            Some((plot.left + u * plot.width, plot.top + (1.0 - v) * plot.height))
        };
        // Places of names, so that none lies on another.
        let mut taken: Vec<[f64; 4]> = Vec::new();
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
            drawing.marks.push(Mark::Disc(at, 4.5, paint).told(said, point.of.as_str()));
            let length = font::width(&point.name, TEXT) * 1.08;
            let right = at.0 + 8.0 + length <= drawing.width;
            let (start, anchor) = if right { (at.0 + 8.0, Anchor::Start) } else { (at.0 - 8.0, Anchor::End) };
            let left = if right { start } else { start - length };
            // Above the whisker.
            let mut base = at.1 - 5.0;
            let meets = |base: f64, other: &[f64; 4]| {
                left < other[2] && other[0] < left + length && base - LINE < other[3] && other[1] < base
            };
            while taken.iter().any(|other| meets(base, other)) && base < plot.top + plot.height - 4.0 {
                base += 2.0;
            }
            // Of many points, names that would lie on others or far away are left out; pointing says them.
            let is_near =
                base - at.1 < FAR && !taken.iter().any(|other| meets(base, other)) && left > plot.left;
            if order.len() > MANY && !is_near {
                continue;
            }
            taken.push([left, base - LINE, left + length, base]);
            drawing.text((start, base), point.name.as_str(), TEXT, anchor, Paint::Ink);
        }
        drawing
    }
}
