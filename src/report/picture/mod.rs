//! Pictures: one function each, which gives an SVG image for the page and for a file of its own alike.
//!
//! All draw with the colours below. In the page a style sheet maps these to those of the reader's scheme; a picture alone is dark on white. The
//! colours of data are those of Okabe and Ito, which people tell apart whatever colours they see, the two lightest darker, so that all stand out from paper
//! three to one; words stand beside them everywhere.

mod chart;
mod decisions;
mod gantt;
mod heat;
mod links;
mod marks;
mod parts;
mod tree;

pub use chart::{Axis, Bar, Line, Panel, Scale, Shape, chart};
pub use decisions::{Decided, Decisions, SEGMENTED, decisions, family};
pub use gantt::{Gantt, Span, gantt};
pub use heat::{Heat, HeatPicture, Merge, heat};
pub use links::{LinkDrawn, Node, bits, links};
pub use marks::MARKS;
pub use parts::{Stack, parts};
pub use tree::{Branch, tree};

use super::tables::visible;
use crate::error::{Error, Result};
use marks::mark;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// What is drawn on.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What drawing ends in.
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Behind everything.
const PAPER: RGBColor = RGBColor(0xFF, 0xFF, 0xFF);
/// Words and what is drawn of data without a colour.
const INK: RGBColor = RGBColor(0x1B, 0x1F, 0x24);
/// Words of less weight.
const MUTED: RGBColor = RGBColor(0x5B, 0x63, 0x6D);
/// Lines that help the eye.
const RULE: RGBColor = RGBColor(0xC9, 0xCE, 0xD4);
/// What is known of nobody.
const UNKNOWN: RGBColor = RGBColor(0xE4, 0xE7, 0xEA);
/// What calls for attention.
const MARK: RGBColor = RGBColor(0xD5, 0x5E, 0x00);

/// The colours of data.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xC2, 0x7F, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0x3D, 0x97, 0xCF),
    RGBColor(0x7A, 0x7A, 0x7A),
];

/// So many have colours of their own.
pub const COLOURED: usize = COLOURS.len();

/// The colour of the one that comes so many after the first; they repeat, and [marks](mark) tell those apart.
fn colour(k: usize) -> RGBColor {
    COLOURS[k % COLOURS.len()]
}

/// Width of all pictures that fill a page's width.
pub const WIDTH: u32 = 960;

/// Words in pictures are so large.
const SIZE: f64 = 12.0;

/// Draws a picture.
fn picture(size: (u32, u32), draw: impl FnOnce(&Area) -> Drawn) -> Result<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = area.fill(&PAPER).map_err(Into::into).and_then(|()| draw(&area)).and_then(|()| area.present().map_err(Into::into));
        drawn.map_err(|e: Box<dyn std::error::Error>| Error::invalid(format!("draw a picture of the report: {e}")))?;
    }
    Ok(shorter(&svg))
}

/// The same without what it would be anyway: a page holds thousands of rectangles.
fn shorter(svg: &str) -> String {
    const ANYWAY: [&str; 6] = [
        " opacity=\"1\"",
        " stroke=\"none\"",
        " stroke-width=\"1\"",
        " text-anchor=\"start\"",
        " font-family=\"sans-serif\"",
        " font-size=\"12\"",
    ];
    let short = ANYWAY.iter().fold(svg.to_string(), |svg, said| svg.replace(said, ""));
    // all else says its own colour
    let short = short.replace(" fill=\"#1B1F24\">\n", ">").replace("\n</text>", "</text>");
    short.replacen("<svg ", "<svg font-family=\"sans-serif\" font-size=\"12\" fill=\"#1B1F24\" ", 1)
}

/// On narrow screens its words are twice as large, for which it has room: what it shows fits the screen, and is still read.
fn as_chart(svg: &str) -> String {
    svg.replacen("<svg ", "<svg class=\"chart\" ", 1)
}

/// Where the samples of a legend are, their names 30 points beside them, from a height on; and how high it is. Columns are as wide as the longest name is
/// in letters of twice the size.
fn legend<'a>(names: impl Iterator<Item = &'a str> + Clone, top: i32) -> (Vec<At>, u32) {
    const LETTER: i32 = 13;
    const ROW: i32 = 26;
    let longest = names.clone().map(|name| name.chars().count()).max().unwrap_or(0) as i32;
    let (left, wide) = (24, (46 + LETTER * longest).clamp(150, WIDTH as i32 - 40));
    let columns = (WIDTH as i32 - left) / wide;
    let places: Vec<At> =
        names.enumerate().map(|(k, _)| (left + wide * (k as i32 % columns), top + 13 + ROW * (k as i32 / columns))).collect();
    let rows = (places.len() as i32 + columns - 1) / columns;
    (places, (ROW * rows) as u32)
}

/// A place in a picture.
type At = (i32, i32);

