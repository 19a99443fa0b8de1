//! How a quantity scales with the number of processes: a few laws, the best by the Bayesian information criterion (Schwarz, Annals of
//! Statistics 6, 1978), with prediction intervals.

use crate::stats::{fit_line, median};
use crate::units::number;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// mpiP writes three digits: what a law is off by less tells nothing.
const DIGITS: f64 = 0.0015;

/// How a law goes with the number P of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// c
    Constant,
    /// c (P - 1) / P: of neighbours in a row, of all but the root.
    Share,
    /// c (P - 2) / P: of those with neighbours on both sides in a row.
    Inner,
    /// c / P: divided evenly.
    Inverse,
    /// c (1 + log2 P): rounds.
    Logarithm,
    /// c P^b
    Power,
    /// c + d / P (Amdahl).
    Offset,
}

impl Form {
    /// Simpler ones first: they win where the criterion sees no difference.
    pub const ALL: [Form; 7] = [Form::Constant, Form::Share, Form::Inner, Form::Inverse, Form::Logarithm, Form::Power, Form::Offset];

    /// What stands beside c in the laws that have only c.
    fn shape(self, p: f64) -> f64 {
        match self {
            Form::Share => (p - 1.0) / p,
            Form::Inner => (p - 2.0) / p,
            Form::Inverse => 1.0 / p,
            Form::Logarithm => 1.0 + p.log2(),
            Form::Constant | Form::Power | Form::Offset => 1.0,
        }
    }

    /// Numbers that are fitted.
    fn free(self) -> usize {
        if matches!(self, Form::Power | Form::Offset) { 2 } else { 1 }
    }
}

/// A value, and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Guess {
    /// The value.
    pub value: f64,
    /// With 95 % probability the truth is between value / e^spread and value * e^spread; none where too few values were fitted to tell.
    pub spread: Option<f64>,
}

/// A fitted law.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Law {
    /// Its form.
    pub form: Form,
    /// c
    pub c: f64,
    /// b of a power, d of an offset.
    pub b: Option<f64>,
    /// Half the width of b's 95 % interval, for a power of three values and more.
    pub b_margin: Option<f64>,
    /// Standard deviation of the residuals, as a share of the value.
    pub deviation: f64,
    /// The criterion: less is better.
    pub criterion: f64,
    /// Values fitted.
    pub points: usize,
    /// The inverse of the matrix of normal equations, of values taken relatively (for c and b).
    #[serde(skip)]
    inverse: [[f64; 2]; 2],
}

impl Law {
    /// The best law for positive values at so many processes; `None` without values.
    ///
    /// ```
    /// use collwise::qnm::{Form, Law};
    /// let law = Law::fit(&[(2, 50.0), (4, 25.0), (8, 12.5)]).unwrap();
    /// assert_eq!(law.form, Form::Inverse);
    /// assert!((law.at(16).value - 6.25).abs() < 1e-9);
    /// ```
    pub fn fit(points: &[(usize, f64)]) -> Option<Law> {
        let laws = Form::ALL.into_iter().filter_map(|form| Law::of(form, points));
        laws.reduce(|best, law| if law.criterion < best.criterion - 1e-9 { law } else { best })
    }

    /// The best law of this form; `None` where it cannot be.
    pub fn of(form: Form, points: &[(usize, f64)]) -> Option<Law> {
        let n = points.len();
        let sizes: Vec<f64> = points.iter().map(|p| p.0 as f64).collect();
        let several = points.iter().any(|p| p.0 != points[0].0);
        let possible = |(p, y): &(usize, f64)| *y > 0.0 && y.is_finite() && *p > 0 && form.shape(*p as f64) > 0.0;
        if n < form.free() || !points.iter().all(possible) || (form.free() == 2 && !several) {
            return None;
        }
        let (c, b) = match form {
            Form::Power => log_line(points),
            Form::Offset => {
                let line = fit_line(&points.iter().map(|(p, y)| (1.0 / *p as f64, *y)).collect::<Vec<_>>())?;
                (line.intercept, Some(line.slope))
            }
            _ => (points.iter().map(|(p, y)| (y / form.shape(*p as f64)).ln()).sum::<f64>() / n as f64, None),
        };
        let c = if form == Form::Offset { c } else { c.exp() };
        if form == Form::Offset && (c <= 0.0 || b? <= 0.0) {
            return None;
        }
        let mut law = Law { form, c, b, b_margin: None, deviation: 0.0, criterion: 0.0, points: n, inverse: [[0.0; 2]; 2] };
        let squares: f64 = points.iter().map(|(p, y)| (y / law.value(*p as f64)).ln().powi(2)).sum();
        law.criterion = n as f64 * (squares / n as f64).max(DIGITS * DIGITS).ln() + form.free() as f64 * (n as f64).ln();
        if n > form.free() {
            law.deviation = (squares / (n - form.free()) as f64).sqrt().max(DIGITS);
        }
        law.inverse = inverse(&sizes.iter().map(|&p| law.gradient(p)).collect::<Vec<_>>(), form.free());
        law.b_margin = (form == Form::Power).then(|| law.quantile().map(|t| t * law.deviation * law.inverse[1][1].sqrt())).flatten();
        Some(law)
    }

    fn value(&self, p: f64) -> f64 {
        let b = self.b.unwrap_or(0.0);
        match self.form {
            Form::Power => self.c * p.powf(b),
            Form::Offset => self.c + b / p,
            form => self.c * form.shape(p),
        }
    }

