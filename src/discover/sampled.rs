//! Grouping more hosts than a full matrix can be measured for: some hosts found the groups, the others are probed against members of the
//! groups that their latencies so far leave possible, and what fits nowhere founds groups again.

use super::SITES_APART_S;
use crate::cluster::{Bound, Method};
use crate::error::Result;
use crate::stats::{self, median};
use crate::topology::{LatencyMatrix, pair_rounds};
use rand::Rng;
use rand::seq::SliceRandom;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// No host takes part in more probes, as long as another one can in its place.
const MOST_PROBES: usize = 20;
/// At the very end there is no limit; sums of it must not overflow.
const NO_LIMIT: usize = u32::MAX as usize;
/// So many hosts found groups at a time, by a full matrix among them: then they can still ask, and be asked, 9 times.
const FOUNDERS: usize = 12;
/// Of these, so many are kept for measuring how far groups are from each other.
const RESERVE: usize = 3;
/// A host that founds no group keeps so many to find its own.
const ASKS: usize = 6;
/// A group is ruled out by a latency that is so much over what is alike: with noise of a tenth, one in thousands is over by less.
const SLACK: f64 = 1.08;
/// So many that are alike found a group; two always look alike.
const LEAST_FOUNDERS: usize = 3;
/// So many hosts find the groups before all others are asked. A host may be as far from another group as that one's members are from each
/// other, and would join it for as long as its own group is not known.
const PIONEERS: usize = 256;
/// So often each of them is measured against another one of its group: who joined the wrong one is nearer to its own kind.
const CHECKS: usize = 6;
/// Groups that look like one are merged only if so many more pairs say so.
const MERGE_PROBES: usize = 5;
/// Where hosts are left that have few of their kind, so many are compared at a time.
const LAST_FOUNDERS: usize = 64;

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
    let mut search = Search { found: Sampled { probes: vec![0; n], ..Default::default() }, method, bound, measure, most: MOST_PROBES };
    let mut order: Vec<usize> = (0..n).collect();
    let mut random = stats::random(1);
    order.shuffle(&mut random);
    let others = order.split_off(n.min(PIONEERS));
    let mut left = search.settle(open(order))?;
    for (group, odd) in search.check(&mut random)?.into_iter().enumerate() {
        if odd.len() >= LEAST_FOUNDERS || search.is_unsure(group) {
            left.extend(search.divide(group, odd)?);
        }
    }
    left.extend(search.classify(open(others))?);
    let left = search.remeasure(left)?;
    let left = search.settle(left)?;
    let mut rest = search.remeasure(left)?;
    // where nobody could answer any more, what is known must do, or somebody must
    rest.retain_mut(|x| search.decide(x).map(|group| search.join(x, group)).is_none());
    while !rest.iter().all(|x| search.is_lost(x)) {
        search.most += 1;
        rest = search.classify(rest)?;
    }
    search.most = NO_LIMIT;
    // what is left has few of its kind: now two are a group
    while !rest.is_empty() {
        let founders: Vec<usize> = rest.drain(..rest.len().min(LAST_FOUNDERS)).map(|x| x.host).collect();
        let alone = search.found_groups(&founders, 2)?;
        rest = search.classify(rest)?;
        search.found.groups.extend(alone.into_iter().map(|host| vec![host]));
    }
    search.complete()?;
    search.merge()?;
    Ok(search.found.sorted())
}

struct Search<'a> {
    found: Sampled,
    method: &'a Method,
    bound: Bound,
    measure: Measure<'a>,
    /// Nobody takes part in more probes.
    most: usize,
}

/// A host whose group is not known yet, and its latencies to some groups.
struct Open {
    host: usize,
    seen: Vec<(usize, f64)>,
}

fn open(hosts: Vec<usize>) -> Vec<Open> {
    hosts.into_iter().map(|host| Open { host, seen: Vec::new() }).collect()
}

