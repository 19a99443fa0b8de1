//! Units: the only place that reads or prints one.
//!
//! Times are `f64` seconds and sizes are `usize` bytes everywhere inside. Sizes are read and printed with binary prefixes
//! (`512KiB`), times with SI prefixes (`8.6 ms`).

use crate::error::{Error, Result};
use serde::{Deserialize, Deserializer, de::Error as _};

/// A time in seconds.
pub type Seconds = f64;

/// The longest time that any file may state: anything above is a slip of units.
pub const MAX_SECONDS: Seconds = 1e6;

/// No file may state a larger size: no buffer holds so much, and TOML cannot write more.
pub const MAX_BYTES: usize = isize::MAX as usize;

const SIZE_UNITS: [(&str, usize); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Reads a size: a whole number, with or without a unit (`B`, `KiB`, `MiB`, `GiB`, their short forms `K`, `M`, `G`, or the
/// decimal `kB`, `MB`, `GB`).
///
/// ```
/// use collwise::units::parse_bytes;
/// assert_eq!(parse_bytes("512KiB").unwrap(), 524_288);
/// assert_eq!(parse_bytes("1 MB").unwrap(), 1_000_000);
/// assert!(parse_bytes("-3").is_err());
/// assert!(parse_bytes("5 parsecs").unwrap_err().to_string().contains("KiB"));
/// ```
///
/// # Errors
/// [`Error::Invalid`], which names the text and the units that are known.
pub fn parse_bytes(text: &str) -> Result<usize> {
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim();
    let scale = if unit.is_empty() { Some(1) } else { SIZE_UNITS.iter().find(|(u, _)| *u == unit).map(|(_, s)| *s) };
    let value = number.parse::<usize>().ok().zip(scale).and_then(|(n, s)| n.checked_mul(s));
    value.ok_or_else(|| {
        Error::invalid(format!("read \"{text}\" as a size: write a whole number with B, KiB, MiB, GiB, kB, MB or GB, such as 512KiB"))
    })
}

/// Prints a size, shortest exact form: `512KiB`, `1B`, `1000B`.
///
/// ```
/// assert_eq!(collwise::units::bytes(1 << 20), "1MiB");
/// assert_eq!(collwise::units::bytes(1000), "1000B");
/// ```
pub fn bytes(n: usize) -> String {
    match n {
        0 => "0B".into(),
        n if n.is_multiple_of(1 << 30) => format!("{}GiB", n >> 30),
        n if n.is_multiple_of(1 << 20) => format!("{}MiB", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{}KiB", n >> 10),
        n => format!("{n}B"),
    }
}

/// How a size stands in a file: with a unit where it is a whole number of KiB, MiB or GiB, else without, in bytes.
///
/// ```
/// use collwise::units::bytes_in_file;
/// assert_eq!([bytes_in_file(65_536), bytes_in_file(96), bytes_in_file(0)], ["64KiB", "96", "0"]);
/// ```
pub fn bytes_in_file(n: usize) -> String {
    if n > 0 && n.is_multiple_of(1 << 10) { bytes(n) } else { n.to_string() }
}

/// Prints a time with three significant digits and an SI prefix.
///
/// ```
/// assert_eq!(collwise::units::seconds(0.00862), "8.62 ms");
/// assert_eq!(collwise::units::seconds(0.0), "0 s");
/// ```
pub fn seconds(t: Seconds) -> String {
    if t == 0.0 {
        return "0 s".into();
    }
    // what is rounded up to a thousand of one unit is one of the next
    let (scale, unit) = match t.abs() {
        x if x >= 0.9995 => (1.0, "s"),
        x if x >= 0.9995e-3 => (1e3, "ms"),
        x if x >= 0.9995e-6 => (1e6, "us"),
        x if x >= 0.005e-9 => (1e9, "ns"),
        _ => return "0 s".into(),
    };
    let value = t * scale;
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// Prints a number with three significant digits, with an exponent where it is very large or small.
///
/// ```
/// use collwise::units::number;
/// assert_eq!([number(42.0), number(0.00271828), number(3.3e-7), number(0.0)], ["42.0", "0.00272", "3.30e-7", "0"]);
/// ```
pub fn number(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let exponent = value.abs().log10().floor() as i32;
    if !(-4..6).contains(&exponent) {
        return format!("{value:.2e}");
    }
    format!("{value:.*}", (2 - exponent).max(0) as usize)
}

/// Reads a time: a number with s, ms, us or ns.
///
/// ```
/// use collwise::units::parse_seconds;
/// assert_eq!(parse_seconds("50us").unwrap(), 5e-5);
/// assert!(parse_seconds("50").is_err());
/// ```
///
/// # Errors
/// [`Error::Invalid`], which names the text and the units that are known.
pub fn parse_seconds(text: &str) -> Result<Seconds> {
    let read = |unit: &str, per_second: f64| text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok().map(|t| t / per_second);
    // "s" ends all of them: it comes last
    let seconds = read("ms", 1e3).or_else(|| read("us", 1e6)).or_else(|| read("ns", 1e9)).or_else(|| read("s", 1.0));
    seconds
        .filter(|t| is_time(*t))
        .ok_or_else(|| Error::invalid(format!("read \"{text}\" as a time: write a number with s, ms, us or ns, such as 50us")))
}

/// True for a time that a file may state: finite, not negative, at most [`MAX_SECONDS`].
pub fn is_time(t: f64) -> bool {
    t.is_finite() && (0.0..=MAX_SECONDS).contains(&t)
}

/// The present date and time (UTC), such as `2026-11-21 09:05:00 UTC`.
pub fn utc_now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(since / 86_400);
    let (hour, minute, second) = (since / 3600 % 24, since / 60 % 60, since % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day of a number of days since 1970-01-01 (Gregorian calendar, eras of 400 years that begin in March).
fn civil(days: u64) -> (u64, u64, u64) {
    let from_march = days + 719_468;
    let (era, day_of_era) = (from_march / 146_097, from_march % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

const TIME_RULE: &str = "times are finite seconds, zero or more, at most 1e6 (write 8.6e-3 for 8.6 ms)";

fn check_time<E: serde::de::Error>(t: f64) -> std::result::Result<f64, E> {
    if is_time(t) { Ok(t) } else { Err(E::custom(format!("{t} is no valid time: {TIME_RULE}"))) }
}

/// For serde: a time in seconds, checked, so that a bad one is reported with its line.
pub fn de_seconds<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<f64, D::Error> {
    check_time(f64::deserialize(d)?)
}

/// For serde: an optional time in seconds.
pub fn de_seconds_option<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Option<f64>, D::Error> {
    de_seconds(d).map(Some)
}

/// For serde: how much longer something takes than something else, as a share of that.
pub fn de_margin<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<f64, D::Error> {
    let margin = f64::deserialize(d)?;
    let can_be = margin.is_finite() && margin >= -1.0;
    can_be.then_some(margin).ok_or_else(|| D::Error::custom(format!("a margin of {margin} cannot be: it is a share, -1 at least")))
}

/// For serde: a list of times in seconds.
pub fn de_seconds_list<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Vec<f64>, D::Error> {
    Vec::<f64>::deserialize(d)?.into_iter().map(check_time).collect()
}

/// A size in a file: a number of bytes, or a text with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub usize);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> std::result::Result<Bytes, D::Error> {
        struct Visitor;
        // the faults are found in here, where the place in the file is known
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a size: a whole number of bytes, or a text such as \"64KiB\"")
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> std::result::Result<Bytes, E> {
                let fits = usize::try_from(n).ok().filter(|&n| n <= MAX_BYTES);
                fits.map(Bytes).ok_or_else(|| E::custom(format!("{n} bytes fit into no memory")))
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> std::result::Result<Bytes, E> {
                self.visit_u64(n.try_into().map_err(|_| E::custom(format!("a size is zero or more, and not {n}")))?)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Bytes, E> {
                self.visit_u64(parse_bytes(text).map_err(|e| E::custom(format!("failed to {e}")))? as u64)
            }
        }
        d.deserialize_any(Visitor)
    }
}

/// For serde: a size.
pub fn de_bytes<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<usize, D::Error> {
    Bytes::deserialize(d).map(|n| n.0)
}

/// For serde: a list of sizes.
pub fn de_bytes_list<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Vec<usize>, D::Error> {
    Ok(Vec::<Bytes>::deserialize(d)?.into_iter().map(|n| n.0).collect())
}

/// For serde: a square matrix of times in seconds, row by row.
pub fn de_seconds_square<'de, D: Deserializer<'de>>(d: D) -> std::result::Result<Vec<Vec<f64>>, D::Error> {
    let rows = Vec::<Vec<f64>>::deserialize(d)?;
    if let Some((i, row)) = rows.iter().enumerate().find(|(_, r)| r.len() != rows.len()) {
        let (have, want) = (row.len(), rows.len());
        return Err(D::Error::custom(format!("matrix is not square: row {} has {have} entries, there are {want} rows", i + 1)));
    }
    rows.iter().flatten().try_for_each(|&t| check_time::<D::Error>(t).map(drop))?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_print_as_they_are_read() {
        for n in [0, 1, 7, 1000, 1024, 1536, 65536, 1 << 20, 3 << 30] {
            assert_eq!(parse_bytes(&bytes(n)).unwrap(), n);
            assert_eq!(parse_bytes(&bytes_in_file(n)).unwrap(), n);
        }
        assert!(parse_bytes("99999999999999999999").is_err());
        assert!(parse_bytes("18446744073709551615GiB").is_err());
        assert!(parse_bytes("").is_err());
    }

    #[test]
    fn files_may_state_sizes_as_numbers_or_with_units() {
        #[derive(Deserialize, Debug)]
        struct Sizes {
            #[serde(deserialize_with = "de_bytes_list")]
            sizes: Vec<usize>,
        }
        let read = |text: &str| crate::error::parse_toml::<Sizes>("f", text);
        assert_eq!(read("sizes = [1, \"64KiB\", \"96\", \"1 MB\"]").unwrap().sizes, [1, 65_536, 96, 1_000_000]);
        for (wrong, words) in [
            ("-1", "zero or more"),
            ("1.5", "a whole number of bytes"),
            ("\"64 parsecs\"", "write a whole number with B, KiB"),
            ("18446744073709551615", "no memory"),
            ("\"16777216TiB\"", "write a whole number"),
            ("\"17179869183GiB\"", "no memory"),
        ] {
            let said = read(&format!("\nsizes = [1,\n{wrong}]")).unwrap_err().to_string();
            assert!(said.contains("f, line 3") && said.contains(words), "{wrong}: {said}");
        }
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_778), (2026, 11, 21));
    }

    #[test]
    fn times_keep_three_digits() {
        assert_eq!(seconds(1234.0), "1234 s");
        assert_eq!(seconds(0.0999), "99.9 ms");
        assert_eq!(seconds(48.39e-6), "48.4 us");
        assert_eq!(seconds(1.5e-9), "1.50 ns");
    }
}
