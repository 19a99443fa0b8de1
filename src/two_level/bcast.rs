//! A broadcast over groups: between their coordinators by one of several routes, inside each group by an algorithm of its own,
//! and, where the message is cut into segments, both at once: a coordinator passes a segment on while it receives the next.

use super::hosts::Hosts;
use super::same::Same;
use super::{IntraGroup, Named, Near};
use crate::collective::{NativeCall, Node, Parameters, Shape, Step, bcast};
use crate::error::{Error, Result};
use crate::intercluster::Job;
use crate::schedule::{Lane, MOST_MESSAGES, OpId, Program, Schedule, Specification, pieces, segments};
use crate::topology::Rank;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;

/// Which way the message takes between groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterGroup {
    /// Down a tree. Each coordinator does its jobs in this order, for each segment; an intra-group broadcast that is not among them comes
    /// last.
    Tree(Vec<Job>),
    /// The root deals the segments out to the other coordinators in turn, and each passes its share on to the rest: van de Geijn's
    /// scatter and allgather, pipelined. Every link between two groups carries a part of the message, and the root sends it once.
    Relay,
    /// One chain through all ranks, group by group in this order: every rank receives the message once and sends it once, so that no port
    /// carries it twice.
    Line(Vec<usize>),
}

/// A broadcast over groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TwoLevel {
    /// Size of the message.
    pub bytes: usize,
    /// Ranks by group: the root's group first, in each group the coordinator first; the root coordinates its own.
    pub groups: Vec<Vec<Rank>>,
    /// The host of each rank, in the order of `groups`: segments go down a tree of the hosts' first ranks, and from each of them down a
    /// tree inside its host. Empty: each rank has a host of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Vec<usize>>,
    /// The way between them.
    pub inter_group: InterGroup,
    /// Bytes of a segment; 0: the whole message at once.
    pub segment: usize,
    /// Messages under way to each peer in another group, in each lane; 0: nothing is said. Inside groups `intra_group` says it.
    #[serde(default, skip_serializing_if = "crate::collective::is_zero")]
    pub in_flight: usize,
    /// What is near each other, and wants fewer under way, the smallest sites first. Empty: `in_flight` holds everywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Near>,
    /// To how many peers at once a coordinator sends, in each lane; 0: to all. Inside groups `intra_group` says it of the others.
    #[serde(default, skip_serializing_if = "crate::collective::is_zero")]
    pub peers: usize,
    /// The broadcast inside each group. With segments, those that are plain trees pass each segment on at once; others start when
    /// the whole message is there.
    #[serde(deserialize_with = "broadcasts")]
    pub intra_group: Vec<IntraGroup>,
}

/// What one coordinator does with one segment.
#[derive(Clone)]
struct Part {
    /// The group that it comes from.
    from: Option<usize>,
    jobs: Vec<Job>,
}

impl TwoLevel {
    /// How many messages it sends, about.
    pub fn message_count(&self) -> usize {
        self.groups.iter().zip(&self.intra_group).fold(0usize, |all, (ranks, intra_group)| {
            let inside = intra_group.parameters.pieces(intra_group.algorithm, self.bytes);
            all.saturating_add(ranks.len().saturating_mul(inside.max(pieces(self.bytes, self.segment))))
        })
    }

    /// The position in `groups` of a rank's group, if it is in one.
    pub fn group_of(&self, rank: Rank) -> Option<usize> {
        self.groups.iter().position(|g| g.contains(&rank))
    }

    /// All ranks, group by group; the root is the first.
    pub fn ranks(&self) -> Vec<Rank> {
        self.groups.concat()
    }

    /// How many lanes its programs have.
    pub fn lanes(&self) -> usize {
        if self.inter_group == InterGroup::Relay { (self.groups.len() - 1).max(1) } else { 1 }
    }

    /// True if a group's intra-group broadcast is the library's own, which comes after the program.
    pub fn local_native(&self, k: usize) -> bool {
        self.groups[k].len() > 1 && self.intra_group[k].algorithm.is_native()
    }

    /// The library's own broadcast that a rank calls after its program, if its group's is that; a rank in no group calls none.
    pub fn native(&self, me: Rank) -> Option<NativeCall> {
        let k = self.group_of(me)?;
        self.local_native(k).then(|| NativeCall::new(&bcast::COLLECTIVE, self.groups[k].clone(), 0))
    }

