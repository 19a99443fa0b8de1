//! The latency between any two hosts of a platform, from the samples where they have it and from the policy elsewhere, in tiles where hosts are many.

use super::picture::Merge;
use crate::error::Result;
use crate::measure::{Experiment, Samples, Settings};
use crate::plan::members;
use crate::policy::Policy;
use crate::stats;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// More hosts than these are shown in tiles: a screen has no room for more rows, and a page none for a million cells.
const MOST_ROWS: usize = super::drawn::MOST_ROWS;

/// Hosts of one group that are one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// The host's name, or the first and the last one's.
    pub name: String,
    /// Which of the policy's groups they are in; of several, the first.
    pub group: usize,
    /// How many hosts.
    pub hosts: usize,
}

/// A matrix of latencies.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Its rows.
    pub tiles: Vec<Tile>,
    /// The policy's groups and how many rows each has, in the order of rows. Where groups are more than rows it is empty.
    pub groups: Vec<(usize, usize)>,
    /// Seconds: the median of what was measured, or else what the policy says; `None` inside a host, and where nobody knows.
    pub seconds: Vec<Vec<Option<f64>>>,
    /// The share of pairs that were measured; `None` where there is no pair.
    pub measured: Vec<Vec<Option<f64>>>,
    /// All groups, so that those near each other are neighbours.
    pub order: Vec<usize>,
    /// What joins the rows: first those of a group, then groups.
    pub merges: Vec<Merge>,
    /// Pairs of hosts that were measured, and all.
    pub pairs: (usize, usize),
    /// What was measured between two of the policy's groups, the lower one first, and inside each.
    pub between: BTreeMap<(usize, usize), Vec<f64>>,
}

/// A host: its group, and its place among the hosts of that.
type Host = (usize, usize);

impl Latencies {
    /// Of a policy's hosts.
    ///
    /// # Errors
    /// The samples are of other hosts.
    pub fn of(policy: &Policy, samples: Option<(&Settings, &Samples)>) -> Result<Latencies> {
        let hosts = hosts(policy);
        let measured = measured(policy, &hosts, samples)?;
        let order = order_of_groups(policy);
        let tiles = tiles(&hosts, &order);
        let mut found = Latencies { pairs: (measured.len(), pairs(hosts.iter().map(Vec::len).sum())), ..Latencies::default() };
        for (&((a, _), (b, _)), &t) in &measured {
            found.between.entry((a, b)).or_default().push(t);
        }
        // in whatever order they were found
        found.between.values_mut().for_each(|all| all.sort_by(f64::total_cmp));
        found.fill(policy, &hosts, &measured, tiles);
        found.join(&order);
        found.order = order.groups;
        Ok(found)
    }

    /// The latencies of rows, each of some hosts.
    fn fill(&mut self, policy: &Policy, names: &[Vec<&str>], measured: &FxHashMap<(Host, Host), f64>, tiles: Vec<Vec<Host>>) {
        let known = Known::new(policy);
        let row: FxHashMap<Host, usize> = tiles.iter().enumerate().flat_map(|(k, all)| all.iter().map(move |&host| (host, k))).collect();
        let mut cells: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for (&(a, b), &t) in measured {
            let (i, j) = (row[&a].min(row[&b]), row[&a].max(row[&b]));
            cells.entry((i, j)).or_default().push(t);
        }
        let n = tiles.len();
        (self.seconds, self.measured) = (vec![vec![None; n]; n], vec![vec![None; n]; n]);
        for i in 0..n {
            for j in i..n {
                let all = if i == j { pairs(tiles[i].len()) } else { tiles[i].len() * tiles[j].len() };
                let cell = cells.get(&(i, j));
                let seconds = cell.and_then(|all| stats::median(all)).or_else(|| known.seconds(tiles[i][0].0, tiles[j][0].0));
                let share = cell.map_or(0.0, |cell| cell.len() as f64 / all.max(1) as f64);
                let some = all > 0;
                (self.seconds[i][j], self.seconds[j][i]) = (seconds.filter(|_| some), seconds.filter(|_| some));
                (self.measured[i][j], self.measured[j][i]) = (some.then_some(share), some.then_some(share));
            }
        }
        self.tiles = tiles.iter().map(|hosts| tile(names, hosts)).collect();
        let by_group: Vec<usize> = self.tiles.iter().map(|t| t.group).collect();
        if tiles.iter().all(|hosts| hosts.iter().all(|host| host.0 == hosts[0].0)) {
            self.groups = by_group.chunk_by(|a, b| a == b).map(|rows| (rows[0], rows.len())).collect();
        }
    }

