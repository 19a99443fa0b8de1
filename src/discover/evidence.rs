//! What probes say: how far groups are from each other, and which group a host may be in.
//!
//! All that is kept is whom each host was measured against. Since what a probe says of a host depends on the group that the other one is
//! in now, nothing has to be measured again when hosts move and groups are merged.

use crate::cluster::Bound;
use crate::stats::median;
use rustc_hash::FxHashMap;

/// Noise of a probe that is reckoned with: a tenth of the latency.
const NOISE: f64 = 0.1;
/// What is over the bound by so many deviations of the noise is not alike: of probes that are alike, one in ten thousand is over by more.
pub(super) const DEVIATIONS: f64 = 3.0;
/// A group is chosen before another one if the probes are so much likelier in it (twice the logarithm): an error in hundreds, if all that
/// speaks against the other is noise.
const MARGIN: f64 = 25.0;
/// No group is asked more often by one host: the median of so many tells latencies apart that differ by half of the bound.
const MOST_ASKS: usize = 7;
/// As long as there are few groups, no host takes part in more probes if another one can in its place.
pub(super) const FEW_PROBES: usize = 18;
/// Fewer groups than this are few: more tell hosts apart that are in none, and share the work.
const FEW_GROUPS: usize = 16;
/// What rests on fewer latencies may be wrong.
pub(super) const SURE: usize = 3;
/// So many latencies are enough to know what is usual between two groups.
const ENOUGH: usize = 31;

/// The median of some latencies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usual {
    pub time: f64,
    pub count: usize,
}

/// Whom a host was measured against: members of a group, or one that is in none yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    Group(usize),
    Host(usize),
}

/// What is to be done with a host.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Ask(usize),
    /// It was in no probe with a member of a group.
    AskAny,
    Join(usize),
    /// It fits no group.
    Lost,
}

/// All that is known.
pub(super) struct Evidence {
    bound: Bound,
    /// The members of each group; those of a group that was given up are none.
    pub groups: Vec<Vec<usize>>,
    /// The group of each host.
    pub of: Vec<Option<usize>>,
    /// Whom each host was measured against, and the latency.
    pub probes: Vec<Vec<(usize, f64)>>,
    latencies: FxHashMap<(usize, usize), Vec<f64>>,
    usual: Vec<Vec<Option<Usual>>>,
}

impl Evidence {
    pub fn new(n: usize, bound: Bound) -> Evidence {
        let (of, probes) = (vec![None; n], vec![Vec::new(); n]);
        Evidence { bound, groups: Vec::new(), of, probes, latencies: FxHashMap::default(), usual: Vec::new() }
    }

    pub fn record(&mut self, a: usize, b: usize, time: f64) {
        self.probes[a].push((b, time));
        self.probes[b].push((a, time));
        if let (Some(g), Some(h)) = (self.of[a], self.of[b]) {
            self.add(g, h, time);
        }
    }

    /// The latency between two hosts, if it was measured.
    pub fn known(&self, a: usize, b: usize) -> Option<f64> {
        let (a, b) = if self.probes[a].len() <= self.probes[b].len() { (a, b) } else { (b, a) };
        self.probes[a].iter().find(|p| p.0 == b).map(|p| p.1)
    }

    /// Makes a group of hosts that are in none.
    pub fn found(&mut self, hosts: &[usize]) -> usize {
        let group = self.groups.len();
        self.groups.push(Vec::new());
        self.usual.iter_mut().for_each(|row| row.push(None));
        self.usual.push(vec![None; group + 1]);
        hosts.iter().for_each(|&h| self.join(h, group));
        group
    }

    /// Puts a host that is in no group into one.
    pub fn join(&mut self, host: usize, group: usize) {
        self.of[host] = Some(group);
        self.groups[group].push(host);
        for k in 0..self.probes[host].len() {
            let (other, time) = self.probes[host][k];
            if let Some(g) = self.of[other] {
                self.add(group, g, time);
            }
        }
    }

    /// Puts hosts into other groups, or into none.
    pub fn transfer(&mut self, hosts: &[(usize, Option<usize>)]) {
        hosts.iter().for_each(|&(host, group)| self.of[host] = group);
        self.groups.iter_mut().for_each(Vec::clear);
        self.latencies.clear();
        self.usual.iter_mut().for_each(|row| row.fill(None));
        let of = std::mem::replace(&mut self.of, vec![None; hosts.len().max(self.probes.len())]);
        of.iter().enumerate().filter_map(|(host, group)| Some((host, (*group)?))).for_each(|(host, group)| self.join(host, group));
    }

    fn add(&mut self, g: usize, h: usize, time: f64) {
        let all = self.latencies.entry((g.min(h), g.max(h))).or_default();
        if all.len() < ENOUGH {
            all.push(time);
            let usual = median(all).map(|time| Usual { time, count: all.len() });
            (self.usual[g][h], self.usual[h][g]) = (usual, usual);
        }
    }

    /// Against how many of its own group a host was measured.
    pub fn inside(&self, host: usize) -> usize {
        self.probes[host].iter().filter(|p| self.of[p.0] == self.of[host]).count()
    }

    pub fn are_few(&self) -> bool {
        self.groups.iter().filter(|g| !g.is_empty()).count() < FEW_GROUPS
    }

    /// The latency between two groups, or inside one, as far as known.
    pub fn usual(&self, a: usize, b: usize) -> Option<Usual> {
        self.usual[a][b]
    }

