//! What all ranks that the policy knows do, from the first one as root, for sizes that several sections show.

use super::choices::tuned;
use crate::collective::Collective;
use crate::error::Result;
use crate::plan::{Location, Plan, everybody, plan};
use crate::policy::CompiledPolicy;
use crate::topology::Rank;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// The sizes of decision maps, and of the slider.
const SIZES: [usize; 7] = [1, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// The same among more ranks than [`MANY`]: there each decision and each schedule takes longer.
const FEW_SIZES: [usize; 4] = [1, 8 << 10, 256 << 10, 4 << 20];
const MANY: usize = 512;

/// Plans, each made once.
pub(super) struct Plans<'a> {
    pub compiled: &'a CompiledPolicy,
    /// All ranks.
    pub members: Vec<Location>,
    /// The sizes that are shown, of what has one.
    pub sizes: &'static [usize],
    from_first: BTreeMap<(&'static Collective, usize), Plan>,
}

impl Plans<'_> {
    /// Of the collectives that the policy has rows for.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn new(compiled: &CompiledPolicy) -> Result<Plans<'_>> {
        let members = everybody(&compiled.policy);
        let sizes: &'static [usize] = if members.len() > MANY { &FEW_SIZES } else { &SIZES };
        let of = |c: &'static Collective| c.sizes(sizes).into_iter().map(move |bytes| (c, bytes));
        let all: Vec<(&'static Collective, usize)> = tuned(&compiled.policy).flat_map(of).collect();
        let planned =
            |(c, bytes): (&'static Collective, usize)| Ok(((c, bytes), plan(compiled, &members, c, &c.shape(members.len(), 0, bytes))?));
        let from_first = all.into_par_iter().map(planned).collect::<Result<_>>()?;
        Ok(Plans { compiled, members, sizes, from_first })
    }

    /// What all ranks do.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn of_all(&self, collective: &'static Collective, root: Rank, bytes: usize) -> Result<Plan> {
        match self.from_first.get(&(collective, bytes)).filter(|_| root == 0) {
            Some(known) => Ok(known.clone()),
            None => plan(self.compiled, &self.members, collective, &collective.shape(self.members.len(), root, bytes)),
        }
    }
}
