//! A broadcast over groups: between their coordinators by one of several routes, inside each group by an algorithm of its own,
//! and, where the message is cut into segments, both at once: a coordinator passes a segment on while it receives the next.

use super::{Node, Parameters, Shape, bcast};
use crate::error::Result;
use crate::intercluster::Job;
use crate::schedule::{Lane, OpId, Program, Schedule, pieces, segments};
use crate::topology::Rank;
use serde::{Deserialize, Serialize};

/// Which way the message takes between groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Down a tree. Each coordinator does its jobs in this order, for each segment; a local broadcast that is not among them comes
    /// last.
    Tree(Vec<Job>),
    /// The root deals the segments out to the other coordinators in turn, and each passes its share on to the rest: van de Geijn's
    /// scatter and allgather, pipelined. Every link between two groups carries a part of the message, and the root sends it once.
    Relay,
    /// One chain through all ranks, group by group in this order: every rank receives the message once and sends it once, so that no port
    /// carries it twice.
    Line(Vec<usize>),
}

/// The broadcast inside a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Local {
    /// The algorithm's name.
    pub algorithm: String,
    /// What was chosen about it.
    pub parameters: Parameters,
}

/// A broadcast over groups.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hierarchy {
    /// Size of the message.
    pub bytes: usize,
    /// Ranks by group: the root's group first, in each group the coordinator first; the root coordinates its own.
    pub groups: Vec<Vec<Rank>>,
    /// The host of each rank, in the order of `groups`: segments go down a tree of the hosts' first ranks, and from each of them down a
    /// tree inside its host. Empty: each rank has a host of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Vec<usize>>,
    /// The way between them.
    pub route: Route,
    /// Bytes of a segment; 0: the whole message at once.
    pub segment: usize,
    /// The broadcast inside each group. With segments, those that are plain trees pass each segment on at once; others start when
    /// the whole message is there.
    pub local: Vec<Local>,
}

/// What one coordinator does with one segment.
struct Part {
    lane: Lane,
    /// The group that it comes from.
    from: Option<usize>,
    jobs: Vec<Job>,
}

impl Hierarchy {
    /// The position in `groups` of a rank's group.
    pub fn group_of(&self, rank: Rank) -> usize {
        self.groups.iter().position(|g| g.contains(&rank)).unwrap_or(0)
    }

    /// All ranks, group by group; the root is the first.
    pub fn ranks(&self) -> Vec<Rank> {
        self.groups.concat()
    }

    /// How many lanes its programs have.
    pub fn lanes(&self) -> usize {
        if self.route == Route::Relay { (self.groups.len() - 1).max(1) } else { 1 }
    }

    /// True if a group's local broadcast is the library's own, which comes after the program.
    pub fn local_native(&self, k: usize) -> bool {
        self.groups[k].len() > 1 && self.local[k].algorithm == "native"
    }

    /// What a rank sends and receives; local broadcasts by the library come after it.
    ///
    /// # Errors
    /// An algorithm that there is not.
    pub fn program(&self, me: Rank) -> Result<Program> {
        if let Route::Line(order) = &self.route {
            return Ok(self.link_of_chain(order, me));
        }
        let k = self.group_of(me);
        let local = bcast::algorithm(&self.local[k].algorithm)?;
        let group = &self.groups[k];
        let position = group.iter().position(|&r| r == me).unwrap_or(0);
        let pipelined = local.tree.filter(|_| self.segment > 0);
        let node = pipelined.map(|tree| self.node(k, position, &|v, n| tree(v, n, self.local[k].parameters.radix)));
        let mut program = Program::new();
        let mut got: Vec<OpId> = Vec::new();
        for (n, span) in segments(self.bytes, self.segment).enumerate() {
            let part = self.part(k, n);
            program.in_lane(part.lane);
            if position > 0 {
                let Some(node) = &node else { break };
                let come: Vec<OpId> = node.parent.iter().map(|&p| program.recv(group[p], span, &[])).collect();
                node.children.iter().for_each(|&c| drop_id(program.send(group[c], span, &come)));
                continue;
            }
            let come: Vec<OpId> = part.from.iter().map(|&g| program.recv(self.groups[g][0], span, &[])).collect();
            got.extend(&come);
            let whole = self.segment == 0 || self.bytes <= self.segment;
            for job in part.jobs {
                match (job, &node) {
                    (Job::Send { to, .. }, _) => drop_id(program.send(self.groups[to][0], span, &come)),
                    (Job::Local(_), Some(node)) => node.children.iter().for_each(|&c| drop_id(program.send(group[c], span, &come))),
                    (Job::Local(_), None) if whole => self.append_local(&mut program, k, position, &come),
                    (Job::Local(_), None) => {}
                }
            }
            if node.is_none() && whole {
                return Ok(program);
            }
        }
        if node.is_none() {
            program.in_lane(0);
            self.append_local(&mut program, k, position, &got);
        }
        Ok(program)
    }

