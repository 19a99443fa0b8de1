//! How far off measured times may be for clocks, in a line.

use super::table::percent;
use crate::measure::ClockErrors;
use crate::units;

/// That line; nothing where one clock was read.
pub fn clocks(errors: Option<ClockErrors>) -> String {
    let Some(ClockErrors { samples, above, worst_s, of_s }) = errors else { return String::new() };
    format!(
        "clocks of several ranks: {} of {samples} times may be off by more than a tenth, the worst by {} of {}\n",
        percent(above as f64 / samples as f64),
        units::seconds(worst_s),
        units::seconds(of_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_says_how_many_and_the_worst() {
        let errors = ClockErrors { samples: 8, above: 2, worst_s: 4e-6, of_s: 16e-6 };
        assert_eq!(
            clocks(Some(errors)),
            "clocks of several ranks: 25 % of 8 times may be off by more than a tenth, the worst by 4.00 us of 16.0 us\n"
        );
        assert_eq!(clocks(None), "");
    }
}