    /// What a rank does.
    ///
    /// # Errors
    /// As [`TwoLevel::program`].
    pub fn steps(&self, me: Rank) -> Result<Vec<Step>> {
        Ok(std::iter::once(Step::Program(self.program(me)?)).chain(self.native(me).map(Step::Native)).collect())
    }

    /// What a rank sends and receives; intra-group broadcasts by the library come after it.
    ///
    /// # Errors
    /// The rank is in no group.
    pub fn program(&self, me: Rank) -> Result<Program> {
        let place = |(k, group): (usize, &Vec<Rank>)| Some((k, group.iter().position(|&r| r == me)?));
        let place = self.groups.iter().enumerate().find_map(place);
        let (k, position) = place.ok_or_else(|| Error::invalid(format!("build the program of rank {me}, which is in no group")))?;
        match &self.inter_group {
            InterGroup::Line(order) => Ok(self.link_of_chain(&self.chain(order), self.place_in_chain(order, k, position))),
            _ => Ok(self.program_at(k, position, &self.hosts_of(k))),
        }
    }

    /// What the rank at a position of group `k` sends and receives, along any inter-group algorithm but a line.
    fn program_at(&self, k: usize, position: usize, hosts: &Option<Hosts>) -> Program {
        let group = &self.groups[k];
        let Parameters { in_flight: inside, peers, .. } = self.parameters_inside(k, position);
        let node = self.node(k, position, hosts);
        // along a tree every segment is passed on alike
        let same = if let (InterGroup::Tree(jobs), 0) = (&self.inter_group, position) { Some(own_part(jobs, k)) } else { None };
        let mut program = Program::new();
        let mut got: Vec<OpId> = Vec::new();
        for (n, span) in segments(self.bytes, self.segment).enumerate() {
            program.in_lane(self.lane_of(n));
            if position > 0 {
                let Some(node) = &node else { break };
                program.in_flight(inside);
                program.peers(peers);
                let come: Vec<OpId> = node.parent.iter().map(|&p| program.recv(group[p], span, &[])).collect();
                for &c in &node.children {
                    program.send(group[c], span, &come);
                }
                continue;
            }
            let part = same.clone().unwrap_or_else(|| self.part_of_relay(k, n));
            program.peers(self.peers);
            program.in_flight(part.from.map_or(self.in_flight, |from| self.in_flight_between(k, from)));
            let come: Vec<OpId> = part.from.iter().map(|&g| program.recv(self.groups[g][0], span, &[])).collect();
            got.extend(&come);
            let whole = self.segment == 0 || self.bytes <= self.segment;
            for job in part.jobs {
                program.in_flight(if let Job::Send { to, .. } = job { self.in_flight_between(k, to) } else { inside });
                match (job, &node) {
                    (Job::Send { to, .. }, _) => {
                        program.send(self.groups[to][0], span, &come);
                    }
                    (Job::Local(_), Some(node)) => {
                        for &c in &node.children {
                            program.send(group[c], span, &come);
                        }
                    }
                    (Job::Local(_), None) if whole => self.append_local(&mut program, k, position, &come),
                    (Job::Local(_), None) => {}
                }
            }
            if node.is_none() && whole {
                return program;
            }
        }
        if node.is_none() {
            program.in_lane(0);
            self.append_local(&mut program, k, position, &got);
        }
        program
    }

    /// The place of a position in the tree of group `k`, if segments are passed on along one.
    fn node(&self, k: usize, position: usize, hosts: &Option<Hosts>) -> Option<Node> {
        let pipelined = self.intra_group[k].algorithm.tree.filter(|_| self.segment > 0);
        let tree = |v: usize, n: usize| pipelined.map(|tree| tree(v, n, self.intra_group[k].parameters.radix));
        hosts.as_ref().map_or_else(|| tree(position, self.groups[k].len()), |hosts| hosts.node(position, &tree))
    }

    /// All ranks in their order in one chain through them, each with its group.
    fn chain(&self, order: &[usize]) -> Vec<(usize, Rank)> {
        order.iter().flat_map(|&g| self.groups[g].iter().map(move |&r| (g, r))).collect()
    }

