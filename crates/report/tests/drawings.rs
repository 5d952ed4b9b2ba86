//! Charts and grids as files: both forms show the same things, whatever the data.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use report::axis::Axis;
use report::bar_chart::histogram;
use report::{Bar, BarChart, Bitmap, Drawing, GridCell, ImageGrid, LineChart, Series, SvgUse};

fn line_chart() -> Drawing {
    let epochs = [100.0, 500.0, 1000.0, 1500.0, 2000.0];
    let curve = |values: [f64; 5]| epochs.into_iter().zip(values).collect::<Vec<_>>();
    let mut equicaps = Series::new("EquiCaps", curve([0.75, 0.78, 0.78, 0.78, 0.78])).with_dots();
    equicaps.spread = vec![0.02; 5];
    LineChart {
        title: "Rotation R\u{b2} over pre-training".into(),
        x: Axis::new("epoch"),
        y: Axis::new("R\u{b2}"),
        series: vec![equicaps, Series::new("SIE <&>", curve([0.29, 0.68, 0.72, 0.73, 0.73])).with_dots()],
        references: vec![(0.23, "no information".into())],
    }
    .draw(640.0, 400.0)
}

fn bar_chart() -> Drawing {
    let bar = |name: &str, value, spread| Bar { name: name.into(), value, spread };
    BarChart {
        title: "Probes".into(),
        x: Axis::new("R\u{b2}"),
        bars: vec![
            bar("rotation", 0.7, 0.05),
            bar("translation (object)", -0.1, 0.2),
            bar("colour", 0.09, 0.0),
        ],
        references: vec![(0.23, "no information (0.23)".into())],
        decimals: 2,
    }
    .draw(480.0)
}

fn grid() -> Drawing {
    let image = |shade: u8| Arc::new(Bitmap::new(4, 4, vec![shade; 48]).unwrap());
    let row = |shade: u8| {
        vec![
            Some(GridCell::new(image(shade), "car, view 3")),
            None,
            Some(GridCell::new(image(200), "d = 0.12")),
        ]
    };
    ImageGrid {
        title: "Nearest neighbours".into(),
        columns: vec!["query".into(), "1-NN".into(), "2-NN".into()],
        row_labels: vec!["EquiCaps".into(), "VICReg".into()],
        rows: vec![row(30), row(90)],
        cell_px: 64.0,
    }
    .draw()
}

#[test]
fn drawings_become_well_formed_svg_and_png_of_the_right_size() {
    for drawing in [line_chart(), bar_chart(), grid()] {
        for purpose in [SvgUse::File, SvgUse::Inline] {
            let svg = drawing.to_svg(purpose);
            assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
            assert_eq!(svg.contains("var(--ink"), purpose == SvgUse::Inline);
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
            assert!(!svg.contains("NaN") && !svg.contains("inf,") && !svg.contains("<&>"));
        }
        let image = drawing.to_image(2.0).unwrap();
        assert_eq!(f64::from(image.width()), (drawing.width * 2.0).round());
        assert!(image.pixels().iter().any(|&value| value < 100), "something is drawn");
    }
}

#[test]
fn a_file_becomes_what_a_page_would_have_got() {
    assert_eq!(report::inline(&grid().to_svg(SvgUse::File)), grid().to_svg(SvgUse::Inline));
}

#[test]
fn what_is_drawn_says_what_it_is_inside_a_page() {
    for drawing in [line_chart(), bar_chart()] {
        let (file, page) = (drawing.to_svg(SvgUse::File), drawing.to_svg(SvgUse::Inline));
        assert!(!file.contains("data-name") && page.contains("<g data-name=\""), "{page}");
        assert_eq!(page.matches("<g ").count(), page.matches("</g>").count());
    }
}

#[test]
fn charts_of_nothing_or_of_broken_numbers_are_drawn() {
    let empty = LineChart::default().draw(300.0, 200.0);
    assert!(empty.to_png(1.0).is_ok());
    let broken = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, 2.0), (4.0, 2.5)];
    let mut chart = LineChart { series: vec![Series::new("a", broken)], ..LineChart::default() };
    assert!(!chart.draw(300.0, 200.0).to_svg(SvgUse::File).contains("NaN"));
    chart.y = Axis::new("loss").logarithmic();
    chart.series[0].points[0].1 = -1.0;
    assert!(!chart.draw(300.0, 200.0).to_svg(SvgUse::File).contains("NaN"));
    assert!(BarChart::default().draw(300.0).to_png(1.0).is_ok());
    assert!(ImageGrid::default().draw().to_png(1.0).is_ok());
}

#[test]
fn a_histogram_counts_every_value_once() {
    let values: Vec<f64> = (0..1000).map(|i| f64::from(i % 10) + 0.5).collect();
    let drawing = histogram("Angles", &Axis::new("degrees").with_range(0.0, 10.0), &values, 10, 400.0, 300.0);
    let heights: Vec<f64> = drawing
        .marks
        .iter()
        .filter_map(|mark| match mark {
            report::drawing::Mark::Rectangle([_, _, _, height], ..) => Some(*height),
            _ => None,
        })
        .collect();
    assert_eq!(heights.len(), 10);
    assert!(heights.iter().all(|h| (h - heights[0]).abs() < 1e-9 && *h > 0.0));
}
