//! Grouping more hosts than a full matrix can be measured for: some hosts found the groups, the others are probed against members of the
//! groups that their latencies so far leave possible, and what fits nowhere founds groups again.

use crate::cluster::{Bound, Method};
use crate::error::Result;
use crate::stats::{self, median};
use crate::topology::{LatencyMatrix, pair_rounds};
use rand::Rng;
use std::collections::BTreeMap;

/// So many hosts found groups at a time, by a full matrix among them. Enough that a group of a tenth of all hosts is founded before others
/// join: a host may be as far from the next group as that one's members are from each other.
const FOUNDERS: usize = 64;
/// A host that did not found a group answers to so many probes, as long as another one of its group can.
const MOST_PROBES: usize = 20;
/// So many that are alike found a group; two always look alike.
const LEAST_FOUNDERS: usize = 3;
/// A host that was twice among founders and alike to none waits for the others to find their groups.
const MOST_TRIALS: usize = 2;

/// Measures the latencies of pairs of which no two share a host.
pub type Measure<'a> = &'a mut dyn FnMut(&[(usize, usize)]) -> Result<Vec<f64>>;

/// What sampling finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// The groups.
    pub groups: Vec<Vec<usize>>,
    /// The latencies that were measured, by pair of groups (the lower one first).
    pub latencies: BTreeMap<(usize, usize), Vec<f64>>,
    /// How many probes each host took part in.
    pub probes: Vec<usize>,
    /// Rounds of disjoint pairs.
    pub rounds: usize,
}

/// Groups `n` hosts.
///
/// # Errors
/// Those of `measure`.
pub fn sampled(n: usize, method: &Method, bound: Bound, measure: Measure) -> Result<Sampled> {
    let mut search = Search { found: Sampled { probes: vec![0; n], ..Default::default() }, bound, measure };
    let mut left: Vec<usize> = (0..n).collect();
    let mut random = stats::random(1);
    (1..n).rev().for_each(|k| left.swap(k, random.random_range(0..=k)));
    let (mut trials, mut rest) = (vec![0; n], Vec::new());
    while !left.is_empty() {
        let founders: Vec<usize> = left.drain(..left.len().min(FOUNDERS)).collect();
        let alone = search.found_groups(&founders, method, LEAST_FOUNDERS)?;
        left = search.classify(left)?;
        for host in search.classify(alone)? {
            trials[host] += 1;
            if trials[host] < MOST_TRIALS && !left.is_empty() { left.push(host) } else { rest.push(host) }
        }
    }
    // what is left has few of its kind: now two are a group
    while !rest.is_empty() {
        let founders: Vec<usize> = rest.drain(..rest.len().min(FOUNDERS)).collect();
        let alone = search.found_groups(&founders, method, 2)?;
        rest = search.classify(rest)?;
        search.found.groups.extend(alone.into_iter().map(|host| vec![host]));
    }
    search.complete()?;
    Ok(search.found.sorted())
}

struct Search<'a> {
    found: Sampled,
    bound: Bound,
    measure: Measure<'a>,
}

/// A host whose group is not known yet, and its latencies to some groups.
struct Open {
    host: usize,
    seen: Vec<(usize, f64)>,
}

