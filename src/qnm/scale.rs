//! How a quantity scales with the number of processes: a few laws, the best by the Bayesian information criterion (Schwarz, Annals of
//! Statistics 6, 1978), with prediction intervals.

use crate::stats::{ROUNDING, fit_line, median};
use crate::units::number;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// mpiP writes three digits: what a law is off by less tells nothing.
pub(super) const DIGITS: f64 = 0.0015;

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
    /// c times the neighbours that a process has in the mean on a plane with borders, four inside.
    Plane,
    /// c times those in space with borders, six inside.
    Cube,
    /// c times those in space, the ones across edges and corners as well: 26 inside.
    Around,
    /// c times the length of the borders of a part of a plane.
    Borders,
    /// c times the area of the sides of a part of space.
    Sides,
    /// c / n, n the longer side of a plane of P: of a row's data.
    Side,
    /// c P^b
    Power,
    /// c + d / P (Amdahl).
    Offset,
    /// c + d log2 n, n the longer side of a plane of P: rounds of doubling among the processes of a row.
    Row,
}

impl Form {
    /// Simpler ones first: they win where the criterion sees no difference.
    pub const ALL: [Form; 14] = [
        Form::Constant,
        Form::Share,
        Form::Inner,
        Form::Inverse,
        Form::Logarithm,
        Form::Plane,
        Form::Cube,
        Form::Around,
        Form::Borders,
        Form::Sides,
        Form::Side,
        Form::Power,
        Form::Offset,
        Form::Row,
    ];

    /// What stands beside c in the laws that have only c.
    fn shape(self, p: f64) -> f64 {
        match self {
            Form::Share => (p - 1.0) / p,
            Form::Inner => (p - 2.0).max(0.0) / p,
            Form::Inverse => 1.0 / p,
            Form::Logarithm => 1.0 + p.log2(),
            Form::Plane => lengths(p, 2).map(|n| 2.0 * (1.0 - 1.0 / n)).sum(),
            Form::Cube => lengths(p, 3).map(|n| 2.0 * (1.0 - 1.0 / n)).sum(),
            Form::Around => lengths(p, 3).map(|n| 3.0 - 2.0 / n).product::<f64>() - 1.0,
            Form::Borders => lengths(p, 2).sum::<f64>() / p,
            Form::Sides => lengths(p, 3).sum::<f64>() / p,
            Form::Side => 1.0 / longer(p),
            Form::Constant | Form::Power | Form::Offset | Form::Row => 1.0,
        }
    }

    /// Numbers that are fitted.
    pub(super) fn free(self) -> usize {
        if matches!(self, Form::Power | Form::Offset | Form::Row) { 2 } else { 1 }
    }

    /// True for those that are c + d times something.
    fn is_line(self) -> bool {
        matches!(self, Form::Offset | Form::Row)
    }

    /// What d goes with.
    fn slope(self, p: f64) -> f64 {
        if self == Form::Row { longer(p).log2() } else { 1.0 / p }
    }
}

