//! Line charts: curves over a common axis, with legend, grid, bands and reference lines.

use crate::axis::{Axis, Fitted};
use crate::drawing::{Anchor, Drawing, Mark, Paint, Text, Values};
use crate::font;

/// One curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Half-width of a band around each point; empty for none.
    pub spread: Vec<f64>,
    /// Whether points get a dot.
    pub dots: bool,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// The colour's number; the position in the chart where `None`.
    pub colour: Option<usize>,
    /// A horizontal dashed line in its colour, with a name in the legend: a chance level of its own.
    pub floor: Option<(f64, String)>,
}

impl Series {
    /// A plain curve.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, ..Self::default() }
    }

    /// The same with a dot at each point.
    pub fn with_dots(self) -> Self {
        Self { dots: true, ..self }
    }
}

/// A chart of curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// The heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// Horizontal lines with a name, such as a chance level of all.
    pub references: Vec<(f64, String)>,
}

/// A horizontal dashed line.
pub(crate) struct Level<'a> {
    value: f64,
    /// Its name in the legend.
    name: &'a str,
    paint: Paint,
}

impl<'a> Level<'a> {
    /// Lines that belong to no series.
    pub(crate) fn of(references: &'a [(f64, String)]) -> Vec<Self> {
        references.iter().map(|(value, name)| Self { value: *value, name, paint: Paint::Muted }).collect()
    }
}

/// The rectangle of a chart in which data are drawn: left, top, width, height.
pub(crate) struct Plot {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

const TEXT: f64 = 12.0;
/// The share of a chart's height that is left to curves and axis, at least.
const LEAST_PLOT: f64 = 0.6;

impl LineChart {
    /// Draws the chart at this size in pixels.
    pub fn draw(&self, width: f64, height: f64) -> Drawing {
        let (width, height) = (width.max(160.0), height.max(120.0));
        let mut drawing = Drawing::new(width, height, self.title.clone());
        let all = || {
            self.series.iter().flat_map(|s| s.points.iter().copied().enumerate().map(move |(i, p)| (s, i, p)))
        };
        let paint_of = |(index, series): (usize, &Series)| Paint::Series(series.colour.unwrap_or(index));
        let mut levels = Level::of(&self.references);
        levels.extend(self.series.iter().enumerate().filter_map(|(index, series)| {
            let (value, name) = series.floor.as_ref()?;
            Some(Level { value: *value, name, paint: paint_of((index, series)) })
        }));
        let x = self.x.fit(all().map(|(_, _, p)| p.0));
        let y = self.y.fit(
            all()
                .flat_map(|(s, i, p)| {
                    let spread = s.spread.get(i).copied().unwrap_or(0.0);
                    [p.1 - spread, p.1 + spread]
                })
                .chain(levels.iter().map(|level| level.value)),
        );
        let names: Vec<(Paint, &str)> = self
            .series
            .iter()
            .enumerate()
            .filter(|(_, s)| !s.name.is_empty())
            .map(|(i, s)| (paint_of((i, s)), s.name.as_str()))
            .collect();
        let top = title_and_legend(&mut drawing, &self.title, &names, &levels);
        // However long the legend is, there is room for the curves.
        drawing.height = drawing.height.max(top + LEAST_PLOT * height);
        let plot = vertical_axis(&mut drawing, &self.y.label, &y, top, !self.x.label.is_empty());
        horizontal_axis(&mut drawing, &self.x.label, &x, &plot);
        for level in &levels {
            level.draw(&mut drawing, &plot, &y);
        }
        let place = |px: f64, py: f64| {
            let (u, v) = (x.place(px)?, y.place(py)?);
            let inside = (-0.001..=1.001).contains(&u);
            inside.then(|| (plot.left + u * plot.width, plot.top + (1.0 - v.clamp(0.0, 1.0)) * plot.height))
        };
        for (index, series) in self.series.iter().enumerate() {
            let paint = paint_of((index, series));
            draw_band(&mut drawing, series, paint, &place);
            // A value that cannot be shown breaks the line instead of being bridged.
            for run in series.points.split(|p| place(p.0, p.1).is_none()) {
                let all: Vec<(f64, f64)> = run.iter().filter_map(|p| place(p.0, p.1)).collect();
                let kept = thinned(&all);
                let points: Vec<(f64, f64)> = kept.iter().map(|&index| all[index]).collect();
                let said: Vec<[String; 2]> =
                    kept.iter().map(|&index| [short(run[index].0), short(run[index].1)]).collect();
                if let ([at], [[x, y]]) = (&points[..], &said[..]) {
                    let name = format!("{}, {} {x}: {} {y}", series.name, self.x.label, self.y.label);
                    drawing.marks.push(Mark::Disc(*at, 3.0, paint).told(name, series.name.as_str()));
                } else if series.dots {
                    drawing.marks.extend(points.iter().map(|&at| Mark::Disc(at, 3.0, paint)));
                }
                if points.len() > 1 {
                    let mark = Box::new(Mark::Line { points, paint, width_px: 1.8, dashed: series.dashed });
                    let (name, of) = (series.name.clone(), series.name.clone());
                    let axes = [self.x.label.clone(), self.y.label.clone()];
                    let values = Some(Values { axes, points: said });
                    drawing.marks.push(Mark::Told { mark, name, values, of });
                }
            }
        }
        drawing
    }
}

/// Pixels of a chart's width that share two points of a long line: its lowest and its highest there.
const PIXELS: f64 = 2.0;

/// Of the points of a line, from left to right, the numbers of those that are drawn: all of a short one; of a long one the
/// first, the last, and the lowest and highest of every [`PIXELS`] pixels, so that it looks the same.
fn thinned(points: &[(f64, f64)]) -> Vec<usize> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let columns = ((last.0 - first.0) / PIXELS).abs().ceil().max(1.0);
    if points.len() as f64 <= 2.0 * columns {
        return (0..points.len()).collect();
    }
    let column = |index: &usize| ((points[*index].0 - first.0) / PIXELS).floor() as i64;
    let all: Vec<usize> = (0..points.len()).collect();
    let mut kept = vec![0];
    for same in all.chunk_by(|a, b| column(a) == column(b)) {
        let height = |index: &&usize| points[**index].1;
        let ends = [
            same.iter().min_by(|a, b| height(a).total_cmp(&height(b))),
            same.iter().max_by(|a, b| height(a).total_cmp(&height(b))),
        ];
        kept.extend(ends.into_iter().flatten());
    }
    kept.push(points.len() - 1);
    kept.sort_unstable();
    kept.dedup();
    kept
}