    /// The dendrogram: the rows of each group among each other, in an order in which its lines do not cross, then the groups.
    fn join(&mut self, order: &Order) {
        let mut first = 0;
        let (mut rows, mut inside): (Vec<usize>, Vec<Vec<Merge>>) = (Vec::new(), Vec::new());
        for &(_, count) in &self.groups {
            let (leaves, merges) = linked(count, |i, j| self.seconds[first + i][first + j].unwrap_or(0.0));
            rows.extend(leaves.iter().map(|k| first + k));
            inside.push(merges);
            first += count;
        }
        if rows.len() != self.tiles.len() {
            return;
        }
        let sorted = |matrix: &Vec<Vec<Option<f64>>>| rows.iter().map(|&i| rows.iter().map(|&j| matrix[i][j]).collect()).collect();
        (self.seconds, self.measured) = (sorted(&self.seconds), sorted(&self.measured));
        self.tiles = rows.iter().map(|&k| self.tiles[k].clone()).collect();
        let (n, mut first, mut roots) = (self.tiles.len(), 0, Vec::new());
        for (merges, &(_, count)) in inside.iter().zip(&self.groups) {
            let (base, offset) = (n + self.merges.len(), first);
            let node = |k: usize| if k < count { offset + k } else { base + k - count };
            self.merges.extend(merges.iter().map(|m| Merge { left: node(m.left), right: node(m.right), ..*m }));
            roots.push(if merges.is_empty() { first } else { n + self.merges.len() - 1 });
            first += count;
        }
        let base = n + self.merges.len();
        let node = |k: usize| if k < roots.len() { roots[k] } else { base + k - roots.len() };
        let over: Vec<Merge> = order.merges.iter().map(|m| Merge { left: node(m.left), right: node(m.right), ..*m }).collect();
        self.merges.extend(over);
    }
}

/// Pairs among so many.
fn pairs(n: usize) -> usize {
    n * n.saturating_sub(1) / 2
}

/// Hosts by group, each once.
fn hosts(policy: &Policy) -> Vec<Vec<&str>> {
    let each_once = |all| {
        let mut seen = FxHashSet::default();
        std::iter::Iterator::filter(<[String]>::iter(all).map(String::as_str), |host| seen.insert(*host)).collect()
    };
    policy.groups.iter().map(|g| each_once(&g.hosts)).collect()
}

/// Medians of what was measured between two hosts, half a round trip.
fn measured(policy: &Policy, hosts: &[Vec<&str>], samples: Option<(&Settings, &Samples)>) -> Result<FxHashMap<(Host, Host), f64>> {
    let Some((settings, samples)) = samples else { return Ok(FxHashMap::default()) };
    let members = members(policy, &settings.hosts)?;
    let places: FxHashMap<(usize, &str), usize> =
        hosts.iter().enumerate().flat_map(|(g, all)| all.iter().enumerate().map(move |(k, host)| ((g, *host), k))).collect();
    let place = |rank: usize| -> Option<Host> {
        let m = members.get(rank)?;
        let host = policy.groups[m.group].hosts.get(m.position)?;
        Some((m.group, *places.get(&(m.group, host.as_str()))?))
    };
    let of = |sample: &crate::measure::Sample| {
        let Experiment::RoundTrip { a, b, out: 0, back: 0 } = sample.experiment else { return None };
        let (a, b) = (place(a)?, place(b)?);
        Some(((a.min(b), a.max(b)), stats::median(&sample.seconds)? / 2.0)).filter(|_| a != b)
    };
    // several ranks of a host, or several samples
    let mut all: FxHashMap<(Host, Host), Vec<f64>> = FxHashMap::default();
    samples.iter().filter_map(of).for_each(|(pair, seconds)| all.entry(pair).or_default().push(seconds));
    Ok(all.into_iter().filter_map(|(pair, seconds)| Some((pair, stats::median(&seconds)?))).collect())
}

