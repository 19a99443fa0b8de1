//! How the calls of an application scale, by name, size, and the processes that they are among.

use super::among::Part;
use super::{Call, Run, Said, Series};
use serde::Serialize;

/// How the calls of one name scale.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallLaw {
    /// The name.
    pub name: String,
    /// The how-manieth of the parts of all processes that they are among; 0 for those among all.
    pub nth: usize,
    /// How the part scales.
    pub part: Option<PartLaw>,
    /// Numbers of processes without such calls, where others have calls among others.
    pub without: Vec<usize>,
    /// The how-manieth of their sizes, where they are told apart.
    pub size: usize,
    /// Calls of a process.
    pub count: Series,
    /// Bytes of a call; none where it sends none.
    pub bytes: Option<Series>,
    /// Who says so.
    pub said: Said,
}

/// How a part of all processes scales.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartLaw {
    /// Its processes.
    pub ranks: Series,
    /// Those that were seen, and among how many; by these, ascending.
    pub seen: Vec<(usize, Part)>,
}

impl PartLaw {
    /// Among so many: as it was seen there, and else as the law says; parts that divide all processes divide them there, too.
    pub(super) fn at(&self, all: usize) -> Part {
        let far = |of: usize, from: f64| (of as f64 / from).ln().abs();
        let nearest = self.seen.iter().min_by(|a, b| far(a.0, all as f64).total_cmp(&far(b.0, all as f64)));
        let Some(&(among, part)) = nearest else { return Part::new(all, None) };
        if among == all {
            return part;
        }
        let wanted = self.ranks.at(all).value;
        let divides = self.seen.iter().all(|(among, part)| among.is_multiple_of(part.ranks));
        let divisors = || (2..=all).filter(|k| all.is_multiple_of(*k)).min_by(|a, b| far(*a, wanted).total_cmp(&far(*b, wanted)));
        let is_near = |k: &usize| divides && far(*k, wanted) <= NEAR.ln();
        let ranks = divisors().filter(is_near).unwrap_or((wanted.round() as usize).clamp(all.min(2), all));
        let is_apart = |stride: usize| stride > 1 && stride * part.ranks == among;
        let as_far = |of: usize| (of as f64 * ranks as f64 / part.ranks as f64).round() as usize;
        Part {
            ranks,
            stride: part.stride.map(|stride| if is_apart(stride) { all / ranks } else { stride }),
            range: part.range.map(|(least, most)| (as_far(least).clamp(1, all), as_far(most).clamp(1, all))),
        }
    }
}

impl CallLaw {
    /// True if there are such calls, by the nearest number of processes that was run.
    pub(super) fn is_called(&self, ranks: usize) -> bool {
        let far = |of: usize| (of as f64 / ranks as f64).ln().abs();
        let with = self.count.earlier.iter().flat_map(|e| &e.points).chain(&self.count.points).map(|p| (p.0, true));
        let all = with.chain(self.without.iter().map(|p| (*p, false)));
        // of two as near, that of the fewer
        all.min_by(|a, b| far(a.0).total_cmp(&far(b.0)).then(a.0.cmp(&b.0))).is_none_or(|nearest| nearest.1)
    }
}

/// A part that divides all processes is one that is off what its law says by no more than this factor.
const NEAR: f64 = 1.5;

/// What makes calls the same ones in several runs.
pub(super) type Kind<'a> = ((&'a str, usize), usize);

fn kind(call: &Call) -> Kind<'_> {
    (call.kind(), call.size)
}

fn call_of<'a>(run: &'a Run, of: Kind) -> Option<&'a Call> {
    run.calls.iter().find(|c| kind(c) == of)
}

/// The kinds of calls of runs of several processes.
pub(super) fn kinds<'a>(runs: &'a [Run]) -> Vec<Kind<'a>> {
    let mut kinds: Vec<Kind<'a>> = runs.iter().filter(|r| r.ranks > 1).flat_map(|r| r.calls.iter().map(kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// How calls of a kind scale; runs of one process have nobody to send to. Where some runs say how many bytes they send, what the others' time allows is no matter.
pub(super) fn call_law(runs: &[Run], of: Kind) -> Option<CallLaw> {
    let several = || runs.iter().filter(|r| r.ranks > 1);
    let own = || several().filter_map(|run| call_of(run, of));
    let said = own().map(|call| call.said).min()?;
    let points = |value: &dyn Fn(&Call) -> f64| -> Vec<(usize, f64)> {
        several().filter_map(|r| Some((r.ranks, value(call_of(r, of)?)))).filter(|p| p.1 > 0.0).collect()
    };
    let known = Series::decided(&points(&|c| if c.said.is_known() { c.bytes } else { 0.0 }));
    // one number of processes tells no law for others
    let (said, bytes) = if own().all(|call| call.said.is_known()) || known.as_ref().is_some_and(Series::is_of_several) {
        (said, known)
    } else {
        // times tell no law that breaks
        (said.max(Said::Time), Series::decided(&points(&|c| c.bytes)).map(Series::unbroken))
    };
    let count = Series::decided(&points(&|c| c.count))?;
    let ((name, nth), size) = of;
    let ranks = Series::decided(&points(&|c| c.part.map_or(0.0, |part| part.ranks as f64)));
    let mut seen: Vec<(usize, Part)> = several().filter_map(|r| Some((r.ranks, call_of(r, of)?.part?))).collect();
    seen.dedup_by_key(|seen| seen.0);
    let in_parts = runs.iter().any(|r| r.calls.iter().any(|c| c.name == name && c.nth > 0));
    let lacks = |run: &&Run| in_parts && call_of(run, of).is_none();
    Some(CallLaw {
        name: name.into(),
        nth,
        part: ranks.map(|ranks| PartLaw { ranks, seen }),
        without: several().filter(lacks).map(|run| run.ranks).collect(),
        size,
        count,
        bytes,
        said,
    })
}

/// How the calls scale.
pub(super) fn call_laws(runs: &[Run]) -> Vec<CallLaw> {
    kinds(runs).into_iter().filter_map(|kind| call_law(runs, kind)).collect()
}
