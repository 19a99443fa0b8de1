//! Grouping alike machines by the latencies between them: one method a file.

mod density;
mod eco;
mod linkage;
mod quality;

use crate::error::{Error, Result};
use crate::topology::{LatencyMatrix, Rank};

pub use quality::{GroupQuality, quality, quality_of};

/// What a grouping may be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Latencies within one group differ by at most this factor, in the sense of the method. 1.20 in ECO.
    pub ratio: f64,
    /// Latencies that differ by less than this are alike: a ratio of microseconds says more about the clock than about the
    /// network.
    pub floor_s: f64,
}

impl Default for Bound {
    fn default() -> Self {
        Bound { ratio: 1.20, floor_s: 1e-6 }
    }
}

impl Bound {
    /// The largest latency that is alike to another.
    pub fn limit(&self, latency: f64) -> f64 {
        (self.ratio * latency).max(latency + self.floor_s)
    }
}

/// A way to group.
#[derive(Debug)]
pub struct Method {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from.
    pub citation: &'static str,
    /// Groups ranks; each rank is in exactly one group.
    pub group: fn(&LatencyMatrix, Bound) -> Vec<Vec<Rank>>,
}

/// Every method; the first is the default.
pub const METHODS: &[&Method] = &[&eco::METHOD, &density::METHOD, &linkage::METHOD];

/// Finds a method by name.
///
/// # Errors
/// [`Error::Invalid`] with the names there are.
pub fn method(name: &str) -> Result<&'static Method> {
    METHODS.iter().copied().find(|m| m.name == name).ok_or_else(|| {
        let names: Vec<_> = METHODS.iter().map(|m| m.name).collect();
        Error::invalid(format!("find the grouping method \"{name}\": there are {}", names.join(", ")))
    })
}

/// Groups by label: ranks ascending within a group, groups in the order of their first ranks.
fn by_label(labels: &[usize]) -> Vec<Vec<Rank>> {
    let mut seen: Vec<usize> = Vec::new();
    let mut groups: Vec<Vec<Rank>> = Vec::new();
    for (rank, label) in labels.iter().enumerate() {
        match seen.iter().position(|s| s == label) {
            Some(k) => groups[k].push(rank),
            None => {
                seen.push(*label);
                groups.push(vec![rank]);
            }
        }
    }
    groups
}