    /// What a rank does in one chain through all.
    fn link_of_chain(&self, order: &[usize], me: Rank) -> Program {
        let all: Vec<Rank> = order.iter().flat_map(|&g| self.groups[g].iter().copied()).collect();
        let place = all.iter().position(|&r| r == me).unwrap_or(0);
        let mut program = Program::new();
        for span in segments(self.bytes, self.segment) {
            let come: Vec<OpId> = place.checked_sub(1).map(|before| program.recv(all[before], span, &[])).into_iter().collect();
            all.get(place + 1).map(|&after| program.send(after, span, &come));
        }
        program
    }

    /// The place of a position of group `k` in its tree of hosts and of ranks inside hosts.
    fn node(&self, k: usize, position: usize, tree: &dyn Fn(usize, usize) -> Node) -> Node {
        let Some(hosts) = self.hosts.get(k) else { return tree(position, self.groups[k].len()) };
        let same: Vec<usize> = (0..hosts.len()).filter(|&p| hosts[p] == hosts[position]).collect();
        let inside = tree(same.iter().position(|&p| p == position).unwrap_or(0), same.len());
        let mut node = Node { parent: inside.parent.map(|v| same[v]), children: Vec::new() };
        if position == same[0] {
            let leaders: Vec<usize> = (0..hosts.len()).filter(|&p| !hosts[..p].contains(&hosts[p])).collect();
            let among = tree(leaders.iter().position(|&p| p == position).unwrap_or(0), leaders.len());
            node.parent = among.parent.map(|v| leaders[v]);
            node.children = among.children.into_iter().map(|v| leaders[v]).collect();
        }
        node.children.extend(inside.children.into_iter().map(|v| same[v]));
        node
    }

    /// What the coordinator of group `k` does with the `n`-th segment. Its local broadcast is always among the jobs.
    fn part(&self, k: usize, n: usize) -> Part {
        let others = self.groups.len() - 1;
        match &self.route {
            Route::Tree(jobs) => {
                let parent = |job: &Job| matches!(job, Job::Send { to, .. } if *to == k);
                let from = jobs.iter().find(|j| parent(j)).and_then(|j| if let Job::Send { from, .. } = j { Some(*from) } else { None });
                let own = |job: &&Job| match job {
                    Job::Send { from, .. } => *from == k,
                    Job::Local(g) => *g == k,
                };
                let mut own: Vec<Job> = jobs.iter().filter(own).copied().collect();
                if !own.contains(&Job::Local(k)) {
                    own.push(Job::Local(k));
                }
                Part { lane: 0, from, jobs: own }
            }
            // it has programs of its own
            Route::Line(_) => Part { lane: 0, from: None, jobs: Vec::new() },
            Route::Relay if others == 0 => Part { lane: 0, from: None, jobs: vec![Job::Local(k)] },
            Route::Relay => {
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
                Part { lane: (relay - 1) as Lane, from, jobs }
            }
        }
    }

    fn append_local(&self, program: &mut Program, k: usize, position: usize, after: &[OpId]) {
        let (group, local) = (&self.groups[k], &self.local[k]);
        let Some(build) = bcast::algorithm(&local.algorithm).ok().and_then(|a| a.builder) else { return };
        let shape = Shape { ranks: group.len(), root: 0, bytes: self.bytes };
        program.append(&build(position, &shape, &local.parameters), |p| group[p], after);
    }

    /// The programs of ranks 0 to `ranks - 1`; those in no group do nothing.
    ///
    /// # Errors
    /// An algorithm that there is not, or [`crate::error::Error::TooLarge`].
    pub fn schedule(&self, ranks: usize) -> Result<Schedule> {
        let mut takes_part = vec![false; ranks];
        self.groups.iter().flatten().for_each(|&r| takes_part[r] = true);
        let program = |me: Rank| if takes_part[me] { self.program(me) } else { Ok(Program::new()) };
        let segment = self.shortest_segment();
        Schedule::bounded(ranks, (self.bytes, segment), self.messages_at_least()?, program)
    }

    /// The bytes of the shortest segment that the message is cut into anywhere; 0: none.
    fn shortest_segment(&self) -> usize {
        let inside = self.local.iter().map(|l| l.parameters.segment);
        inside.chain([self.segment]).filter(|&s| s > 0).min().unwrap_or(0)
    }

    /// The number of messages, or less.
    fn messages_at_least(&self) -> Result<usize> {
        let crossing = pieces(self.bytes, self.segment);
        let mut all = 0usize;
        for (ranks, local) in self.groups.iter().zip(&self.local) {
            let algorithm = bcast::algorithm(&local.algorithm)?;
            let passed_on = matches!(self.route, Route::Line(_)) || (self.segment > 0 && algorithm.tree.is_some());
            let inside = match algorithm.builder {
                _ if passed_on => crossing,
                Some(_) => algorithm.heard_in(self.bytes, local.parameters.segment),
                None => 0,
            };
            all = all.saturating_add(crossing).saturating_add(ranks.len().saturating_sub(1).saturating_mul(inside));
        }
        // nobody sends to the root
        Ok(all.saturating_sub(crossing))
    }
}

fn drop_id(_: OpId) {}