    fn place_in_chain(&self, order: &[usize], k: usize, position: usize) -> usize {
        order.iter().take_while(|&&g| g != k).map(|&g| self.groups[g].len()).sum::<usize>() + position
    }

    /// Who comes before and after a rank in one chain through all, each with its group.
    fn beside(&self, all: &[(usize, Rank)], place: usize) -> [Option<(usize, Rank)>; 2] {
        [place.checked_sub(1).map(|before| all[before]), all.get(place + 1).copied()]
    }

    /// Messages under way between neighbours in a chain.
    fn in_flight_in_chain(&self, own: usize, group: usize) -> usize {
        if group == own { self.intra_group[own].parameters.in_flight } else { self.in_flight_between(own, group) }
    }

    /// What a rank does in one chain through all.
    fn link_of_chain(&self, all: &[(usize, Rank)], place: usize) -> Program {
        let (own, [before, after]) = (all[place].0, self.beside(all, place));
        let in_flight = |group: usize| self.in_flight_in_chain(own, group);
        let mut program = Program::new();
        for span in segments(self.bytes, self.segment) {
            let mut come: Option<OpId> = None;
            if let Some((group, before)) = before {
                program.in_flight(in_flight(group));
                come = Some(program.recv(before, span, &[]));
            }
            if let Some((group, after)) = after {
                program.in_flight(in_flight(group));
                program.send(after, span, come.as_slice());
            }
        }
        program
    }

    /// The hosts of group `k`, if it has any with several ranks.
    fn hosts_of(&self, k: usize) -> Option<Hosts> {
        self.hosts.get(k).map(|hosts| Hosts::new(hosts))
    }

    /// The lane of the `n`-th segment.
    fn lane_of(&self, n: usize) -> Lane {
        match self.inter_group {
            InterGroup::Relay if self.groups.len() > 1 => (n % (self.groups.len() - 1)) as Lane,
            _ => 0,
        }
    }

    /// What the coordinator of group `k` does with the `n`-th segment where segments are dealt out. Its intra-group broadcast is always among the
    /// jobs.
    fn part_of_relay(&self, k: usize, n: usize) -> Part {
        let others = self.groups.len() - 1;
        if others == 0 {
            return Part { from: None, jobs: vec![Job::Local(k)] };
        }
        let relay = 1 + n % others;
        let from = if k == 0 { None } else { Some(if k == relay { 0 } else { relay }) };
        let mut jobs: Vec<Job> = if k == 0 {
            vec![Job::Send { from: 0, to: relay }]
        } else if k == relay {
            (1..=others).filter(|&to| to != k).map(|to| Job::Send { from: k, to }).collect()
        } else {
            Vec::new()
        };
        jobs.push(Job::Local(k));
        Part { from, jobs }
    }

    /// The parameters of a rank inside its group. A coordinator's sends are in one lane: those to other groups must not wait for an end inside.
    fn parameters_inside(&self, k: usize, position: usize) -> Parameters {
        let said = self.intra_group[k].parameters;
        if position == 0 && self.groups.len() > 1 { Parameters { peers: 0, ..said } } else { said }
    }

    /// The whole message inside group `k`; the library's own broadcast has no program, and comes later.
    fn append_local(&self, program: &mut Program, k: usize, position: usize, after: &[OpId]) {
        let (group, intra_group) = (&self.groups[k], &self.intra_group[k]);
        let shape = Shape::new(group.len(), 0, self.bytes);
        let inside = intra_group.algorithm.program(position, &shape, &self.parameters_inside(k, position));
        let inside = inside.map(|inside| self.in_windows(inside, position));
        inside.iter().for_each(|inside| program.append(inside, |p| group[p], after));
    }

    /// What its schedule is for: the message reaches all its ranks, but for those to whom the library brings it afterwards.
    pub fn specification(&self, ranks: usize) -> Specification {
        let root = self.groups[0][0];
        let mut all = bcast::specification(&Shape::new(ranks, root, self.bytes));
        let reached = |k: usize| if self.local_native(k) { &self.groups[k][..1] } else { &self.groups[k][..] };
        let reached: BTreeSet<Rank> = (0..self.groups.len()).flat_map(reached).copied().collect();
        all.after.iter_mut().enumerate().filter(|(rank, _)| !reached.contains(rank)).for_each(|(_, pieces)| pieces.clear());
        all
    }

