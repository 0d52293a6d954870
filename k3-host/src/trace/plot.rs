//! Hit rates over capacities, drawn.

use std::collections::BTreeMap;

use anyhow::anyhow;
use plotters::prelude::*;

use super::report::Report;

const SIZE: (u32, u32) = (800, 500);
/// Told apart by people who see colours differently, too (Okabe and Ito's palette).
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
];

/// The rows of a report as an SVG image: a line for each policy.
///
/// # Errors
/// If the library fails.
pub fn svg(report: &Report) -> anyhow::Result<String> {
    let mut lines = BTreeMap::<&str, Vec<(f64, f64)>>::new();
    for row in &report.rows {
        lines.entry(row.policy).or_default().push((row.bytes as f64 / 1e9, row.hit_rate * 100.0));
    }
    let mut text = String::new();
    draw(&mut text, &lines).map_err(|error| anyhow!("cannot draw: {error}"))?;
    Ok(text)
}

fn draw(text: &mut String, lines: &BTreeMap<&str, Vec<(f64, f64)>>) -> Result<(), Box<dyn std::error::Error>> {
    let most = |part: fn(&(f64, f64)) -> f64| lines.values().flatten().map(part).fold(f64::MIN_POSITIVE, f64::max);
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..most(|point| point.0) * 1.02, 0.0..most(|point| point.1) * 1.05)?;
    let grid = BLACK.mix(0.12);
    let mesh = &mut chart.configure_mesh();
    mesh.x_desc("capacity, GB").y_desc("hits, % of requests").light_line_style(TRANSPARENT).bold_line_style(grid);
    mesh.label_style(("sans-serif", 13)).axis_desc_style(("sans-serif", 15)).draw()?;
    for ((policy, points), colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let series = LineSeries::new(points.iter().copied(), colour.stroke_width(2)).point_size(3);
        let key = move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(2));
        chart.draw_series(series)?.label(*policy).legend(key);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.9))
        .border_style(grid)
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}
