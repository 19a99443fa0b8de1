//! Grouping more hosts than a full matrix can be measured for: hosts that look alike are compared with each other and found groups, the
//! others are probed against members of the groups that their latencies so far leave possible, and what fits nowhere founds groups again.

use super::asking::{Measure, Search, Servers};
use super::evidence::{DEVIATIONS, Evidence, FEW_PROBES, Mark, SURE, Step, Usual};
use crate::cluster::{Bound, Method};
use crate::error::Result;
use crate::stats::{self, median};
use crate::topology::{FAR_S, LatencyMatrix, pair_rounds};
use rand::seq::SliceRandom;
use std::collections::{BTreeMap, BTreeSet};

/// So many hosts find the groups before others are asked, then as many again as there were, and so on. A host may be as far from another
/// group as that one's members are from each other, and would join it for as long as its own group is not known.
const FIRST_HOSTS: usize = 256;
/// So many hosts that look alike are compared at a time, by a full matrix among them.
const FOUNDERS: usize = 12;
/// And so many at least, however often they were probed.
const LEAST_MATES: usize = 5;
/// So many that are alike found a group; two always look alike.
const LEAST_FOUNDERS: usize = 3;
/// So many of them are kept for asking and being asked.
const ASKS: usize = 6;
/// Where so many times in a row founders are not alike, there are many groups, and few hosts of each.
const PATIENCE: usize = 4;
/// Then so many hosts, as long as there are fewer groups, are marks: others are told apart by how far they are from each of them,
const MARKS: usize = 4;
/// so many at a time.
const MARKED: usize = 96;
/// Where so few hosts fit no group, it is noise rather than that they are of another kind: they ask again before they found any.
const FEW_LOST: usize = 16;
/// So often members of a group are measured against others of it: who joined the wrong one is nearer to its own kind.
const CHECKS: usize = 6;
/// Pairs are odd if they are nearer than the bound by so many deviations of the noise: one in a thousand is by chance.
const ODD: f64 = 2.0;
/// That is done once, when there are so many members, or at the end.
const CHECKED_MEMBERS: usize = 24;
/// Of groups that are at most so much farther from each other than inside, each member says which one it is in.
const NEAR: f64 = 2.0;
/// Groups that look like one are merged only if so many more pairs say so.
const MERGE_PROBES: usize = 15;
/// Where hosts are left that have few of their kind, so many are compared at a time.
const LAST_FOUNDERS: usize = 256;

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
    let mut search =
        Search { known: Evidence::new(n, bound), method, bound, measure, rounds: 0, checked: BTreeSet::new(), random: stats::random(1) };
    let mut order: Vec<usize> = (0..n).collect();
    order.shuffle(&mut search.random);
    let (mut left, mut begin) = (Vec::new(), 0);
    while begin < n {
        let end = n.min(2 * begin.max(FIRST_HOSTS / 2));
        let lost = search.classify(order[begin..end].to_vec())?;
        left.extend(if begin == 0 { lost } else { search.ask_again(lost)? });
        left = search.settle(left)?;
        left = search.check(CHECKED_MEMBERS, left)?;
        begin = end;
    }
    left = search.ask_again(left)?;
    left = search.settle(left)?;
    left = search.check(0, left)?;
    left.extend(search.reconsider(0)?);
    left = search.ask_again(left)?;
    search.finish(left)?;
    Ok(search.sorted())
}