/// A number to four digits or so, for somebody who points at it.
pub(crate) fn short(value: f64) -> String {
    let text = if value.abs() < 1e-3 && value != 0.0 {
        return format!("{value:.2e}");
    } else {
        format!("{value:.4}")
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn draw_band(
    drawing: &mut Drawing,
    series: &Series,
    paint: Paint,
    place: &dyn Fn(f64, f64) -> Option<(f64, f64)>,
) {
    if series.spread.len() != series.points.len() || series.points.len() < 2 {
        return;
    }
    let edge = |sign: f64| {
        series
            .points
            .iter()
            .zip(&series.spread)
            .filter_map(|(p, s)| place(p.0, p.1 + sign * s))
            .collect::<Vec<_>>()
    };
    let mut outline = edge(1.0);
    outline.extend(edge(-1.0).into_iter().rev());
    drawing.marks.push(Mark::Area(outline, paint, 0.18));
}

/// Writes title and legend; the y where the plot may begin. Series are named where there are several (or no title),
/// dashed lines always: beside the data their names would lie on it.
pub(crate) fn title_and_legend(
    drawing: &mut Drawing,
    title: &str,
    names: &[(Paint, &str)],
    levels: &[Level<'_>],
) -> f64 {
    let mut y = 10.0;
    if !title.is_empty() {
        // Heavy letters are wider than ours.
        for line in font::lines(title, (drawing.width - 28.0) / 1.22, 14.0) {
            y += 14.0;
            drawing.heading((14.0, y), line, 14.0, Anchor::Start);
            y += 6.0;
        }
    }
    let named = names.len() > 1 || (names.len() == 1 && title.is_empty());
    let series = names.iter().filter(|_| named).map(|&(paint, name)| (paint, name, false));
    let lines = levels.iter().map(|level| (level.paint, level.name, true));
    let entries: Vec<(Paint, &str, bool)> = series.chain(lines.filter(|line| !line.1.is_empty())).collect();
    if entries.is_empty() {
        return y + 10.0;
    }
    let mut x = 14.0;
    y += 15.0;
    for (paint, name, dashed) in entries {
        // A browser's letters may be wider than ours.
        let length = 24.0 + font::width(name, TEXT) * 1.12 + 18.0;
        if x > 14.0 && x + length > drawing.width {
            x = 14.0;
            y += 18.0;
        }
        let sample = vec![(x, y - 4.0), (x + 16.0, y - 4.0)];
        drawing.line(sample, paint, if dashed { 1.5 } else { 3.0 }, dashed);
        drawing.text((x + 22.0, y), name, TEXT, Anchor::Start, Paint::Ink);
        x += length;
    }
    y + 14.0
}

/// Draws the vertical axis with its grid; the rectangle left for data.
pub(crate) fn vertical_axis(drawing: &mut Drawing, label: &str, y: &Fitted, top: f64, x_label: bool) -> Plot {
    let widest = y.ticks.iter().map(|tick| font::width(&tick.1, TEXT)).fold(0.0, f64::max);
    let left = 14.0 + widest + 6.0 + if label.is_empty() { 0.0 } else { 20.0 };
    let bottom = 28.0 + if x_label { 20.0 } else { 0.0 };
    let width = (drawing.width - left - 22.0).max(10.0);
    let height = (drawing.height - top - bottom).max(10.0);
    let plot = Plot { left, top, width, height };
    for (value, text) in &y.ticks {
        let Some(along) = y.place(*value) else { continue };
        let at = plot.top + (1.0 - along) * plot.height;
        drawing.line(vec![(left, at), (left + width, at)], Paint::Grid, 1.0, false);
        drawing.text((left - 7.0, at + 4.0), text.as_str(), TEXT, Anchor::End, Paint::Muted);
    }
    if !label.is_empty() {
        drawing.marks.push(Mark::Text(Text {
            at: (20.0, top + height / 2.0),
            text: label.to_owned(),
            size_px: TEXT,
            anchor: Anchor::Middle,
            paint: Paint::Ink,
            bold: false,
            upwards: true,
        }));
    }
    plot
}

/// Draws the horizontal axis; ticks whose labels would touch are left out.
pub(crate) fn horizontal_axis(drawing: &mut Drawing, label: &str, x: &Fitted, plot: &Plot) {
    let base = plot.top + plot.height;
    drawing.line(vec![(plot.left, base), (plot.left + plot.width, base)], Paint::Ink, 1.2, false);
    let mut free_from = f64::NEG_INFINITY;
    for (value, text) in &x.ticks {
        let Some(along) = x.place(*value) else { continue };
        let at = plot.left + along * plot.width;
        let half = font::width(text, TEXT) / 2.0;
        drawing.line(vec![(at, base), (at, base + 4.0)], Paint::Ink, 1.0, false);
        if at - half > free_from {
            drawing.text((at, base + 18.0), text.as_str(), TEXT, Anchor::Middle, Paint::Muted);
            free_from = at + half + 4.0;
        }
    }
    if !label.is_empty() {
        let at = (plot.left + plot.width / 2.0, base + 38.0);
        drawing.text(at, label, TEXT, Anchor::Middle, Paint::Ink);
    }
}

impl Level<'_> {
    /// Draws the line, where the axis has its value; how far down that is.
    pub(crate) fn draw(&self, drawing: &mut Drawing, plot: &Plot, y: &Fitted) -> Option<f64> {
        let along = y.place(self.value).filter(|along| (0.0..=1.0).contains(along))?;
        let at = plot.top + (1.0 - along) * plot.height;
        drawing.line(vec![(plot.left, at), (plot.left + plot.width, at)], self.paint, 1.5, true);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_has_the_colour_of_its_series() {
        let series = |name: &str, floor: Option<(f64, String)>| Series {
            floor,
            ..Series::new(name, vec![(0.0, 0.3), (1.0, 0.6)])
        };
        let chart = LineChart {
            series: vec![
                series("a", Some((0.1, "of a".to_owned()))),
                series("b", Some((0.2, "of b".to_owned()))),
            ],
            references: vec![(0.9, "of all".to_owned())],
            ..LineChart::default()
        };
        let drawing = chart.draw(400.0, 300.0);
        let dashed = drawing.marks.iter().filter_map(|mark| match mark {
            Mark::Line { paint, dashed: true, .. } => Some(*paint),
            _ => None,
        });
        // In the legend, and in the chart.
        let paints = [Paint::Muted, Paint::Series(0), Paint::Series(1)];
        assert_eq!(dashed.collect::<Vec<_>>(), [paints, paints].concat());
        let names: Vec<&str> = drawing
            .marks
            .iter()
            .filter_map(|mark| match mark {
                Mark::Text(text) if text.text.contains("of ") => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["of all", "of a", "of b"]);
    }

    #[test]
    fn long_lines_keep_their_ends_and_their_extremes() {
        let line = |count: usize| -> Vec<(f64, f64)> {
            (0..count).map(|i| (480.0 * i as f64 / (count - 1) as f64, ((i * 7919) % 101) as f64)).collect()
        };
        let (short, mut long) = (line(400), line(20_000));
        assert_eq!(thinned(&short), (0..400).collect::<Vec<_>>());
        long[12_345].1 = -500.0;
        let kept = thinned(&long);
        assert!(kept.len() <= 2 * 241 + 2, "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, 19_999));
        assert!(kept.contains(&12_345));
        assert_eq!((thinned(&[]), thinned(&[(1.0, 2.0)])), (vec![], vec![0]));
        // All at one place: still two, and the ends.
        assert!(thinned(&[(5.0, 1.0); 90]).len() <= 4);
    }
}