    pub fn alike(&self, a: f64, b: f64) -> bool {
        self.bound.limit(a.min(b)) >= a.max(b)
    }

    /// Is one of two latencies over the bound by more than some deviations of the noise?
    pub fn are_apart(&self, a: Usual, b: Usual, deviations: f64) -> bool {
        a.time.max(b.time) > self.bound.limit(a.time.min(b.time)) * (deviations * deviation(a, b)).exp()
    }

    /// What a host was told by each group, and by hosts that are in none.
    pub fn view(&self, host: usize) -> Vec<(Mark, Usual)> {
        let mark = |other: usize| self.of[other].map_or(Mark::Host(other), Mark::Group);
        let mut all: Vec<(Mark, f64)> = self.probes[host].iter().map(|&(other, time)| (mark(other), time)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let usual = |part: &[(Mark, f64)]| {
            let times: Vec<f64> = part.iter().map(|p| p.1).collect();
            median(&times).map(|time| (part[0].0, Usual { time, count: times.len() }))
        };
        all.chunk_by(|a, b| a.0 == b.0).filter_map(usual).collect()
    }

    /// How ill a host fits into a group: it is not as far from others as the group's members are. `None` if it cannot be in it.
    fn misfit(&self, view: &[(Mark, Usual)], group: usize) -> Option<f64> {
        let mut sum = 0.0;
        for (mark, seen) in view {
            let Mark::Group(other) = *mark else { continue };
            let Some(usual) = self.usual(group, other) else { continue };
            if !self.are_apart(*seen, usual, DEVIATIONS) {
                sum += distance(*seen, usual);
            } else if usual.count < SURE {
                sum += MARGIN;
            } else {
                return None;
            }
        }
        Some(sum)
    }

    /// How many marks two hosts have in common, and how differently far they are from them. `None` if they cannot be of one group.
    pub fn likeness(&self, x: &[(Mark, Usual)], y: &[(Mark, Usual)]) -> Option<(usize, f64)> {
        let (mut common, mut sum) = (0, 0.0);
        for (mark, a) in x {
            if let Ok(k) = y.binary_search_by_key(mark, |seen| seen.0) {
                if self.are_apart(*a, y[k].1, DEVIATIONS) {
                    return None;
                }
                (common, sum) = (common + 1, sum + distance(*a, y[k].1));
            }
        }
        Some((common, sum))
    }

    /// Groups that a host may be in, best first: those that no other one is clearly better than.
    fn rivals(&self, view: &[(Mark, Usual)]) -> Vec<usize> {
        let all = (0..self.groups.len()).filter(|&g| !self.groups[g].is_empty());
        let mut fits: Vec<(f64, usize)> = all.filter_map(|g| Some((self.misfit(view, g)?, g))).collect();
        fits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let least = fits.first().map_or(0.0, |f| f.0);
        fits.into_iter().take_while(|f| f.0 <= least + MARGIN).map(|f| f.1).collect()
    }

    /// What to do with a host: ask the groups that it may be in, best first, until one is left that it is as far from as its members
    /// are from each other.
    pub fn step(&self, host: usize) -> Step {
        let view = self.view(host);
        if !view.iter().any(|s| matches!(s.0, Mark::Group(_))) {
            return Step::AskAny;
        }
        let rivals = self.rivals(&view);
        let Some(&best) = rivals.first() else { return Step::Lost };
        let seen = |g: usize| view.binary_search_by_key(&Mark::Group(g), |s| s.0).ok().map(|k| view[k].1);
        let asked = |g: usize| seen(g).map_or(0, |s| s.count);
        let may_ask = |g: usize| asked(g) + usize::from(self.of[host] == Some(g)) < self.groups[g].len();
        if let Some(&new) = rivals.iter().find(|&&g| asked(g) == 0 && may_ask(g)) {
            return Step::Ask(new);
        }
        let is_alike = seen(best).is_some_and(|s| self.usual(best, best).is_none_or(|u| self.alike(s.time, u.time)));
        if rivals.len() == 1 && is_alike {
            return Step::Join(best);
        }
        let again = rivals.iter().take(2).filter(|&&g| asked(g) < MOST_ASKS && may_ask(g)).min_by_key(|&&g| asked(g));
        match again {
            Some(&group) => Step::Ask(group),
            None if is_alike => Step::Join(best),
            None => Step::Lost,
        }
    }

    /// Could two groups be one, as far as known? A host alone has no inside.
    pub fn are_one(&self, a: usize, b: usize, deviations: f64) -> bool {
        let mut inside = [a, b].into_iter().filter_map(|g| self.usual(g, g)).peekable();
        let Some(between) = self.usual(a, b) else { return false };
        let over = |u: Usual| if u.count < SURE { DEVIATIONS } else { deviations };
        inside.peek().is_some()
            && [a, b].iter().all(|&g| !self.groups[g].is_empty())
            && inside.all(|u| !self.are_apart(u, between, over(u)))
    }
}

/// The deviation of the logarithm of the ratio of two medians that are noisy.
fn deviation(a: Usual, b: Usual) -> f64 {
    NOISE * (1.0 / a.count as f64 + 1.0 / b.count as f64).sqrt()
}

/// How far two medians are from each other, squared, in deviations of the noise.
fn distance(a: Usual, b: Usual) -> f64 {
    ((a.time / b.time).ln() / deviation(a, b)).powi(2)
}
