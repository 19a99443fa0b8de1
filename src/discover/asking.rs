//! Rounds of probes: hosts ask members of groups until it is known which group they are in.

use super::evidence::{Evidence, FEW_PROBES, Mark, SURE, Step};
use crate::cluster::{Bound, Method};
use crate::error::Result;
use crate::stats::Random;
use std::collections::{BTreeMap, BTreeSet};

/// Measures the latencies of pairs of which no two share a host.
pub type Measure<'a> = &'a mut dyn FnMut(&[(usize, usize)]) -> Result<Vec<f64>>;

/// A search for groups: what is known so far, and how more is measured.
pub(super) struct Search<'a> {
    pub known: Evidence,
    pub method: &'a Method,
    pub bound: Bound,
    pub measure: Measure<'a>,
    pub rounds: usize,
    /// Groups that were checked.
    pub checked: BTreeSet<usize>,
    pub random: Random,
}

impl Search<'_> {
    /// Measures one round.
    pub fn round(&mut self, pairs: &[(usize, usize)]) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        self.rounds += 1;
        for (&(a, b), time) in pairs.iter().zip((self.measure)(pairs)?) {
            self.known.record(a, b, time);
        }
        Ok(())
    }

    pub fn probes(&self, host: usize) -> usize {
        self.known.probes[host].len()
    }

    /// Finds the groups of hosts by probes; gives those that fit none. Who is in a group stays there meanwhile.
    pub fn classify(&mut self, mut open: Vec<usize>) -> Result<Vec<usize>> {
        let (mut lost, mut moves) = (Vec::new(), Vec::new());
        let mut steps: BTreeMap<usize, Step> = BTreeMap::new();
        while !open.is_empty() && self.known.groups.iter().any(|g| !g.is_empty()) {
            let mut servers = Servers::new(&self.known);
            let (mut waiting, mut pairs, before) = (Vec::new(), Vec::new(), open.len());
            for host in open {
                match *steps.entry(host).or_insert_with(|| self.known.step(host)) {
                    Step::Join(group) if self.known.of[host].is_none() => self.known.join(host, group),
                    Step::Join(group) if self.known.of[host] == Some(group) => {}
                    Step::Join(group) => moves.push((host, Some(group))),
                    Step::Lost => {
                        lost.push(host);
                        moves.extend(self.known.of[host].map(|_| (host, None)));
                    }
                    ask => {
                        pairs.extend(servers.take(&self.known, host, ask).map(|server| (host, server)));
                        waiting.push(host);
                    }
                }
            }
            self.round(&pairs)?;
            // a probe tells both ends something, also one that was asked while it waits itself
            for (a, b) in &pairs {
                steps.remove(a);
                steps.remove(b);
            }
            if pairs.is_empty() && waiting.len() == before {
                // nobody is left to be asked
                open = waiting;
                break;
            }
            open = waiting;
        }
        lost.extend(open);
        if !moves.is_empty() {
            self.known.transfer(&moves);
        }
        Ok(lost)
    }

    /// Lets hosts that fit no group ask again those that they asked; gives those that still fit none.
    pub fn ask_again(&mut self, hosts: Vec<usize>) -> Result<Vec<usize>> {
        let asked: Vec<Vec<usize>> = hosts.iter().map(|&h| self.asked(h)).collect();
        self.ask_each(&hosts, &asked)?;
        self.classify(hosts)
    }

    /// The groups that a host asked.
    fn asked(&self, host: usize) -> Vec<usize> {
        let group = |mark| if let Mark::Group(g) = mark { Some(g) } else { None };
        self.known.view(host).into_iter().filter_map(|s| group(s.0)).collect()
    }

    /// Lets hosts ask groups until they know each of them for sure, or nobody of it is left to be asked.
    pub fn ask_each(&mut self, hosts: &[usize], groups: &[Vec<usize>]) -> Result<()> {
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (&host, groups) in hosts.iter().zip(groups) {
            let view = self.known.view(host);
            let times = |g: usize| view.iter().find(|s| s.0 == Mark::Group(g)).map_or(0, |s| s.1.count);
            open.extend(groups.iter().flat_map(|&g| (times(g)..SURE.min(self.known.groups[g].len())).map(move |_| (host, g))));
        }
        while !open.is_empty() {
            let mut servers = Servers::new(&self.known);
            let (mut waiting, mut pairs) = (Vec::new(), Vec::new());
            open.retain(|o| !servers.is_tired(&self.known, o.0));
            for (host, group) in open {
                match servers.take(&self.known, host, Step::Ask(group)) {
                    Some(server) => pairs.push((host, server)),
                    None => waiting.push((host, group)),
                }
            }
            if pairs.is_empty() {
                break;
            }
            self.round(&pairs)?;
            open = waiting;
        }
        Ok(())
    }
}

/// Who may be asked in a round: no host is in two probes at a time.
pub(super) struct Servers {
    /// Who took part in so many probes is not asked as long as another one can be.
    most: usize,
    busy: Vec<bool>,
    /// Members of each group, those that were probed least first.
    pub members: Vec<Vec<usize>>,
    /// So many of each are busy, the first ones.
    first: Vec<usize>,
}

impl Servers {
    pub fn new(known: &Evidence) -> Servers {
        let mut members = known.groups.clone();
        members.iter_mut().for_each(|group| group.sort_by_key(|&h| (known.probes[h].len(), h)));
        let most = if known.are_few() { FEW_PROBES } else { usize::MAX };
        Servers { most, busy: vec![false; known.of.len()], first: vec![0; members.len()], members }
    }

    /// Takes a member of a group that a host was not measured against, and the host.
    pub fn take(&mut self, known: &Evidence, host: usize, step: Step) -> Option<usize> {
        if self.busy[host] {
            return None;
        }
        let group = match step {
            Step::Ask(group) => group,
            _ => (0..self.members.len()).filter_map(|g| self.next(g).map(|h| (known.probes[h].len(), g))).min()?.1,
        };
        self.next(group);
        let is_new = |h: &usize| *h != host && known.known(host, *h).is_none();
        let server = self.members[group][self.first[group]..].iter().copied().find(|h| !self.busy[*h] && is_new(h))?;
        if self.is_tired(known, server) && self.members[group].iter().any(|&h| !self.is_tired(known, h) && is_new(&h)) {
            return None;
        }
        (self.busy[host], self.busy[server]) = (true, true);
        Some(server)
    }

    pub fn is_tired(&self, known: &Evidence, host: usize) -> bool {
        known.probes[host].len() >= self.most
    }

    /// The member of a group that was probed least of those that are not busy.
    pub fn next(&mut self, group: usize) -> Option<usize> {
        while self.members[group].get(self.first[group]).is_some_and(|&h| self.busy[h]) {
            self.first[group] += 1;
        }
        self.members[group].get(self.first[group]).copied()
    }
}
