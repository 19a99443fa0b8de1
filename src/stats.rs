//! Statistics on measured times: medians, their confidence intervals, the bootstrap, least squares and structural breaks.
//!
//! No function here returns NaN for finite input; where a figure does not exist, it returns `None`.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// The generator used everywhere: small, fast, and the same sequence on every machine.
pub type Random = Xoshiro256PlusPlus;

/// A generator for a seed.
pub fn random(seed: u64) -> Random {
    Random::seed_from_u64(seed)
}

/// The hash FNV-1a, for numbers that must be the same on all ranks and in all builds.
pub(crate) fn fnv1a(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0xcbf2_9ce4_8422_2325, |hash, value| (hash ^ value).wrapping_mul(0x0100_0000_01b3))
}

/// Sorts times ascending; NaN, which no caller should hold, goes last.
fn sorted(values: &[f64]) -> Vec<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    v
}

/// The q-quantile (0..=1), linear between order statistics.
///
/// ```
/// use collwise::stats::quantile;
/// assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.5), Some(2.5));
/// assert_eq!(quantile(&[], 0.5), None);
/// ```
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let v = sorted(values);
    let last = v.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    Some(if part == 0.0 { v[low] } else { v[low] + (v[low + 1] - v[low]) * part })
}

/// Half of what is normally distributed is off by less than so many standard deviations.
pub const NORMAL_QUARTILE: f64 = 0.6745;

/// The median.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Times that are the same but for the order in which their parts were added up differ by less than this factor, as some thousand additions do
/// at 53 bits, and nothing that was measured is known so well.
pub const ROUNDING: f64 = 1.0 + 1e-9;

/// The arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// How much longer a time is than another, as a share. Two that are 0 are alike; over 0 anything else has no share, and `None` is given,
/// as wherever the share is no number.
pub fn excess(time: f64, over: f64) -> Option<f64> {
    if time == over { Some(0.0) } else { Some(time / over - 1.0).filter(|share| share.is_finite()) }
}

/// How much longer the next best takes than the best, as a share; without bound if the best takes no time and the next does.
pub fn margin(next: f64, best: f64) -> f64 {
    excess(next, best).unwrap_or(f64::INFINITY)
}

/// The geometric mean of positive values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    mean(&logs).map(f64::exp)
}

/// Fewer values than this have no 95 % confidence interval of their median between two of them: the whole range of five covers 94 %, that of
/// three 75.
pub const LEAST_FOR_INTERVAL: usize = 6;

/// By so many times their range the interval of two, three, four and five values goes beyond it on either side: as much as uniform ones ask for,
/// of which most often all are on one side of the median and close together. Normal ones ask for two thirds of it, as Student's t says too, and
/// those with a long tail for something between: see the test.
const BEYOND_RANGE: [f64; 4] = [9.2, 1.23, 0.36, 0.06];

/// A 95 % confidence interval of the median from order statistics (binomial with p = 1/2, normal approximation with continuity correction
/// of the ranks), free of any assumption on the distribution. Fewer than [`LEAST_FOR_INTERVAL`] values have none
/// without an assumption: theirs is their range widened by as much as distributions without gaps ask for. `None` for fewer than two, which
/// say nothing of how they scatter.
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let v = sorted(values);
    let n = v.len();
    if n < 2 {
        return None;
    }
    if n < LEAST_FOR_INTERVAL {
        let beyond = BEYOND_RANGE[n - 2] * (v[n - 1] - v[0]);
        return Some((v[0] - beyond, v[n - 1] + beyond));
    }
    let outside = (n as f64 - 1.0 - 1.96 * (n as f64).sqrt()) / 2.0;
    let low = outside.max(0.0) as usize;
    Some((v[low], v[n - 1 - low]))
}

/// True if values of the first kind are smaller than those of the second, by the rank-sum test at 5 %, one-sided, with the normal
/// approximation (Mann, Whitney, Annals of Mathematical Statistics 18, 1947).
pub fn is_less(a: &[f64], b: &[f64]) -> bool {
    let (n, m) = (a.len() as f64, b.len() as f64);
    let wins: f64 = a.iter().flat_map(|x| b.iter().map(move |y| if x < y { 1.0 } else { f64::from(u8::from(x == y)) / 2.0 })).sum();
    let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
    wins - n * m / 2.0 - 0.5 > 1.645 * deviation
}

/// A value with a 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// An estimate known exactly.
    pub fn exact(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// The point estimate with the interval spanned by the 2.5 % and 97.5 % quantiles of bootstrap replicates (percentile
    /// bootstrap, Efron 1979), widened where needed to hold the point.
    pub fn from_replicates(value: f64, replicates: &[f64]) -> Estimate {
        let low = quantile(replicates, 0.025).unwrap_or(value).min(value);
        let high = quantile(replicates, 0.975).unwrap_or(value).max(value);
        Estimate { value, low, high }
    }
}