impl Search<'_> {
    /// Measures one round.
    fn round(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<f64>> {
        self.found.rounds += 1;
        pairs.iter().for_each(|&(a, b)| {
            self.found.probes[a] += 1;
            self.found.probes[b] += 1;
        });
        (self.measure)(pairs)
    }

    /// Groups founders by all latencies among them; gives those that are fewer than `least`.
    fn found_groups(&mut self, founders: &[usize], method: &Method, least: usize) -> Result<Vec<usize>> {
        let n = founders.len();
        let mut rows = vec![vec![0.0; n]; n];
        for round in pair_rounds(n) {
            let pairs: Vec<(usize, usize)> = round.iter().map(|&(a, b)| (founders[a], founders[b])).collect();
            for (&(a, b), t) in round.iter().zip(self.round(&pairs)?) {
                (rows[a][b], rows[b][a]) = (t, t);
            }
        }
        let matrix = LatencyMatrix::from_pairs(n, "sampled", |i, j| rows[i][j]);
        let clusters = (method.group)(&matrix, self.bound);
        let (groups, alone): (Vec<Vec<usize>>, Vec<Vec<usize>>) = clusters.into_iter().partition(|c| c.len() >= least);
        let first = self.found.groups.len();
        for (k, group) in groups.iter().enumerate() {
            for (j, other) in groups.iter().enumerate().take(k + 1) {
                self.found.latencies.entry((first + j, first + k)).or_default().extend(matrix.between(other, group));
            }
            self.found.groups.push(group.iter().map(|&h| founders[h]).collect());
        }
        Ok(alone.concat().into_iter().map(|h| founders[h]).collect())
    }

    /// Finds the groups of hosts by probes; gives those that fit none.
    fn classify(&mut self, hosts: Vec<usize>) -> Result<Vec<usize>> {
        let mut open: Vec<Open> = hosts.into_iter().map(|host| Open { host, seen: Vec::new() }).collect();
        let mut nowhere = Vec::new();
        let mut most = MOST_PROBES;
        while !open.is_empty() && !self.found.groups.is_empty() {
            let (mut busy, mut wave): (Vec<usize>, Vec<(usize, usize, usize)>) = (vec![0; self.found.groups.len()], Vec::new());
            let servers: Vec<Vec<usize>> = (0..self.found.groups.len()).map(|g| self.servers(g, most)).collect();
            let mut waiting = Vec::new();
            for (k, mut x) in open.into_iter().enumerate() {
                let Some(group) = self.next_group(&x, k) else {
                    match self.decide(&x) {
                        Some(group) => self.join(&mut x, group),
                        None => nowhere.push(x.host),
                    }
                    continue;
                };
                if let Some(&server) = servers[group].get(busy[group]) {
                    busy[group] += 1;
                    wave.push((waiting.len(), group, server));
                }
                waiting.push(x);
            }
            let pairs: Vec<(usize, usize)> = wave.iter().map(|&(k, _, server)| (waiting[k].host, server)).collect();
            // where nobody may be asked any more, somebody must
            most = if pairs.is_empty() { usize::MAX } else { MOST_PROBES };
            if !pairs.is_empty() {
                for (&(k, group, _), t) in wave.iter().zip(self.round(&pairs)?) {
                    waiting[k].seen.push((group, t));
                }
            }
            open = waiting;
        }
        nowhere.extend(open.into_iter().map(|x| x.host));
        Ok(nowhere)
    }

    /// The members of a group that were asked less than `most` times, those that were asked least first.
    fn servers(&self, group: usize, most: usize) -> Vec<usize> {
        let mut members = self.found.groups[group].clone();
        members.sort_by_key(|&h| (self.found.probes[h], h));
        members.retain(|&h| self.found.probes[h] < most);
        members
    }

    /// The next group to probe a host against: any at first, then those that its latencies leave possible.
    fn next_group(&self, x: &Open, k: usize) -> Option<usize> {
        if x.seen.is_empty() {
            // in proportion to their sizes, so that all members have as much to answer
            let total: usize = self.found.groups.iter().map(Vec::len).sum();
            let mut place = k % total;
            return self.found.groups.iter().position(|g| {
                let here = place < g.len();
                place = place.saturating_sub(g.len());
                here
            });
        }
        let fits = |g: usize| x.seen.iter().all(|&(h, t)| self.expected(g, h).is_none_or(|e| self.alike(e, t)));
        (0..self.found.groups.len()).find(|&g| x.seen.iter().all(|s| s.0 != g) && fits(g))
    }

    /// The group that a host is in, once no other is possible: the nearest of those whose members are as far from it as from each other.
    fn decide(&self, x: &Open) -> Option<usize> {
        let fitting = x.seen.iter().filter(|&&(g, t)| self.expected(g, g).is_some_and(|e| self.alike(e, t)));
        fitting.min_by(|a, b| a.1.total_cmp(&b.1)).map(|s| s.0)
    }

    fn join(&mut self, x: &mut Open, group: usize) {
        self.found.groups[group].push(x.host);
        for &(g, t) in &x.seen {
            self.found.latencies.entry((g.min(group), g.max(group))).or_default().push(t);
        }
    }

    /// The latency between two groups, or inside one, as far as known.
    fn expected(&self, a: usize, b: usize) -> Option<f64> {
        self.found.latencies.get(&(a.min(b), a.max(b))).and_then(|all| median(&all[..all.len().min(31)]))
    }

    fn alike(&self, a: f64, b: f64) -> bool {
        self.bound.limit(a.min(b)) >= a.max(b)
    }

    /// Measures what is not known between groups, one pair each.
    fn complete(&mut self) -> Result<()> {
        for round in pair_rounds(self.found.groups.len()) {
            let open: Vec<(usize, usize)> = round.into_iter().filter(|&(a, b)| self.expected(a, b).is_none()).collect();
            let pairs: Vec<(usize, usize)> =
                open.iter().map(|&(a, b)| (self.servers(a, usize::MAX)[0], self.servers(b, usize::MAX)[0])).collect();
            if pairs.is_empty() {
                continue;
            }
            for (&(a, b), t) in open.iter().zip(self.round(&pairs)?) {
                self.found.latencies.entry((a.min(b), a.max(b))).or_default().push(t);
            }
        }
        Ok(())
    }
}

impl Sampled {
    /// Hosts ascending, groups in the order of their first hosts.
    fn sorted(mut self) -> Sampled {
        self.groups.iter_mut().for_each(|g| g.sort_unstable());
        let mut order: Vec<usize> = (0..self.groups.len()).collect();
        order.sort_by_key(|&g| self.groups[g][0]);
        let place = |g: usize| order.iter().position(|&o| o == g).unwrap_or(g);
        let latencies = self.latencies.into_iter().map(|((a, b), t)| ((place(a).min(place(b)), place(a).max(place(b))), t)).collect();
        let groups = order.iter().map(|&g| std::mem::take(&mut self.groups[g])).collect();
        Sampled { groups, latencies, probes: self.probes, rounds: self.rounds }
    }

    /// The latencies between two groups, or inside one.
    pub fn between(&self, a: usize, b: usize) -> &[f64] {
        self.latencies.get(&(a.min(b), a.max(b))).map_or(&[], Vec::as_slice)
    }
}
