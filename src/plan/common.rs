//! What broadcasts over the groups of one communicator have in common, whatever the way between groups: how long trees take inside these, what crosses
//! them, and what messages cost.

use super::across::problem;
use super::sites::Sites;
use super::{Location, MANY_RANKS, PolyModel};
use crate::collective::{Algorithm, Built, Parameters, Shape};
use crate::error::{Error, Result};
use crate::intercluster::Problem;
use crate::model::Among;
use crate::policy::CompiledPolicy;
use crate::predict::{EVENTS, replay};
use crate::topology::Rank;
use crate::two_level::{InterGroup, InterGroupAlgorithm, ROUTED};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// How long a tree takes inside a group, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct TreeTime {
    /// Until its last rank has the message.
    pub all_s: f64,
    /// So long it keeps the coordinator from sending.
    pub coordinator_s: f64,
    /// The events that its replay took.
    events: u64,
}

/// A tree with the bytes that pass it, and those of the whole message, which say what model is selected.
type Tree = (&'static str, usize, usize);

/// What trees take inside groups of one communicator, by their ranks. It hangs neither on the way between groups nor on the root, unless that is one of them.
#[derive(Debug, Default)]
pub(super) struct InsideGroups(Mutex<FxHashMap<Tree, FxHashMap<Vec<Rank>, TreeTime>>>);

impl InsideGroups {
    fn get(&self, tree: &Tree, ranks: &[Rank]) -> Option<TreeTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(tree)?.get(ranks).copied()
    }

    /// How many trees in how many groups are known.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(FxHashMap::len).sum()
    }

    fn keep(&self, tree: Tree, ranks: &[Rank], found: TreeTime) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(tree).or_default().insert(ranks.to_vec(), found);
    }
}

/// What crosses is kept of so many pairs of groups, in 16 MB, at all sizes together.
const MOST_BETWEEN: usize = 1 << 20;

/// What broadcasts among these members have in common.
pub(super) struct Common<'a> {
    pub policy: &'a CompiledPolicy,
    pub members: &'a [Location],
    /// Schedules of groups of as many ranks.
    pub built: Built,
    inside: Arc<InsideGroups>,
    /// The costs that were asked for last, and for which bytes.
    costs: RefCell<Option<(usize, Rc<PolyModel<'a>>)>>,
    /// What crosses between coordinators, by bytes of messages, as was asked for last.
    between: RefCell<FxHashMap<usize, (Vec<Location>, Problem)>>,
    /// By bytes of messages.
    sites: RefCell<FxHashMap<usize, Rc<Sites>>>,
    /// Trees between coordinators: the longest messages are tried in the segments of shorter ones, inside whose groups they mostly take as long.
    trees: RefCell<FxHashMap<Crossing, InterGroup>>,
}

/// What a tree between coordinators hangs on: bytes, who they are, and what is done inside their groups takes, and keeps them, in the bits of seconds.
#[derive(PartialEq, Eq, Hash)]
struct Crossing {
    bytes: usize,
    coordinators: Vec<(usize, usize)>,
    inside: Vec<(u64, u64)>,
}

