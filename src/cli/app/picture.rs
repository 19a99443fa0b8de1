//! Runs beside predictions, as a picture: wall times with error bars of 30 %, and the components of both.

use crate::qnm::Components;
use crate::units;
use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::*;

/// One number of processes: measured, predicted, or both.
pub struct Bar {
    /// Processes.
    pub ranks: usize,
    /// As measured.
    pub measured: Option<Components>,
    /// As predicted.
    pub predicted: Option<Components>,
}

impl Bar {
    /// What all of its parts are shares of.
    fn whole_s(&self) -> f64 {
        self.measured.or(self.predicted).map_or(1.0, |c| c.wall_s())
    }
}

/// How far the bars reach, as a share of what was measured: the report on which this method rests calls that good.
const GOOD: f64 = 0.3;
const SIZE: (u32, u32) = (1200, 480);
const FONT: (&str, u32) = ("sans-serif", 14);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws all of them; the words say what predictions are.
pub fn draw(title: &str, words: &str, bars: &[Bar]) -> anyhow::Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = area.fill(&WHITE).map_err(|e| anyhow!("draw: {e}")).and_then(|()| {
            let area = area.titled(title, ("sans-serif", 16)).map_err(|e| anyhow!("draw: {e}"))?;
            let (left, right) = area.split_horizontally(SIZE.0 / 2);
            walls(&left, words, bars).and_then(|()| components(&right, words, bars)).map_err(|e| anyhow!("draw: {e}"))
        });
        drawn?;
        area.present().map_err(|e| anyhow!("draw: {e}"))?;
    }
    Ok(svg)
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Wall time against processes.
fn walls(area: &Area, words: &str, bars: &[Bar]) -> Drawn {
    let all = bars.iter().flat_map(|b| [b.measured, b.predicted]).flatten().map(|c| c.wall_s());
    let (least, most) = all.fold((f64::INFINITY, 0.0f64), |(l, m), t| (l.min(t), m.max(t)));
    let ranks = |f: fn(usize, usize) -> usize, start: usize| bars.iter().map(|b| b.ranks).fold(start, f) as f64;
    let (first, last) = (ranks(usize::min, usize::MAX), ranks(usize::max, 1));
    let across = (first / 1.2..last * 1.2).log_scale().with_key_points(bars.iter().map(|b| b.ranks as f64).collect());
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(across, (least * (1.0 - GOOD) / 1.2..most * (1.0 + GOOD) * 1.2).log_scale())?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(bars.len())
        .x_desc("processes")
        .y_desc("wall time; bars: measured within 30 %")
        .x_label_formatter(&|p| format!("{p:.0}"))
        .y_label_formatter(&|t| units::seconds(*t))
        .label_style(FONT)
        .draw()?;
    let bar = |b: &Bar| {
        let wall = b.measured?.wall_s();
        Some(ErrorBar::new_vertical(b.ranks as f64, wall * (1.0 - GOOD), wall, wall * (1.0 + GOOD), BLACK.filled(), 8))
    };
    chart.draw_series(bars.iter().filter_map(bar))?.label("measured").legend(|(x, y)| Circle::new((x + 10, y), 3, BLACK.filled()));
    let predicted: Vec<(f64, f64)> = bars.iter().filter_map(|b| Some((b.ranks as f64, b.predicted?.wall_s()))).collect();
    chart
        .draw_series(LineSeries::new(predicted.iter().copied(), &RED))?
        .label(words)
        .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], RED));
    chart.draw_series(predicted.iter().map(|p| Cross::new(*p, 5, RED.stroke_width(2))))?;
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).label_font(FONT).draw()?;
    Ok(())
}

/// The components of measured and predicted runs beside each other, as shares of the wall time that was measured.
fn components(area: &Area, words: &str, bars: &[Bar]) -> Drawn {
    let share = |c: &Components, wall: f64| [c.compute_s, c.waiting_s, c.active_s, c.contention_s, c.switch_s].map(|t| t / wall);
    let highest = bars.iter().filter_map(|b| Some(b.predicted?.wall_s() / b.whole_s())).fold(1.0 + GOOD, f64::max);
    let (below, above) = (-0.1 * highest, 1.35 * highest);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..bars.len() as f64, below..above)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(0)
        .x_desc(format!("processes: measured (left), {words} (right)"))
        .y_desc("share of the wall time")
        .y_label_formatter(&|v| if *v < -1e-9 { String::new() } else { format!("{:.0} %", v * 100.0) })
        .label_style(FONT)
        .draw()?;
    let colours = [RGBColor(86, 156, 214), RGBColor(170, 150, 200), RGBColor(120, 180, 90), RGBColor(220, 90, 80), RGBColor(240, 190, 70)];
    for (part, (name, colour)) in ["computing", "waiting", "MPI active", "contention", "network"].into_iter().zip(colours).enumerate() {
        let mut boxes = Vec::new();
        for (k, bar) in bars.iter().enumerate() {
            let wall = bar.whole_s();
            for (side, c) in [(0.1, bar.measured), (0.52, bar.predicted)] {
                let Some(c) = c else { continue };
                let shares = share(&c, wall);
                let bottom: f64 = shares[..part].iter().sum();
                let left = k as f64 + side;
                boxes.push(Rectangle::new([(left, bottom), (left + 0.38, bottom + shares[part])], colour.filled()));
            }
        }
        chart.draw_series(boxes)?.label(name).legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
    }
    let middle = |k: usize| k as f64 + 0.29;
    let measured = (0..bars.len()).filter(|k| bars[*k].measured.is_some());
    chart.draw_series(measured.map(|k| ErrorBar::new_vertical(middle(k), 1.0 - GOOD, 1.0, 1.0 + GOOD, BLACK.stroke_width(1), 6)))?;
    let label = |(k, bar): (usize, &Bar)| Text::new(bar.ranks.to_string(), (k as f64 + 0.4, below * 0.3), FONT);
    chart.draw_series(bars.iter().enumerate().map(label))?;
    chart.configure_series_labels().position(SeriesLabelPosition::UpperMiddle).background_style(WHITE.mix(0.8)).label_font(FONT).draw()?;
    Ok(())
}