/// Where words are beside their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Right,
    Left,
    Middle,
}

/// How words look.
fn style(side: Side, size: f64, ink: &RGBColor) -> TextStyle<'static> {
    let h = match side {
        Side::Right => HPos::Left,
        Side::Left => HPos::Right,
        Side::Middle => HPos::Center,
    };
    // the backend takes sizes by another measure
    TextStyle { color: ink.to_backend_color(), ..TextStyle::from(("sans-serif", size * 1.24)) }.pos(Pos::new(h, VPos::Center))
}

/// Words at a place, their middle at its height.
fn say(area: &Area, words: &str, at: At, side: Side, size: f64, ink: &RGBColor) -> Drawn {
    Ok(area.draw(&Text::new(visible(words), at, style(side, size, ink)))?)
}

/// A filled rectangle, at least a point wide and high.
fn fill(area: &Area, from: At, to: At, style: impl Into<ShapeStyle>) -> Drawn {
    let to = (to.0.max(from.0 + 1), to.1.max(from.1 + 1));
    Ok(area.draw(&Rectangle::new([from, to], style.into()))?)
}

/// A line through some places.
fn stroke(area: &Area, places: impl Into<Vec<At>>, style: impl Into<ShapeStyle>) -> Drawn {
    Ok(area.draw(&PathElement::new(places.into(), style.into()))?)
}

/// Words cut to about so many points of width.
fn cut(words: &str, width: i32, size: f64) -> String {
    // of a font without serifs a letter is about so wide, as a share of its height
    const LETTER: f64 = 0.56;
    let most = (f64::from(width) / (LETTER * size)).floor().max(2.0) as usize;
    if words.chars().count() <= most { words.into() } else { words.chars().take(most - 1).chain(['…']).collect() }
}

/// The colour of a share from 0 to 1, from light to dark and alike for all eyes.
fn shade(share: f64) -> RGBColor {
    // in so many steps that neighbours of about one value are one rectangle
    const STEPS: f64 = 40.0;
    let step = (share.clamp(0.0, 1.0) * STEPS).round() / STEPS;
    ViridisRGB.get_color(1.0 - step)
}

#[cfg(test)]
mod tests {
    use super::decisions::STRONGEST;
    use super::*;

    /// How light a colour is, by WCAG 2.
    fn luminance(colour: RGBColor) -> f64 {
        let linear = |part: u8| {
            let share = f64::from(part) / 255.0;
            if share <= 0.03928 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(colour.0) + 0.7152 * linear(colour.1) + 0.0722 * linear(colour.2)
    }

    /// How much one stands out from another, to one.
    fn contrast(a: RGBColor, b: RGBColor) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn mixed(a: RGBColor, b: RGBColor, share: f64) -> RGBColor {
        let of = |a: u8, b: u8| (f64::from(a) * share + f64::from(b) * (1.0 - share)).round() as u8;
        RGBColor(of(a.0, b.0), of(a.1, b.1), of(a.2, b.2))
    }

    fn parsed(hex: &str) -> RGBColor {
        let part = |k: usize| u8::from_str_radix(&hex[k..k + 2], 16).unwrap();
        RGBColor(part(0), part(2), part(4))
    }

    /// Graphics stand out three to one and words 4.5 to one, on paper and on cells, in both schemes (WCAG 2.1, 1.4.3 and 1.4.11).
    #[test]
    fn colours_stand_out_in_light_and_dark() {
        const STYLE: &str = include_str!("../page.css");
        let (light, dark) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
        let dark = &dark[..dark.find("\n* {").unwrap()];
        let named = |of: &str, name: &str| parsed(&of.split_once(&format!("--{name}: #")).unwrap().1[..6]);
        let in_dark = |colour: RGBColor| {
            let said = format!("[fill=\"#{:02X}{:02X}{:02X}\"] {{ fill: #", colour.0, colour.1, colour.2);
            dark.split_once(&said).map_or(colour, |(_, hex)| parsed(&hex[..6]))
        };
        for (scheme, is_dark) in [(light, false), (dark, true)] {
            let [paper, ink, muted, link, marked] = ["paper", "ink", "muted", "link", "mark"].map(|name| named(scheme, name));
            assert!(contrast(marked, paper) >= 3.0);
            assert!([ink, muted, link].iter().all(|words| contrast(*words, paper) >= 4.5));
            for own in COLOURS {
                let seen = match own {
                    MARK => marked,
                    own if is_dark => in_dark(own),
                    own => own,
                };
                assert!(contrast(seen, paper) >= 3.0, "{own:?} {is_dark}: {:.2}", contrast(seen, paper));
                let below = mixed(seen, paper, STRONGEST);
                assert!(contrast(ink, below) >= 4.5, "{own:?} {is_dark}: words {:.2}", contrast(ink, below));
            }
        }
    }
}
