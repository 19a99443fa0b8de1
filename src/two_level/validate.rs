//! Whether a broadcast over groups that was read can be run.

use super::{InterGroup, Near, TwoLevel};
use crate::error::{Error, Result};
use crate::intercluster::Job;
use crate::topology::check_ranks;

impl TwoLevel {
    /// Checks one that was read, over so many ranks: everything else here trusts it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong.
    pub fn validate(&self, ranks: usize) -> Result<()> {
        let n = self.groups.len();
        let wrong = |reason: String| Err(Error::Invalid(reason));
        if n == 0 || self.groups.iter().any(Vec::is_empty) {
            return wrong("a broadcast over groups needs groups, and each group ranks".into());
        }
        check_ranks(&self.ranks(), ranks)?;
        if self.intra_group.len() != n {
            return wrong(format!("there are {n} groups and {} broadcasts inside them", self.intra_group.len()));
        }
        let sizes = |all: &[Vec<usize>]| all.iter().map(Vec::len).collect::<Vec<_>>();
        if !self.hosts.is_empty() && sizes(&self.hosts) != sizes(&self.groups) {
            return wrong("the hosts are not as many as the ranks, group by group".into());
        }
        let placed = if n == 1 { self.groups[0].len() } else { n };
        let has_sites = |near: &Near| near.sites.len() == placed;
        if !self.near.iter().all(has_sites) {
            return wrong("the sites are not as many as the groups, or the ranks of one algorithm over all".into());
        }
        match &self.inter_group {
            InterGroup::Tree(jobs) => check_tree(jobs, n),
            InterGroup::Relay => Ok(()),
            InterGroup::Line(order) if order.len() == n && order[0] == 0 => check_ranks(order, n).or_else(|_| wrong_line(order, n)),
            InterGroup::Line(order) => wrong_line(order, n),
        }
    }
}

fn wrong_line(order: &[usize], groups: usize) -> Result<()> {
    Err(Error::Invalid(format!("the line {order:?} does not go through each of {groups} groups once, the root's first")))
}

/// Checks that jobs send to each group once, but to the root's, along ways that begin there, and that no intra-group broadcast is there twice.
fn check_tree(jobs: &[Job], groups: usize) -> Result<()> {
    let wrong = |reason: String| Err(Error::Invalid(reason));
    let (mut senders, mut locals) = (vec![None; groups], vec![false; groups]);
    for job in jobs {
        match *job {
            Job::Send { from, to } if from >= groups || to >= groups => {
                return wrong(format!("group {} is sent to or from, and there are {groups}", from.max(to)));
            }
            Job::Send { to: 0, .. } => return wrong("the root's group is sent to".into()),
            Job::Send { to, .. } if senders[to].is_some() => return wrong(format!("group {to} is sent to twice")),
            Job::Send { from, to } => senders[to] = Some(from),
            Job::Local(k) if k >= groups => return wrong(format!("group {k} has a broadcast inside, and there are {groups}")),
            Job::Local(k) if std::mem::replace(&mut locals[k], true) => {
                return wrong(format!("the broadcast inside group {k} is there twice"));
            }
            Job::Local(_) => {}
        }
    }
    // a way back to the root is no longer than there are groups
    for group in 1..groups {
        let (mut at, mut steps) = (group, 0);
        while at != 0 {
            steps += 1;
            match senders[at].filter(|_| steps < groups) {
                Some(sender) => at = sender,
                None => return wrong(format!("group {group} is not reached from the root's")),
            }
        }
    }
    Ok(())
}