impl Search<'_> {
    /// Finds groups among hosts and puts the hosts into them, as long as enough of those that are left may be asked; gives the others.
    fn settle(&mut self, mut left: Vec<Open>) -> Result<Vec<Open>> {
        loop {
            left.sort_by_key(|x| self.found.probes[x.host]);
            let may_be = |k: &usize| self.found.probes[left[k - 1].host] + k - 1 + ASKS <= self.most;
            let Some(count) = (LEAST_FOUNDERS..=FOUNDERS.min(left.len())).rev().find(may_be) else { return Ok(left) };
            // the one that was probed least, and those that are most likely of its kind
            let able = left.partition_point(|x| self.found.probes[x.host] + count - 1 + ASKS <= self.most);
            let likely: Vec<isize> = left[..able].iter().map(|x| self.likeness(&left[0], x)).collect();
            let mut order: Vec<usize> = (1..able).collect();
            order.sort_by_key(|&k| Reverse(likely[k]));
            let mut chosen = [&[0], &order[..count - 1]].concat();
            chosen.sort_unstable_by_key(|&k| Reverse(k));
            let mut founders: Vec<Open> = chosen.into_iter().map(|k| left.remove(k)).collect();
            let alone = self.found_groups(&founders.iter().map(|x| x.host).collect::<Vec<_>>(), LEAST_FOUNDERS)?;
            founders.retain(|x| alone.contains(&x.host));
            left.extend(founders);
            self.complete()?;
            self.merge()?;
            left = self.classify(left)?;
        }
    }

    /// Lets hosts that fit no group ask anew: noise may have kept them out of theirs. Gives those that still fit none.
    fn remeasure(&mut self, mut left: Vec<Open>) -> Result<Vec<Open>> {
        left.iter_mut().filter(|x| self.is_lost(x)).for_each(|x| x.seen.clear());
        self.classify(left)
    }

    /// To how many groups two hosts are as far, less those to which they are not.
    fn likeness(&self, x: &Open, y: &Open) -> isize {
        let both = x.seen.iter().flat_map(|&(g, t)| y.seen.iter().filter(move |s| s.0 == g).map(move |s| (t, s.1)));
        both.map(|(t, u)| if self.alike(t, u) { 1 } else { -1 }).sum()
    }

    /// Measures the members of each group against each other, at random; gives those of each that are nearer to each other than the others.
    fn check(&mut self, random: &mut impl Rng) -> Result<Vec<BTreeSet<usize>>> {
        let mut odd = vec![BTreeSet::new(); self.found.groups.len()];
        for _ in 0..CHECKS {
            let mut pairs = Vec::new();
            for group in 0..odd.len() {
                let mut members = self.servers(group, ASKS);
                members.shuffle(random);
                pairs.extend(members.chunks_exact(2).map(|pair| (group, pair[0], pair[1])));
            }
            let times = self.round(&pairs.iter().map(|&(_, a, b)| (a, b)).collect::<Vec<_>>())?;
            for ((group, a, b), t) in pairs.into_iter().zip(times) {
                if self.expected(group, group).is_some_and(|e| t < e && !self.alike(e, t)) {
                    odd[group].extend([a, b]);
                }
            }
        }
        Ok(odd)
    }

    /// Is another group as far from this one as its members are from each other?
    fn is_unsure(&self, group: usize) -> bool {
        let far = |g| self.expected(group, g).zip(self.expected(group, group)).is_some_and(|(a, b)| self.alike(a, b));
        (0..self.found.groups.len()).any(|g| g != group && far(g))
    }

    /// Founds groups anew among hosts that were odd in theirs, and lets all others of it ask again; gives those that fit none.
    fn divide(&mut self, group: usize, odd: BTreeSet<usize>) -> Result<Vec<Open>> {
        let members = std::mem::take(&mut self.found.groups[group]);
        let inside = self.expected(group, group);
        let (odd, others): (Vec<usize>, Vec<usize>) = members.into_iter().partition(|h| odd.contains(h));
        let seen = |host| Open { host, seen: inside.map(|t| (group, t)).into_iter().collect() };
        let first = self.found.groups.len();
        let left = self.settle(odd.into_iter().map(seen).collect())?;
        for new in first..self.found.groups.len() {
            // no group of its own, after all
            if self.expected(new, new).zip(inside).is_some_and(|(a, b)| self.alike(a, b)) {
                let hosts = std::mem::take(&mut self.found.groups[new]);
                self.found.groups[group].extend(hosts);
            }
        }
        self.classify(others.into_iter().map(seen).chain(left).collect())
    }

    /// Measures one round.
    fn round(&mut self, pairs: &[(usize, usize)]) -> Result<Vec<f64>> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        self.found.rounds += 1;
        pairs.iter().for_each(|&(a, b)| {
            self.found.probes[a] += 1;
            self.found.probes[b] += 1;
        });
        (self.measure)(pairs)
    }

    /// Groups founders by all latencies among them; gives those that are fewer than `least`.
    fn found_groups(&mut self, founders: &[usize], least: usize) -> Result<Vec<usize>> {
        let n = founders.len();
        let mut rows = vec![vec![0.0; n]; n];
        for round in pair_rounds(n) {
            let pairs: Vec<(usize, usize)> = round.iter().map(|&(a, b)| (founders[a], founders[b])).collect();
            for (&(a, b), t) in round.iter().zip(self.round(&pairs)?) {
                (rows[a][b], rows[b][a]) = (t, t);
            }
        }
        let matrix = LatencyMatrix::from_pairs(n, "sampled", |i, j| rows[i][j]);
        let clusters = (self.method.group)(&matrix, self.bound);
        // three sites that are equally far from each other look alike: such groups have to wait
        let near = |c: &[usize]| median(&matrix.between(c, c)).is_none_or(|t| t <= SITES_APART_S);
        let is_group = |c: &Vec<usize>| c.len() >= least && (least < LEAST_FOUNDERS || near(c));
        let (groups, alone): (Vec<Vec<usize>>, Vec<Vec<usize>>) = clusters.into_iter().partition(is_group);
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
    fn classify(&mut self, mut open: Vec<Open>) -> Result<Vec<Open>> {
        let mut nowhere = Vec::new();
        while !open.is_empty() && !self.found.groups.is_empty() {
            let (mut busy, mut wave): (Vec<usize>, Vec<(usize, usize, usize)>) = (vec![0; self.found.groups.len()], Vec::new());
            let servers: Vec<Vec<usize>> = (0..self.found.groups.len()).map(|g| self.servers(g, RESERVE)).collect();
            let mut spare: Vec<usize> = servers.iter().map(|all| all.iter().map(|h| self.most - self.found.probes[*h]).sum()).collect();
            let mut waiting = Vec::new();
            for mut x in open {
                let Some(group) = self.next_group(&x, &spare) else {
                    match self.decide(&x) {
                        Some(group) => self.join(&mut x, group),
                        None => nowhere.push(x),
                    }
                    continue;
                };
                let server = servers[group].get(busy[group]).filter(|_| self.found.probes[x.host] < self.most);
                if let Some(&server) = server {
                    busy[group] += 1;
                    spare[group] -= 1;
                    wave.push((waiting.len(), group, server));
                }
                waiting.push(x);
            }
            let pairs: Vec<(usize, usize)> = wave.iter().map(|&(k, _, server)| (waiting[k].host, server)).collect();
            if pairs.is_empty() {
                open = waiting;
                break;
            }
            for (&(k, group, _), t) in wave.iter().zip(self.round(&pairs)?) {
                waiting[k].seen.push((group, t));
            }
            open = waiting;
        }
        nowhere.extend(open);
        Ok(nowhere)
    }

    /// The members of a group that may be asked more than `reserve` times, those that were asked least first.
    fn servers(&self, group: usize, reserve: usize) -> Vec<usize> {
        let mut members = self.found.groups[group].clone();
        members.sort_by_key(|&h| (self.found.probes[h], h));
        members.retain(|&h| self.found.probes[h] + reserve < self.most);
        members
    }

    /// The next group to probe a host against: of those that its latencies leave possible, the one that can answer most often.
    fn next_group(&self, x: &Open, spare: &[usize]) -> Option<usize> {
        let is_new = |g: usize| !self.found.groups[g].is_empty() && x.seen.iter().all(|s| s.0 != g);
        (0..self.found.groups.len()).filter(|&g| is_new(g) && self.fits(x, g)).max_by_key(|&g| (spare[g], Reverse(g)))
    }

    /// May a host be in a group? It is about as far from all groups that it asked as the group's members are.
    fn fits(&self, x: &Open, group: usize) -> bool {
        let about = |a: f64, b: f64| SLACK * self.bound.limit(a.min(b)) >= a.max(b);
        x.seen.iter().all(|&(g, t)| self.expected(group, g).is_none_or(|e| about(e, t)))
    }

    /// Is a host in none of the groups?
    fn is_lost(&self, x: &Open) -> bool {
        self.next_group(x, &vec![0; self.found.groups.len()]).is_none()
    }

    /// The group that a host is in, once no other is possible: the nearest of those whose members are as far from it as from each other.
    fn decide(&self, x: &Open) -> Option<usize> {
        let is_alike = |g, t| self.expected(g, g).is_some_and(|e| self.alike(e, t));
        let fitting = x.seen.iter().filter(|&&(g, t)| is_alike(g, t) && self.fits(x, g));
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
            let ask = |&(a, b): &(usize, usize)| Some(((a, b), (*self.servers(a, 0).first()?, *self.servers(b, 0).first()?)));
            let (between, pairs): (Vec<_>, Vec<_>) = open.iter().filter_map(ask).unzip();
            for (&(a, b), t) in between.iter().zip(self.round(&pairs)?) {
                self.found.latencies.entry((a.min(b), a.max(b))).or_default().push(t);
            }
        }
        Ok(())
    }

    /// Merges groups that are as far from each other as their members are: noise kept some hosts out of theirs, and they founded another.
    fn merge(&mut self) -> Result<()> {
        let n = self.found.groups.len();
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            if !self.are_one(a, b) {
                continue;
            }
            let pairs: Vec<(usize, usize)> = self.servers(a, 0).into_iter().zip(self.servers(b, 0)).take(MERGE_PROBES).collect();
            let again = self.round(&pairs)?;
            self.found.latencies.entry((a, b)).or_default().extend(again);
            if self.are_one(a, b) {
                let hosts = std::mem::take(&mut self.found.groups[b]);
                self.found.groups[a].extend(hosts);
            }
        }
        Ok(())
    }

    /// Are two groups as far from each other as inside? A host alone has no inside.
    fn are_one(&self, a: usize, b: usize) -> bool {
        let inside: Vec<f64> = [a, b].iter().filter_map(|&g| self.expected(g, g)).collect();
        let Some(between) = self.expected(a, b) else { return false };
        !inside.is_empty() && [a, b].iter().all(|&g| !self.found.groups[g].is_empty()) && inside.iter().all(|&t| self.alike(t, between))
    }
}

impl Sampled {
    /// Hosts ascending, groups in the order of their first hosts.
    fn sorted(mut self) -> Sampled {
        self.groups.iter_mut().for_each(|g| g.sort_unstable());
        // a group that was divided may have nobody left
        let mut order: Vec<usize> = (0..self.groups.len()).filter(|&g| !self.groups[g].is_empty()).collect();
        order.sort_by_key(|&g| self.groups[g][0]);
        let place = |g: usize| order.iter().position(|&o| o == g);
        let renamed = |((a, b), t)| Some((place(a)?, place(b)?)).map(|(a, b)| ((a.min(b), a.max(b)), t));
        let latencies = self.latencies.into_iter().filter_map(renamed).collect();
        let groups = order.iter().map(|&g| std::mem::take(&mut self.groups[g])).collect();
        Sampled { groups, latencies, probes: self.probes, rounds: self.rounds }
    }

    /// The latencies between two groups, or inside one.
    pub fn between(&self, a: usize, b: usize) -> &[f64] {
        self.latencies.get(&(a.min(b), a.max(b))).map_or(&[], Vec::as_slice)
    }
}