/// One bootstrap resample: as many values, drawn with replacement.
pub fn resample(values: &[f64], random: &mut Random) -> Vec<f64> {
    (0..values.len()).map(|_| values[random.random_range(0..values.len())]).collect()
}

/// A straight line `intercept + slope * x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Value at x = 0.
    pub intercept: f64,
    /// Change per unit of x.
    pub slope: f64,
}

impl Line {
    /// The line's value at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// Least squares on relative residuals (weights 1/y^2): the errors of measured times grow with the times, and an ordinary fit
/// would let the largest message decide the intercept. `None` with fewer than two distinct x or with y <= 0.
///
/// ```
/// use collwise::stats::fit_line;
/// let line = fit_line(&[(0.0, 1.0), (10.0, 21.0), (20.0, 41.0)]).unwrap();
/// assert!((line.intercept - 1.0).abs() < 1e-12 && (line.slope - 2.0).abs() < 1e-12);
/// ```
pub fn fit_line(points: &[(f64, f64)]) -> Option<Line> {
    if points.iter().any(|&(_, y)| y <= 0.0) {
        return None;
    }
    let weight = |y: f64| 1.0 / (y * y);
    let total: f64 = points.iter().map(|&(_, y)| weight(y)).sum();
    let mean_x = points.iter().map(|&(x, y)| weight(y) * x).sum::<f64>() / total;
    let mean_y = points.iter().map(|&(_, y)| weight(y) * y).sum::<f64>() / total;
    let sxx: f64 = points.iter().map(|&(x, y)| weight(y) * (x - mean_x).powi(2)).sum();
    let sxy: f64 = points.iter().map(|&(x, y)| weight(y) * (x - mean_x) * (y - mean_y)).sum();
    (sxx > 0.0).then(|| {
        let slope = sxy / sxx;
        Line { intercept: mean_y - slope * mean_x, slope }
    })
}

/// Piecewise linear interpolation through points with ascending x; outside, the line through the nearest two points, never
/// below zero. Uses only `+ - * /`, so that every rank gets the same bits.
///
/// # Panics
/// Never; an empty table gives 0.
pub fn interpolate(xs: &[usize], ys: &[f64], x: usize) -> f64 {
    Place::of(xs, x).at(ys)
}

/// As [`interpolate`], but beyond the last point: on the line through it and the last one that is at most half as far, since two that are near each other
/// say little of what follows; never below the last one.
pub fn extended(xs: &[usize], ys: &[f64], x: usize) -> f64 {
    let far = |&last: &usize| xs.partition_point(|&p| p <= last / 2).checked_sub(1);
    match (xs.last(), ys.last()) {
        (Some(last), Some(&y)) if x > *last => far(last).map_or(y, |k| interpolate(&[xs[k], *last], &[ys[k], y], x)).max(y),
        _ => interpolate(xs, ys, x),
    }
}

/// The place of a number among ascending ones, for several tables over these.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The last one before it, or one that it is beyond.
    left: usize,
    /// The share of the way from there to the next one.
    share: f64,
}

impl Place {
    /// The place of `x`.
    #[inline]
    pub fn of(xs: &[usize], x: usize) -> Place {
        if xs.len() < 2 {
            return Place { left: 0, share: 0.0 };
        }
        let right = xs.partition_point(|&p| p < x).clamp(1, xs.len() - 1);
        let (x0, x1) = (xs[right - 1] as f64, xs[right] as f64);
        Place { left: right - 1, share: (x as f64 - x0) / (x1 - x0) }
    }