/// The sides of a box of so many processes that is as near to a cube, or a square, as they divide: longest first. Prime factors go to the
/// shortest side, largest first.
pub fn balanced(ranks: usize, dimensions: usize) -> Vec<usize> {
    let mut factors = Vec::new();
    let (mut rest, mut factor) = (ranks, 2);
    while rest > 1 {
        if factor * factor > rest {
            factor = rest;
        }
        while rest % factor == 0 {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    let mut sides = vec![1; dimensions];
    for factor in factors.into_iter().rev() {
        sides.sort_unstable();
        sides[0] *= factor;
    }
    sides.sort_unstable_by(|a, b| b.cmp(a));
    sides
}

fn lengths(p: f64, dimensions: usize) -> impl Iterator<Item = f64> {
    balanced(p as usize, dimensions).into_iter().map(|n| n as f64)
}

/// The longer side of a plane of so many processes.
fn longer(p: f64) -> f64 {
    balanced(p as usize, 2)[0] as f64
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
        Law::best(&Form::ALL, points)
    }

    /// The best law of these forms.
    fn best(forms: &[Form], points: &[(usize, f64)]) -> Option<Law> {
        let laws = forms.iter().filter_map(|form| Law::of(*form, points));
        // rounds are as many as they are, or it is none of their law
        let laws = laws.filter(|law| law.form != Form::Row || law.deviation <= EXACT);
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
            Form::Offset | Form::Row => {
                let line = fit_line(&points.iter().map(|(p, y)| (form.slope(*p as f64), *y)).collect::<Vec<_>>())?;
                (line.intercept, Some(line.slope))
            }
            _ => (points.iter().map(|(p, y)| (y / form.shape(*p as f64)).ln()).sum::<f64>() / n as f64, None),
        };
        let c = match form {
            Form::Offset => c,
            // all of it may be rounds
            Form::Row if c.abs() <= DIGITS * points[0].1 => 0.0,
            Form::Row => c,
            _ => c.exp(),
        };
        // a slope of rounding is none
        if (form == Form::Offset && c == 0.0) || (form.is_line() && (c < 0.0 || b? <= (ROUNDING - 1.0) * c)) {
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
            Form::Offset | Form::Row => self.c + b * self.form.slope(p),
            form => self.c * form.shape(p),
        }
    }

    /// How the logarithm of the value changes with ln c and b (for an offset: with c and d).
    fn gradient(&self, p: f64) -> [f64; 2] {
        match self.form {
            Form::Power => [1.0, p.ln()],
            Form::Offset | Form::Row => [1.0 / self.value(p), self.form.slope(p) / self.value(p)],
            _ => [1.0, 0.0],
        }
    }

    /// Student's 97.5 % quantile for the values left over.
    pub(super) fn quantile(&self) -> Option<f64> {
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
            Form::Plane => format!("{c} neighbours of 4 on a plane"),
            Form::Cube => format!("{c} neighbours of 6 in space"),
            Form::Around => format!("{c} neighbours of 26 in space"),
            Form::Borders => format!("{c} (borders of 1/P of a plane)"),
            Form::Sides => format!("{c} (sides of 1/P of space)"),
            Form::Power => format!("{c} P^{b:.2}{}", self.b_margin.map_or(String::new(), |m| format!(" (±{m:.2})"))),
            Form::Offset => format!("{c} + {} / P", number(b)),
            Form::Side => format!("{c} / (longer side of a plane)"),
            Form::Row => format!("{c} + {} log2 (longer side of a plane)", number(b)),
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

/// A law that is off by less fits: what it says is what the program does.
pub(super) const EXACT: f64 = 0.01;
/// A value that is off such a law by more follows another one.
const BROKEN: f64 = 0.05;

/// Values that are interpolated where they were measured on both sides, and follow a law beyond.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Processes and values, ascending; the median where there are several. Those after the last break.
    pub points: Vec<(usize, f64)>,
    /// Their law.
    pub law: Law,
    /// True if values between the points follow the law too.
    pub by_law: bool,
    /// Those of fewer processes, which follow another law.
    pub earlier: Option<Box<Series>>,
}

impl Series {
    /// From positive values; `None` without any.
    pub fn new(values: &[(usize, f64)]) -> Option<Series> {
        Series::by_one_of(&Form::ALL, values)
    }

    /// The same with the best of these laws only.
    pub(super) fn by_one_of(forms: &[Form], values: &[(usize, f64)]) -> Option<Series> {
        Some(Series { points: medians(values), law: Law::best(forms, values)?, by_law: false, earlier: None })
    }

    /// From positive values of what a program decides, such as numbers of calls: these follow laws, other ones where it divides its work
    /// in another way. `None` without any.
    pub fn decided(values: &[(usize, f64)]) -> Option<Series> {
        let all = Series::new(values)?;
        let by_law = all.law.deviation <= EXACT || all.law_is_better();
        if all.law.deviation <= BROKEN {
            return Some(Series { by_law, ..all });
        }
        let cut = (3..all.points.len()).find(|&k| {
            let (p, value) = all.points[k];
            let law = Law::fit(&all.points[..k]).filter(|law| law.deviation <= EXACT && law.points >= law.form.free() + 2);
            law.is_some_and(|law| (value / law.at(p).value).ln().abs() > BROKEN)
        });
        let Some(cut) = cut else { return Some(Series { by_law, ..all }) };
        let (before, after): (Vec<_>, Vec<_>) = values.iter().partition(|v| v.0 < all.points[cut].0);
        let earlier = Series { by_law: true, ..Series::new(&before)? };
        Some(Series { earlier: Some(Box::new(earlier)), ..Series::decided(&after)? })
    }

    /// True if no value was measured on one side.
    pub fn is_beyond(&self, ranks: usize) -> bool {
        let first = self.earlier.as_ref().map_or(self.points[0].0, |e| e.points[0].0);
        ranks < first || ranks > self.points[self.points.len() - 1].0
    }

    /// All of its values as of one law.
    pub fn unbroken(self) -> Series {
        let Some(earlier) = self.earlier else { return self };
        let all = [earlier.unbroken().points, self.points.clone()].concat();
        Series::new(&all).unwrap_or(Series { points: all, law: self.law, by_law: false, earlier: None })
    }

    /// True if it is known of several numbers of processes.
    pub fn is_of_several(&self) -> bool {
        self.earlier.is_some() || self.points.len() > 1
    }

    /// True if it is known of so many processes, or of several numbers.
    pub fn tells(&self, ranks: usize) -> bool {
        self.is_of_several() || self.points[0].0 == ranks
    }

    /// Between which numbers of processes the program changes how it divides its work.
    pub fn breaks(&self) -> Vec<(usize, usize)> {
        let Some(earlier) = &self.earlier else { return Vec::new() };
        let mut all = earlier.breaks();
        all.push((earlier.points[earlier.points.len() - 1].0, self.points[0].0));
        all
    }

    /// The value at so many processes.
    pub fn at(&self, ranks: usize) -> Guess {
        let (first, last) = (self.points[0].0, self.points[self.points.len() - 1].0);
        if let Some(earlier) = self.earlier.as_ref().filter(|_| ranks < first) {
            let guess = earlier.at(ranks);
            if ranks <= earlier.points[earlier.points.len() - 1].0 {
                return guess;
            }
            // either law may hold here already
            let other = (self.points[0].1 / earlier.at(first).value).ln().abs();
            return Guess { spread: Some(guess.spread.map_or(other, |s| s.max(other))), ..guess };
        }
        if self.by_law || ranks < first || ranks > last {
            let guess = self.law.at(ranks);
            // what was measured is
            let measured = self.points.iter().find(|point| point.0 == ranks);
            return measured.map_or(guess, |point| Guess { value: point.1, ..guess });
        }
        Guess { value: interpolate(&self.points, ranks), spread: self.spread() }
    }

    /// The logarithms of how far interpolation is off at the points that have neighbours, had they not been measured.
    fn misses(&self) -> Vec<f64> {
        let inner = 1..self.points.len().saturating_sub(1);
        inner.map(|k| (interpolate(&without(&self.points, k), self.points[k].0) / self.points[k].1).ln()).collect()
    }

    /// True if the law predicts those points better than interpolation does.
    fn law_is_better(&self) -> bool {
        let misses = |k: usize| {
            Law::fit(&without(&self.points, k)).map_or(f64::INFINITY, |law| (law.at(self.points[k].0).value / self.points[k].1).ln())
        };
        let inner = 1..self.points.len().saturating_sub(1);
        !inner.is_empty() && squares(inner.map(misses)) <= squares(self.misses().into_iter())
    }

    /// How far interpolation may be off.
    fn spread(&self) -> Option<f64> {
        let misses = self.misses();
        let n = misses.len();
        quantile(n).map(|t| t * (squares(misses.into_iter()) / n as f64).sqrt().max(DIGITS))
    }
}

pub(super) fn squares(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|v| v * v).sum()
}

pub(super) fn without<T: Clone>(points: &[T], k: usize) -> Vec<T> {
    [&points[..k], &points[k + 1..]].concat()
}

/// How far a number of processes is from one to another, by its logarithm.
pub(super) fn share(left: usize, right: usize, ranks: usize) -> f64 {
    (ranks as f64 / left as f64).ln() / (right as f64 / left as f64).ln()
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
    let right = points[k];
    if right.0 == ranks || k == 0 {
        return right.1;
    }
    let left = points[k - 1];
    (left.1.ln() + share(left.0, right.0, ranks) * (right.1.ln() - left.1.ln())).exp()
}