/// What the policy says of latencies.
struct Known<'a> {
    policy: &'a Policy,
    links: FxHashMap<(&'a str, &'a str), &'a crate::policy::LinkPolicy>,
}

impl<'a> Known<'a> {
    fn new(policy: &'a Policy) -> Known<'a> {
        Known { policy, links: policy.links_by_names() }
    }

    fn seconds(&self, a: usize, b: usize) -> Option<f64> {
        let groups = &self.policy.groups;
        if a == b {
            return groups[a].latency_s;
        }
        self.links.get(&(groups[a].name.as_str(), groups[b].name.as_str())).map(|link| link.latency_s)
    }
}

/// Groups so that those near each other are neighbours.
struct Order {
    groups: Vec<usize>,
    /// What joins them, by their place in the order.
    merges: Vec<Merge>,
}

fn order_of_groups(policy: &Policy) -> Order {
    let known = Known::new(policy);
    let far = policy.links.iter().map(|l| l.latency_s).fold(0.0, f64::max);
    let (groups, merges) = linked(policy.groups.len(), |a, b| known.seconds(a, b).unwrap_or(far));
    Order { groups, merges }
}

/// Complete linkage: the leaves in an order in which its lines do not cross, and what joins them, by their place in that order.
fn linked(n: usize, distance: impl Fn(usize, usize) -> f64) -> (Vec<usize>, Vec<Merge>) {
    if n < 2 {
        return ((0..n).collect(), Vec::new());
    }
    let mut condensed: Vec<f64> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| distance(i, j)).collect();
    let dendrogram = kodama::linkage(&mut condensed, n, kodama::Method::Complete);
    let steps = dendrogram.steps();
    // the first leaf below a node comes first
    let mut first: Vec<usize> = (0..n).collect();
    steps.iter().for_each(|s| first.push(first[s.cluster1].min(first[s.cluster2])));
    let (mut leaves, mut stack) = (Vec::new(), vec![2 * n - 2]);
    while let Some(node) = stack.pop() {
        match node.checked_sub(n) {
            None => leaves.push(node),
            Some(step) => {
                let (a, b) = (steps[step].cluster1, steps[step].cluster2);
                stack.extend(if first[a] < first[b] { [b, a] } else { [a, b] });
            }
        }
    }
    let mut place = vec![0; n];
    leaves.iter().enumerate().for_each(|(at, &leaf)| place[leaf] = at);
    let node = |k: usize| if k < n { place[k] } else { k };
    let merges = steps.iter().map(|s| Merge { left: node(s.cluster1), right: node(s.cluster2), height: s.dissimilarity }).collect();
    (leaves, merges)
}

/// The hosts of each row. Rows are of one group, unless groups are more than rows.
fn tiles(hosts: &[Vec<&str>], order: &Order) -> Vec<Vec<Host>> {
    let all = |group: usize| (0..hosts[group].len()).map(move |k| (group, k)).collect::<Vec<Host>>();
    let step = hosts.iter().map(Vec::len).sum::<usize>().div_ceil(MOST_ROWS).max(1);
    if hosts.len() > MOST_ROWS {
        let flat: Vec<Host> = order.groups.iter().flat_map(|&g| all(g)).collect();
        return flat.chunks(step).map(<[Host]>::to_vec).collect();
    }
    order.groups.iter().flat_map(|&g| all(g).chunks(step).map(<[Host]>::to_vec).collect::<Vec<_>>()).collect()
}

fn tile(names: &[Vec<&str>], hosts: &[Host]) -> Tile {
    let name = |&(group, at): &Host| names[group][at];
    let (first, last) = (name(&hosts[0]), name(&hosts[hosts.len() - 1]));
    Tile { name: if hosts.len() == 1 { first.into() } else { format!("{first} to {last}") }, group: hosts[0].0, hosts: hosts.len() }
}