impl<'a> Common<'a> {
    /// Nothing is known yet.
    pub fn new(policy: &'a CompiledPolicy, members: &'a [Location]) -> Common<'a> {
        Common::knowing(policy, members, Arc::default())
    }

    /// What trees take inside groups may be known.
    pub fn knowing(policy: &'a CompiledPolicy, members: &'a [Location], inside: Arc<InsideGroups>) -> Common<'a> {
        let built = if members.len() >= MANY_RANKS { Built::for_many_ranks() } else { Built::default() };
        Common {
            policy,
            members,
            built,
            inside,
            costs: RefCell::default(),
            between: RefCell::default(),
            sites: RefCell::default(),
            trees: RefCell::default(),
        }
    }

    /// What messages cost in a broadcast of so many bytes.
    ///
    /// # Errors
    /// As [`PolyModel::new`].
    pub fn costs(&self, bytes: usize) -> Result<Rc<PolyModel<'a>>> {
        if let Some((of, known)) = &*self.costs.borrow()
            && *of == bytes
        {
            return Ok(Rc::clone(known));
        }
        let costs = Rc::new(PolyModel::new(self.policy, self.members, ROUTED, bytes)?);
        *self.costs.borrow_mut() = Some((bytes, Rc::clone(&costs)));
        Ok(costs)
    }

    /// What a tree takes inside a group for a piece of a message.
    ///
    /// # Errors
    /// The library's own, whose messages are not known, or as [`PolyModel::new`].
    pub fn inside(&self, tree: &'static Algorithm, ranks: &[Rank], piece: usize, bytes: usize) -> Result<TreeTime> {
        let key = (tree.name, piece, bytes);
        if let Some(known) = self.inside.get(&key, ranks) {
            // as if it was replayed again: what is compared must not hang on what came before
            EVENTS.set(EVENTS.get() + known.events);
            return Ok(known);
        }
        let unknown = || Error::invalid(format!("predict {} inside a group: its messages are not known", tree.name));
        let schedule = self.built.schedule(tree, &Shape::new(ranks.len(), 0, piece), &Parameters::default())?.ok_or_else(unknown)?;
        let (costs, before) = (self.costs(bytes)?, EVENTS.get());
        let found = replay(&schedule, &Among { inner: &*costs, positions: ranks.to_vec() })?;
        let (all_s, coordinator_s) = (found.completion(), found.port_free.first().copied().unwrap_or(0.0));
        let inside = TreeTime { all_s, coordinator_s, events: EVENTS.get() - before };
        self.inside.keep(key, ranks, inside);
        Ok(inside)
    }

    /// How many messages of so many bytes links between the groups want under way, and which of these are near each other.
    pub fn sites(&self, bytes: usize) -> Rc<Sites> {
        let find = || Rc::new(Sites::new(self.policy, &self.members.iter().map(|m| m.group).collect(), bytes));
        Rc::clone(self.sites.borrow_mut().entry(bytes).or_insert_with(find))
    }

    /// How a message of these bytes crosses between coordinators by an algorithm, where what is done inside their groups takes so long, and keeps them so long.
    ///
    /// # Errors
    /// As [`problem`].
    pub fn inter_group(
        &self,
        algorithm: InterGroupAlgorithm,
        (coordinators, bytes): (&[Location], usize),
        (local, local_busy): (Vec<f64>, Vec<f64>),
    ) -> Result<InterGroup> {
        if algorithm != InterGroupAlgorithm::Tree {
            return Ok(algorithm.inter_group(&self.problem(coordinators, bytes, local, local_busy)?));
        }
        let crossing = Crossing {
            bytes,
            coordinators: coordinators.iter().map(|c| (c.group, c.position)).collect(),
            inside: local.iter().zip(&local_busy).map(|(all, busy)| (all.to_bits(), busy.to_bits())).collect(),
        };
        if let Some(known) = self.trees.borrow().get(&crossing) {
            return Ok(known.clone());
        }
        let found = algorithm.inter_group(&self.problem(coordinators, bytes, local, local_busy)?);
        self.trees.borrow_mut().insert(crossing, found.clone());
        Ok(found)
    }

    /// As [`problem`].
    ///
    /// # Errors
    /// As there.
    pub fn problem(&self, coordinators: &[Location], bytes: usize, local: Vec<f64>, local_busy: Vec<f64>) -> Result<Problem> {
        if let Some((between, known)) = self.between.borrow().get(&bytes)
            && between == coordinators
        {
            return Ok(Problem { local, local_busy, ..known.clone() });
        }
        let found = problem(self.policy, coordinators, bytes, local, local_busy)?;
        let mut between = self.between.borrow_mut();
        if (between.len() + 1) * coordinators.len().pow(2) > MOST_BETWEEN {
            between.clear();
        }
        between.insert(bytes, (coordinators.to_vec(), found.clone()));
        Ok(found)
    }
}