impl Search<'_> {
    /// Finds groups among hosts and puts the hosts into them; gives those that have too few of their kind.
    fn settle(&mut self, mut left: Vec<usize>) -> Result<Vec<usize>> {
        let (first, mut failed, mut marks) = (self.known.groups.len(), 0, Vec::new());
        let (mut tried, mut marked) = (BTreeSet::new(), BTreeSet::new());
        while let Some(&pivot) = left.iter().filter(|h| !tried.contains(*h)).min_by_key(|&&h| (self.probes(h), h)) {
            tried.insert(pivot);
            let founders = self.founders(pivot, &left, !marks.is_empty());
            if founders.len() >= LEAST_FOUNDERS && self.found_groups(&founders)? {
                failed = 0;
                self.complete()?;
                self.merge()?;
                left.retain(|&h| self.known.of[h].is_none());
                left = self.classify(left)?;
                if left.len() <= FEW_LOST {
                    left = self.ask_again(left)?;
                }
                continue;
            }
            failed += 1;
            if failed % PATIENCE == 0 && self.known.groups.len() < MARKS && left.len() > marked.len() {
                if marks.is_empty() {
                    marks = founders.into_iter().take(MARKS).collect();
                }
                self.mark(&marks, &left, &mut marked)?;
                tried.clear();
            }
        }
        left.extend(self.reconsider(first)?);
        Ok(left)
    }

    /// A host, and those that are most likely of its kind.
    fn founders(&self, pivot: usize, left: &[usize], many: bool) -> Vec<usize> {
        let many = many || !self.known.are_few();
        let free = |host: usize| (FEW_PROBES + 1).saturating_sub(ASKS + self.probes(host));
        let count = if many { FOUNDERS } else { free(pivot).clamp(LEAST_MATES, FOUNDERS) };
        let view = self.known.view(pivot);
        let mate = |&host: &usize| {
            let (common, distance) = self.known.likeness(&view, &self.known.view(host))?;
            (host != pivot && (many || count == LEAST_MATES || free(host) >= count)).then_some((
                usize::MAX - common,
                distance,
                self.probes(host),
                host,
            ))
        };
        let mut mates: Vec<_> = left.iter().filter_map(mate).collect();
        mates.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
        let mates = mates.into_iter().take(count.saturating_sub(1)).map(|m| m.3);
        std::iter::once(pivot).chain(mates).collect()
    }

    /// Measures some more hosts against the marks.
    fn mark(&mut self, marks: &[usize], left: &[usize], marked: &mut BTreeSet<usize>) -> Result<()> {
        let mut hosts: Vec<usize> = left.iter().copied().filter(|h| !marked.contains(h)).collect();
        hosts.sort_by_key(|&h| (self.probes(h), h));
        hosts.truncate(MARKED);
        marked.extend(hosts.iter().copied());
        for round in 0..hosts.len().max(marks.len()) {
            let pairs = marks.iter().enumerate().filter_map(|(k, &m)| Some((m, *hosts.get((round + k) % hosts.len().max(marks.len()))?)));
            let pairs: Vec<(usize, usize)> = pairs.filter(|&(m, h)| !marks.contains(&h) && self.known.known(m, h).is_none()).collect();
            self.round(&pairs)?;
        }
        Ok(())
    }

    /// Measures all latencies among hosts that are not known.
    fn measure_all(&mut self, hosts: &[usize]) -> Result<()> {
        for round in pair_rounds(hosts.len()) {
            let pairs = round.into_iter().map(|(a, b)| (hosts[a], hosts[b]));
            let pairs: Vec<(usize, usize)> = pairs.filter(|&(a, b)| self.known.known(a, b).is_none()).collect();
            self.round(&pairs)?;
        }
        Ok(())
    }

    /// Groups founders by all latencies among them. Were there any groups?
    fn found_groups(&mut self, founders: &[usize]) -> Result<bool> {
        self.measure_all(founders)?;
        let time = |i: usize, j: usize| self.known.known(founders[i], founders[j]).unwrap_or(f64::INFINITY);
        let matrix = LatencyMatrix::from_pairs(founders.len(), "sampled", time);
        let clusters = (self.method.group)(&matrix, self.bound);
        // three sites that are equally far from each other look alike: such groups have to wait
        let near = |c: &[usize]| median(&matrix.between(c, c)).is_none_or(|t| t <= FAR_S);
        let groups: Vec<Vec<usize>> = clusters.into_iter().filter(|c| c.len() >= LEAST_FOUNDERS && near(c)).collect();
        for group in &groups {
            self.known.found(&group.iter().map(|&h| founders[h]).collect::<Vec<_>>());
        }
        Ok(!groups.is_empty())
    }

    /// Lets members of groups ask new ones that are near; gives those that then fit none.
    fn reconsider(&mut self, first: usize) -> Result<Vec<usize>> {
        let is_near = |g: usize, new: usize| {
            let (between, inside) = (self.known.usual(g, new), self.known.usual(g, g));
            g != new && between.zip(inside).is_some_and(|(b, i)| b.time <= NEAR * self.bound.limit(i.time))
        };
        let groups = self.known.groups.len();
        let near: Vec<usize> = (0..groups).filter(|&g| (first..groups).any(|new| is_near(g, new))).collect();
        self.classify(near.into_iter().flat_map(|g| self.known.groups[g].clone()).collect())
    }

    /// Measures members of groups of some size against each other, at random. Those of each that are nearer to each other than the others found groups
    /// anew; gives those that fit none, with those that are left.
    fn check(&mut self, least: usize, mut left: Vec<usize>) -> Result<Vec<usize>> {
        let groups: Vec<usize> = (0..self.known.groups.len()).filter(|&g| self.known.groups[g].len() >= least).collect();
        let groups: Vec<usize> = groups.into_iter().filter(|&g| self.checked.insert(g)).collect();
        for _ in 0..CHECKS {
            let mut pairs = Vec::new();
            for &group in &groups {
                let mut members = self.known.groups[group].clone();
                members.retain(|&h| self.known.inside(h) < CHECKS && (!self.known.are_few() || self.probes(h) < FEW_PROBES - ASKS));
                members.shuffle(&mut self.random);
                let new = |pair: &[usize]| self.known.known(pair[0], pair[1]).is_none();
                pairs.extend(members.chunks_exact(2).filter(|p| new(p)).map(|p| (p[0], p[1])));
            }
            self.round(&pairs)?;
        }
        for group in groups {
            let odd = self.odd(group);
            if odd.len() >= LEAST_FOUNDERS {
                self.known.transfer(&odd.iter().map(|&h| (h, None)).collect::<Vec<_>>());
                let odd = self.settle(odd)?;
                left.extend(self.classify(odd)?);
            }
        }
        Ok(left)
    }

    /// The members of a group that are nearer to another one than members are.
    fn odd(&self, group: usize) -> Vec<usize> {
        let Some(inside) = self.known.usual(group, group) else { return Vec::new() };
        let is_odd = |&(other, time): &(usize, f64)| {
            self.known.of[other] == Some(group) && time < inside.time && self.known.are_apart(Usual { time, count: 1 }, inside, ODD)
        };
        self.known.groups[group].iter().copied().filter(|&h| self.known.probes[h].iter().any(is_odd)).collect()
    }

    /// Measures what is not known between groups, one pair each.
    fn complete(&mut self) -> Result<()> {
        let groups: Vec<usize> = (0..self.known.groups.len()).filter(|&g| !self.known.groups[g].is_empty()).collect();
        let pairs = groups.iter().flat_map(|&a| groups.iter().map(move |&b| (a, b)));
        let mut open: Vec<(usize, usize)> = pairs.filter(|&(a, b)| a < b && self.known.usual(a, b).is_none()).collect();
        while !open.is_empty() {
            let mut servers = Servers::new(&self.known);
            let mut pairs = Vec::new();
            open.retain(|&(a, b)| match servers.next(a).and_then(|host| Some((host, servers.take(&self.known, host, Step::Ask(b))?))) {
                Some(pair) => {
                    pairs.push(pair);
                    false
                }
                None => true,
            });
            self.round(&pairs)?;
        }
        Ok(())
    }

    /// Merges groups that are as far from each other as their members are: noise kept some hosts out of theirs, and they founded another.
    fn merge(&mut self) -> Result<()> {
        let n = self.known.groups.len();
        for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
            if !self.known.are_one(a, b, DEVIATIONS) {
                continue;
            }
            let mut more = MERGE_PROBES;
            for _ in 0..SURE {
                let mut servers = Servers::new(&self.known);
                let mut from = servers.members[a].clone();
                from.retain(|&h| !servers.is_tired(&self.known, h));
                let pair = |host: usize| Some((host, servers.take(&self.known, host, Step::Ask(b))?));
                let pairs: Vec<(usize, usize)> = from.into_iter().filter_map(pair).take(more).collect();
                more -= pairs.len();
                self.round(&pairs)?;
            }
            if self.known.are_one(a, b, 1.0) {
                let moves: Vec<(usize, Option<usize>)> = self.known.groups[b].iter().map(|&h| (h, Some(a))).collect();
                self.known.transfer(&moves);
            }
        }
        Ok(())
    }

    /// Puts hosts that have few of their kind where the method puts them: they are measured against each other and against every group.
    fn finish(&mut self, mut left: Vec<usize>) -> Result<()> {
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(LAST_FOUNDERS));
            self.measure_all(&left)?;
            let groups: Vec<usize> = (0..self.known.groups.len()).filter(|&g| !self.known.groups[g].is_empty()).collect();
            self.ask_each(&left, &vec![groups.clone(); left.len()])?;
            self.place(&left, &groups);
            self.complete()?;
            left = self.classify(rest)?;
        }
        self.complete()?;
        self.merge()
    }

    /// Groups hosts together with some that stand for the members of each group.
    fn place(&mut self, hosts: &[usize], groups: &[usize]) {
        let stand_in = |g: &usize| std::iter::repeat_n(*g, self.known.groups[*g].len().min(LEAST_FOUNDERS));
        let all: Vec<Mark> = groups.iter().flat_map(stand_in).map(Mark::Group).chain(hosts.iter().map(|&h| Mark::Host(h))).collect();
        let views: BTreeMap<usize, Vec<(Mark, Usual)>> = hosts.iter().map(|&h| (h, self.known.view(h))).collect();
        let seen = |h: usize, mark| views[&h].iter().find(|s| s.0 == mark).map(|s| s.1);
        let usual = |i: usize, j: usize| match (all[i], all[j]) {
            (Mark::Group(a), Mark::Group(b)) => self.known.usual(a, b),
            (Mark::Host(a), b) | (b, Mark::Host(a)) => seen(a, b),
        };
        let matrix = LatencyMatrix::from_pairs(all.len(), "sampled", |i, j| usual(i, j).map_or(f64::MAX, |u| u.time));
        for cluster in (self.method.group)(&matrix, self.bound) {
            let group = cluster.iter().find_map(|&k| if let Mark::Group(g) = all[k] { Some(g) } else { None });
            let hosts: Vec<usize> = cluster.iter().filter_map(|&k| if let Mark::Host(h) = all[k] { Some(h) } else { None }).collect();
            match group {
                Some(group) => hosts.into_iter().for_each(|h| self.known.join(h, group)),
                None => drop(self.known.found(&hosts)),
            }
        }
    }

    /// Hosts ascending, groups in the order of their first hosts.
    fn sorted(self) -> Sampled {
        let known = self.known;
        let mut groups: Vec<Vec<usize>> = known.groups.into_iter().filter(|g| !g.is_empty()).collect();
        groups.iter_mut().for_each(|g| g.sort_unstable());
        groups.sort_unstable_by_key(|g| g[0]);
        let mut of = vec![0; known.of.len()];
        groups.iter().enumerate().for_each(|(k, g)| g.iter().for_each(|&h| of[h] = k));
        let mut latencies: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for (a, probes) in known.probes.iter().enumerate() {
            for &(b, time) in probes.iter().filter(|p| a < p.0) {
                latencies.entry((of[a].min(of[b]), of[a].max(of[b]))).or_default().push(time);
            }
        }
        Sampled { groups, latencies, probes: known.probes.iter().map(Vec::len).collect(), rounds: self.rounds }
    }
}

impl Sampled {
    /// The latencies between two groups, or inside one.
    pub fn between(&self, a: usize, b: usize) -> &[f64] {
        self.latencies.get(&(a.min(b), a.max(b))).map_or(&[], Vec::as_slice)
    }
}