    /// The programs of ranks 0 to `ranks - 1`; those in no group do nothing.
    ///
    /// # Errors
    /// [`crate::error::Error::TooLarge`].
    pub fn schedule(&self, ranks: usize) -> Result<Schedule> {
        let mut places: Vec<Option<(usize, usize)>> = vec![None; ranks];
        for (k, group) in self.groups.iter().enumerate() {
            group.iter().enumerate().for_each(|(position, &r)| places[r] = Some((k, position)));
        }
        let hosts: Vec<Option<Hosts>> = (0..self.groups.len()).map(|k| self.hosts_of(k)).collect();
        let chain = if let InterGroup::Line(order) = &self.inter_group { Some((order, self.chain(order))) } else { None };
        // what follows from a place in the tree of a group, and what from the groups of neighbours in a chain
        let (in_trees, in_chain) = (Same::new(), Same::new());
        let program = |me: Rank| match (places[me], &chain) {
            (None, _) => Ok(Program::new()),
            (Some((k, position)), Some((order, all))) => {
                let place = self.place_in_chain(order, k, position);
                let beside = self.beside(all, place);
                let common = beside.map(|at| at.map(|(group, _)| self.in_flight_in_chain(k, group)));
                let peers = beside.into_iter().flatten().map(|(_, rank)| rank).collect();
                in_chain.program(common, peers, || Ok(self.link_of_chain(all, place)))
            }
            (Some((k, position)), None) => {
                let build = || Ok(self.program_at(k, position, &hosts[k]));
                let local = &self.intra_group[k];
                let alone = || Some((local.algorithm.tree?)(position, self.groups[k].len(), local.parameters.radix));
                let node = if self.segment > 0 { self.node(k, position, &hosts[k]) } else { alone() };
                match node.filter(|_| position > 0) {
                    Some(node) => {
                        in_trees.program((node.degree(), local, self.near_peers(position, &node)), node.peers(&self.groups[k]), build)
                    }
                    None => build(),
                }
            }
        };
        let segment = self.shortest_segment();
        Schedule::bounded(ranks, (self.bytes, segment), (self.messages_at_least(), MOST_MESSAGES), program)
    }

    /// The bytes of the shortest segment that the message is cut into anywhere; 0: none.
    fn shortest_segment(&self) -> usize {
        let inside = self.intra_group.iter().map(|l| l.parameters.segment);
        inside.chain([self.segment]).filter(|&s| s > 0).min().unwrap_or(0)
    }

    /// The number of messages, or less.
    fn messages_at_least(&self) -> usize {
        let crossing = pieces(self.bytes, self.segment);
        let mut all = 0usize;
        for (ranks, intra_group) in self.groups.iter().zip(&self.intra_group) {
            let algorithm = intra_group.algorithm;
            let passed_on = matches!(self.inter_group, InterGroup::Line(_)) || (self.segment > 0 && algorithm.tree.is_some());
            let inside = match algorithm.builder {
                _ if passed_on => crossing,
                Some(_) => algorithm.receives_in(self.bytes, intra_group.parameters.segment),
                None => 0,
            };
            all = all.saturating_add(crossing).saturating_add(ranks.len().saturating_sub(1).saturating_mul(inside));
        }
        // nobody sends to the root
        all.saturating_sub(crossing)
    }
}

/// Broadcasts by their names in files.
fn broadcasts<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<IntraGroup>, D::Error> {
    let named = Vec::<Named>::deserialize(deserializer)?;
    named.into_iter().map(|named| named.find(bcast::algorithm).map_err(D::Error::custom)).collect()
}

