//! The processors of a group whose hosts differ, by the model that tells them from the network.

use super::{Fitted, LMO, TABLES, Table, Values};
use crate::error::Result;
use crate::stats::median;
use crate::topology::{Link, Rank};
use std::collections::BTreeMap;

/// The pair of positions that models of one pair are fitted on.
pub const PAIR: Link = Link { from: 0, to: 1 };

/// Processors of a group differ where the slowest takes surely so many times as long for a message as the fastest: who knows of 1.3 times already chooses better.
const UNLIKE: f64 = 1.25;

/// Estimates are uncertain by so many times half their intervals of 95 %, 2.9 standard errors: of twenty that are alike the lowest and the highest are 5 standard
/// errors apart by chance in one of twenty groups, and this allows for 5.9.
const SURELY: f64 = 1.5;

/// The difference must be at least this share of what an empty message takes: where processors are hardly a part of that, it decides nothing.
const MATTERS: f64 = 0.1;

/// What a message costs the processor of each position.
#[derive(Debug, Clone, PartialEq)]
pub struct Processors {
    /// C_i, s, and t_i, s/B.
    each: Vec<(f64, f64)>,
    /// For positions that were not there when it was fitted.
    typical: (f64, f64),
    /// s/B.
    inverse_bandwidth: f64,
}

impl Processors {
    /// Those of a group whose processors differ for sure, by its models and the host of each position: by more than what was measured of them is uncertain by.
    /// None where LMO has not all its parameters: whoever asks for its costs is told.
    pub fn unlike(models: &[Fitted], hosts: &[usize]) -> Option<Processors> {
        let lmo = models.iter().find(|m| m.model == LMO.name)?;
        let fixed = lmo.tables.get("C")?;
        let values = lmo.values();
        let own = Processors::new(&values).ok()?;
        let empty = values.get("L").ok()? + 2.0 * own.typical.0;
        let (least, most) = extremes(fixed, hosts)?;
        (most > UNLIKE * least && most - least > MATTERS * empty).then_some(own)
    }

    /// By the parameters of LMO.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::error::Error::Invalid) if one is missing.
    pub fn new(values: &Values) -> Result<Processors> {
        let (fixed, per_byte) = (values.list("C")?, values.list("t")?);
        let typical = (fixed.iter().sum::<f64>() / fixed.len() as f64, per_byte.iter().sum::<f64>() / per_byte.len() as f64);
        let each = fixed.iter().copied().zip(per_byte.iter().copied()).collect();
        Ok(Processors { each, typical, inverse_bandwidth: values.get("inverse_b")? })
    }

    /// Seconds that a message keeps the processor of a position.
    pub fn seconds(&self, position: Rank, bytes: usize) -> f64 {
        let (fixed, per_byte) = self.each.get(position).copied().unwrap_or(self.typical);
        fixed + per_byte * bytes as f64
    }

    /// Seconds that the bytes of a message are on the network.
    pub fn port(&self, bytes: usize) -> f64 {
        self.inverse_bandwidth * bytes as f64
    }
}

/// What the fastest host's processors take at most and the slowest's at least, each by the median of its positions: processors of one host are taken to be
/// alike. An interval of few runs may be narrow by chance, above all where an estimate fell below 0 and was taken as 0: the typical one, and what positions
/// of one host typically differ by, are the least that each estimate is uncertain by.
fn extremes(fixed: &Table, hosts: &[usize]) -> Option<(f64, f64)> {
    let estimates =
        fixed.value.iter().zip(fixed.low.iter().zip(&fixed.high)).map(|(&value, (low, high))| [value, value - low, high - value]);
    let mut by_host: BTreeMap<usize, Vec<[f64; 3]>> = BTreeMap::new();
    hosts.iter().zip(estimates).for_each(|(&host, estimate)| by_host.entry(host).or_default().push(estimate));
    let middle = |of: &[[f64; 3]], k: usize| median(&of.iter().map(|estimate| estimate[k]).collect::<Vec<_>>());
    let half_intervals: Vec<f64> = by_host.values().flatten().map(|[_, below, above]| (below + above) / 2.0).collect();
    let half_range = |of: &Vec<[f64; 3]>| {
        let (least, most) = of.iter().fold((f64::INFINITY, 0.0), |(least, most), e| (f64::min(least, e[0]), f64::max(most, e[0])));
        (most - least) / 2.0
    };
    let half_ranges: Vec<f64> = by_host.values().filter(|of| of.len() > 1).map(half_range).collect();
    let typical = median(&half_intervals)?.max(median(&half_ranges).unwrap_or(0.0));
    by_host.values().try_fold((f64::INFINITY, 0.0), |(least, most), of| {
        let (value, below, above) = (middle(of, 0)?, middle(of, 1)?.max(typical), middle(of, 2)?.max(typical));
        Some((f64::min(least, value + SURELY * above), f64::max(most, value - SURELY * below)))
    })
}

impl Fitted {
    /// True if its costs hold what the processors of a pair take, measured apart: then another position's can take their place.
    pub(super) fn has_processors_of_its_pair(&self) -> bool {
        self.model == TABLES.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(value: &[f64], half: &[f64]) -> Table {
        let with = |sign: f64| value.iter().zip(half).map(|(v, h)| (v + sign * h).max(0.0)).collect();
        Table { value: value.to_vec(), low: with(-1.0), high: with(1.0) }
    }

    fn is_unlike(fixed: &Table, hosts: &[usize]) -> bool {
        extremes(fixed, hosts).is_some_and(|(least, most)| most > UNLIKE * least)
    }

    #[test]
    fn processors_differ_by_more_than_what_was_measured_of_them_is_uncertain_by() {
        let each: Vec<usize> = (0..6).collect();
        let far = [10e-6, 20e-6, 40e-6, 80e-6, 10e-6, 40e-6];
        assert!(is_unlike(&table(&far, &[0.0; 6]), &each) && is_unlike(&table(&far, &[5e-6; 6]), &each));
        assert!(!is_unlike(&table(&far, &[25e-6; 6]), &each), "it is known too little");
        assert!(!is_unlike(&table(&[30e-6; 6], &[0.0; 6]), &each));
        let one_slower = [20e-6, 20e-6, 20e-6, 26e-6, 20e-6, 20e-6];
        assert!(is_unlike(&table(&one_slower, &[0.2e-6; 6]), &each) && !is_unlike(&table(&one_slower, &[1e-6; 6]), &each));
        // measured on one busy host: an estimate that fell below 0 has no interval
        let noisy = table(&[0.0, 52e-6, 95e-6, 159e-6, 82e-6, 171e-6], &[0.0, 47e-6, 74e-6, 92e-6, 80e-6, 82e-6]);
        assert!(!is_unlike(&noisy, &each) && !is_unlike(&noisy, &[0; 6]));
        // what ranks of one host differ by is noise, and hosts are compared
        let two_each = table(&[10e-6, 80e-6, 20e-6, 90e-6], &[1e-6; 4]);
        assert!(is_unlike(&two_each, &[0, 1, 0, 1]) && !is_unlike(&two_each, &[0, 0, 1, 1]));
        assert_eq!(extremes(&table(&[], &[]), &[0]), None);
    }
}