    /// What a table says there, as [`interpolate`].
    pub fn at(self, ys: &[f64]) -> f64 {
        match ys {
            [] => 0.0,
            [only] => *only,
            _ => (ys[self.left] + (ys[self.left + 1] - ys[self.left]) * self.share).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_a_table_its_last_doubling_says_what_follows() {
        let (xs, ys) = ([10, 100, 190, 200], [1.0, 10.0, 19.0, 30.0]);
        assert_eq!(extended(&xs, &ys, 195), interpolate(&xs, &ys, 195));
        assert_eq!((extended(&xs, &ys, 200), extended(&xs, &ys, 400)), (30.0, 70.0));
        assert_eq!((extended(&xs[..1], &ys[..1], 50), extended(&[], &[], 5)), (1.0, 0.0));
        assert_eq!(extended(&[1, 8], &[4.0, 3.0], 16), 3.0);
    }

    #[test]
    fn quantiles_of_a_hand_sized_sample() {
        let v = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&v), Some(3.0));
        assert_eq!(quantile(&v, 0.0), Some(1.0));
        assert_eq!(quantile(&v, 1.0), Some(5.0));
        assert_eq!(quantile(&v, 0.25), Some(2.0));
        assert_eq!(mean(&v), Some(3.0));
        assert_eq!(median(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).unwrap() - 2.0).abs() < 1e-12);
    }

    /// Times with noise of several kinds, as a share of the median.
    fn noisy(kind: &str, random: &mut Random) -> f64 {
        let uniform: f64 = random.random();
        let normal = (-2.0 * (1.0 - uniform).ln()).sqrt() * (std::f64::consts::TAU * random.random::<f64>()).cos();
        match kind {
            "uniform" => 0.5 + uniform,
            "normal" => 1.0 + 0.05 * normal,
            "lognormal" => normal.exp(),
            // a shortest time, and what is added to it
            "exponential" => 1.0 - 0.1 * ((2.0 * (1.0 - uniform)).ln()),
            "spikes" => (1.0 + 0.05 * normal) * if random.random::<f64>() < 0.05 { 3.0 } else { 1.0 },
            _ => unreachable!("{kind}"),
        }
    }

    #[test]
    fn intervals_of_the_median_cover_it_however_few_the_values() {
        let mut random = random(1);
        for kind in ["uniform", "normal", "lognormal", "exponential", "spikes"] {
            let many: Vec<f64> = (0..100_001).map(|_| noisy(kind, &mut random)).collect();
            let truth = median(&many).unwrap();
            for n in [2, 3, 4, 5, 6, 7, 8, 9, 12, 20, 31] {
                let mut covers = || {
                    let (low, high) = median_interval(&(0..n).map(|_| noisy(kind, &mut random)).collect::<Vec<_>>()).unwrap();
                    low <= truth && truth <= high
                };
                let covered = (0..10_000).filter(|_| covers()).count();
                // a share of 95 % of 10,000 is off by 44 once in 40 cases
                assert!(covered >= 9450, "{kind}, {n} values: covered {covered} of 10000");
            }
        }
        assert_eq!((median_interval(&[]), median_interval(&[1.0])), (None, None), "one says nothing of how it scatters");
    }

    #[test]
    fn intervals_between_two_values_are_never_too_narrow_nor_two_ranks_too_wide() {
        for n in LEAST_FOR_INTERVAL..=200 {
            let values: Vec<f64> = (0..n).map(|k| k as f64).collect();
            let (low, high) = median_interval(&values).unwrap();
            assert_eq!(low + high, (n - 1) as f64, "as many lie outside on either side");
            // the chance that so many or fewer of n are below the median
            let below = |most: f64| {
                let terms = (0..=most as usize).scan(0.5f64.powi(n as i32), |term, k| {
                    let now = *term;
                    *term *= (n - k) as f64 / (k + 1) as f64;
                    Some(now)
                });
                terms.sum::<f64>()
            };
            assert!(2.0 * below(low) <= 0.05 && 2.0 * below(low + 2.0) > 0.05, "{n}: {}", 2.0 * below(low));
        }
    }

    #[test]
    fn the_rank_sum_test_errs_as_often_as_it_says() {
        // three against three, all of them smaller: one case in twenty by chance
        assert!(is_less(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]));
        assert!(!is_less(&[1.0, 2.0, 5.0], &[4.0, 3.0, 6.0]));
        assert!(!is_less(&[1.0, 2.0], &[3.0, 4.0]) && !is_less(&[1.0; 9], &[1.0; 9]) && !is_less(&[], &[1.0]));
        let mut random = random(2);
        let mut draw = |shift: f64| (0..9).map(|_| random.random::<f64>() + shift).collect::<Vec<f64>>();
        let mut found = |shift| (0..2000).filter(|_| is_less(&draw(0.0), &draw(shift))).count();
        assert!((60..140).contains(&found(0.0)), "{} of 2000 are alike", found(0.0));
        assert!(found(0.7) > 1900, "{} of 2000 differ", found(0.7));
    }

    #[test]
    fn a_line_is_recovered_with_errors_that_grow_with_time() {
        let points: Vec<(f64, f64)> = (0..10).map(|k| (1000.0 * k as f64, 5e-5 + 8e-9 * 1000.0 * k as f64)).collect();
        let line = fit_line(&points).unwrap();
        assert!((line.intercept / 5e-5 - 1.0).abs() < 1e-9 && (line.slope / 8e-9 - 1.0).abs() < 1e-9);
        assert_eq!(fit_line(&[(1.0, 1.0)]), None);
        assert_eq!(fit_line(&[(1.0, 0.0), (2.0, 1.0)]), None);
    }

    #[test]
    fn interpolation_hits_the_points_and_never_goes_below_zero() {
        let (xs, ys) = ([0, 10, 20], [1.0, 2.0, 4.0]);
        assert_eq!(interpolate(&xs, &ys, 10), 2.0);
        assert_eq!(interpolate(&xs, &ys, 15), 3.0);
        assert_eq!(interpolate(&xs, &ys, 30), 6.0);
        assert_eq!(interpolate(&[10, 20], &[1.0, 9.0], 0), 0.0);
        assert_eq!(interpolate(&[], &[], 3), 0.0);
    }
}