/// What the coordinator of group `k` does with each segment along a tree. Its intra-group broadcast is always among the jobs.
fn own_part(jobs: &[Job], k: usize) -> Part {
    let from = jobs.iter().find_map(|job| if let Job::Send { from, to } = *job { (to == k).then_some(from) } else { None });
    let is_own = |job: &&Job| match job {
        Job::Send { from, .. } => *from == k,
        Job::Local(g) => *g == k,
    };
    let mut own: Vec<Job> = jobs.iter().filter(is_own).copied().collect();
    if !own.contains(&Job::Local(k)) {
        own.push(Job::Local(k));
    }
    Part { from, jobs: own }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_level(inter_group: InterGroup) -> TwoLevel {
        let intra_group = IntraGroup::of(bcast::algorithm("binomial").unwrap());
        TwoLevel {
            bytes: 1000,
            groups: vec![vec![0, 3, 1], vec![2], vec![5, 4], vec![6]],
            hosts: Vec::new(),
            inter_group,
            segment: 64,
            in_flight: 2,
            near: Vec::new(),
            peers: 0,
            intra_group: vec![intra_group; 4],
        }
    }

    fn send(from: usize, to: usize) -> Job {
        Job::Send { from, to }
    }

    #[test]
    fn a_rank_in_no_group_calls_nothing() {
        let mut all = two_level(InterGroup::Relay);
        all.intra_group[0].algorithm = bcast::COLLECTIVE.native();
        assert_eq!(all.native(3).map(|call| (call.ranks, call.root)), Some((vec![0, 1, 3], 0)));
        assert!(all.native(4).is_none() && all.native(7).is_none());
        assert!(all.program(7).unwrap_err().to_string().contains("rank 7, which is in no group"));
    }

    #[test]
    fn each_fault_is_named_and_what_is_valid_can_be_run() {
        let tree = || two_level(InterGroup::Tree(vec![send(2, 3), send(0, 2), send(0, 1), Job::Local(0)]));
        for good in [tree(), two_level(InterGroup::Relay), two_level(InterGroup::Line(vec![0, 2, 1, 3]))] {
            good.validate(7).unwrap();
            crate::schedule::check(&good.schedule(7).unwrap(), &good.specification(7)).unwrap();
        }
        let with = |change: &dyn Fn(&mut TwoLevel)| {
            let mut h = tree();
            change(&mut h);
            h.validate(7).unwrap_err().to_string()
        };
        let jobs = |jobs: &[Job]| with(&|h| h.inter_group = InterGroup::Tree(jobs.to_vec()));
        let line = |order: &[usize]| with(&|h| h.inter_group = InterGroup::Line(order.to_vec()));
        let whole = [send(0, 1), send(0, 2), send(0, 3)];
        let plus = |job: Job| jobs(&[&whole[..], &[job]].concat());
        let pigeons = serde_json::to_string(&tree()).unwrap().replacen("binomial", "pigeons", 1);
        assert!(serde_json::from_str::<TwoLevel>(&pigeons).unwrap_err().to_string().contains("pigeons"));
        for (said, word) in [
            (with(&|h| h.groups = Vec::new()), "needs groups"),
            (with(&|h| h.groups[1] = Vec::new()), "each group ranks"),
            (with(&|h| h.groups[1] = vec![7]), "rank 7 is outside"),
            (with(&|h| h.groups[1] = vec![3]), "rank 3 is there twice"),
            (with(&|h| h.intra_group.truncate(3)), "4 groups and 3 broadcasts"),
            (with(&|h| h.hosts = vec![vec![0; 3], vec![1]]), "not as many"),
            (with(&|h| h.hosts = vec![vec![0; 3], vec![1], vec![2], vec![3]]), "not as many"),
            (plus(send(0, 9)), "group 9"),
            (plus(send(9, 1)), "group 9"),
            (plus(send(2, 0)), "root's group is sent to"),
            (plus(send(2, 3)), "group 3 is sent to twice"),
            (plus(Job::Local(4)), "group 4"),
            (jobs(&[&whole[..], &[Job::Local(1), Job::Local(1)]].concat()), "inside group 1 is there twice"),
            (jobs(&whole[..2]), "group 3 is not reached"),
            (jobs(&[send(0, 1), send(2, 3), send(3, 2)]), "group 2 is not reached"),
            (jobs(&[send(0, 1), send(2, 2), send(0, 3)]), "group 2 is not reached"),
            (line(&[0, 1, 2]), "does not go through"),
            (line(&[1, 0, 2, 3]), "the root's first"),
            (line(&[0, 1, 1, 3]), "does not go through"),
            (line(&[0, 1, 2, 4]), "does not go through"),
        ] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}