    /// How the logarithm of the value changes with ln c and b (for an offset: with c and d).
    fn gradient(&self, p: f64) -> [f64; 2] {
        match self.form {
            Form::Power => [1.0, p.ln()],
            Form::Offset => [1.0 / self.value(p), 1.0 / (p * self.value(p))],
            _ => [1.0, 0.0],
        }
    }

    /// Student's 97.5 % quantile for the values left over.
    fn quantile(&self) -> Option<f64> {
        quantile(self.points.checked_sub(self.form.free())?)
    }

    /// The value at so many processes, with the interval for one more run there.
    pub fn at(&self, ranks: usize) -> Guess {
        let p = ranks as f64;
        let [a, b] = self.gradient(p);
        let [[saa, sab], [_, sbb]] = self.inverse;
        let leverage = a * a * saa + 2.0 * a * b * sab + b * b * sbb;
        Guess { value: self.value(p), spread: self.quantile().map(|t| t * self.deviation * (1.0 + leverage).sqrt()) }
    }

    /// In words, such as "48.2 P^-1.02 (±0.05)".
    pub fn words(&self) -> String {
        let (c, b) = (number(self.c), self.b.unwrap_or(0.0));
        match self.form {
            Form::Constant => c,
            Form::Share => format!("{c} (P - 1) / P"),
            Form::Inner => format!("{c} (P - 2) / P"),
            Form::Inverse => format!("{c} / P"),
            Form::Logarithm => format!("{c} (1 + log2 P)"),
            Form::Power => format!("{c} P^{b:.2}{}", self.b_margin.map_or(String::new(), |m| format!(" (±{m:.2})"))),
            Form::Offset => format!("{c} + {} / P", number(b)),
        }
    }
}

/// Student's 97.5 % quantile for so many degrees of freedom.
pub fn quantile(freedom: usize) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom as f64).ok().map(|t| t.inverse_cdf(0.975))
}

/// ln c and b of the power law that fits best.
fn log_line(points: &[(usize, f64)]) -> (f64, Option<f64>) {
    let n = points.len() as f64;
    let (x, y) = (|p: &(usize, f64)| (p.0 as f64).ln(), |p: &(usize, f64)| p.1.ln());
    let (mean_x, mean_y) = (points.iter().map(x).sum::<f64>() / n, points.iter().map(y).sum::<f64>() / n);
    let squares: f64 = points.iter().map(|p| (x(p) - mean_x).powi(2)).sum();
    let slope = points.iter().map(|p| (x(p) - mean_x) * (y(p) - mean_y)).sum::<f64>() / squares;
    (mean_y - slope * mean_x, Some(slope))
}

/// The inverse of the normal equations' matrix.
fn inverse(gradients: &[[f64; 2]], free: usize) -> [[f64; 2]; 2] {
    let sum = |i: usize, j: usize| gradients.iter().map(|g| g[i] * g[j]).sum::<f64>();
    let (aa, ab, bb) = (sum(0, 0), sum(0, 1), sum(1, 1));
    if free == 1 {
        return [[1.0 / aa, 0.0], [0.0, 0.0]];
    }
    let determinant = aa * bb - ab * ab;
    [[bb / determinant, -ab / determinant], [-ab / determinant, aa / determinant]]
}

/// Values that are interpolated where they were measured on both sides, and follow a law beyond.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Processes and values, ascending; the median where there are several.
    pub points: Vec<(usize, f64)>,
    /// The law beyond.
    pub law: Law,
}

impl Series {
    /// From positive values; `None` without any.
    pub fn new(values: &[(usize, f64)]) -> Option<Series> {
        Some(Series { points: medians(values), law: Law::fit(values)? })
    }

    /// True if no value was measured on one side.
    pub fn is_beyond(&self, ranks: usize) -> bool {
        ranks < self.points[0].0 || ranks > self.points[self.points.len() - 1].0
    }

    /// The value at so many processes.
    pub fn at(&self, ranks: usize) -> Guess {
        if self.is_beyond(ranks) {
            return self.law.at(ranks);
        }
        Guess { value: interpolate(&self.points, ranks), spread: self.spread() }
    }

    /// How far interpolation is off at the points that have neighbours, had they not been measured.
    fn spread(&self) -> Option<f64> {
        let inner = self.points.len().saturating_sub(2);
        let without = |k: usize| [&self.points[..k], &self.points[k + 1..]].concat();
        let squares: f64 = (1..=inner).map(|k| (interpolate(&without(k), self.points[k].0) / self.points[k].1).ln().powi(2)).sum();
        quantile(inner).map(|t| t * (squares / inner as f64).sqrt().max(DIGITS))
    }
}

/// The medians of values, by number of processes, ascending.
pub fn medians(values: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let mut sizes: Vec<usize> = values.iter().map(|v| v.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let own = |p: usize| values.iter().filter(|v| v.0 == p).map(|v| v.1).collect::<Vec<f64>>();
    sizes.into_iter().filter_map(|p| Some((p, median(&own(p))?))).collect()
}

/// Straight lines between logarithms.
fn interpolate(points: &[(usize, f64)], ranks: usize) -> f64 {
    let k = points.partition_point(|p| p.0 < ranks);
    let (right, p) = (points[k], ranks as f64);
    if right.0 == ranks || k == 0 {
        return right.1;
    }
    let left = points[k - 1];
    let share = (p / left.0 as f64).ln() / (right.0 as f64 / left.0 as f64).ln();
    (left.1.ln() + share * (right.1.ln() - left.1.ln())).exp()
}
