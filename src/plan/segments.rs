//! The segments in which messages through coordinators are tried.

use super::{Form, Location, PolyModel};
use crate::collective::{Collective, Shape, Size};
use crate::decide::LEAST_ACROSS;
use crate::error::Result;
use crate::model::HANDSHAKE;
use crate::policy::CompiledPolicy;
use crate::schedule::MOST_SEGMENTS;
use crate::two_level::{Coordinated, through};

/// What goes through coordinators is first compared as a whole and in about so many pieces, and the best in segments of all sizes: which of them is best
/// hangs less on the segments than on who sends to whom.
const PIECES: usize = 32;
/// Segments of just below where many libraries shake hands are tried too. It is one of the sizes that are tried, and no limit: where a link's own is
/// another, what wins by it is what models predict and runs measure. It does not follow the links' tables, which change with every run that is made:
/// what tuning tries next must be the same when it is taken up again.
pub(super) const BELOW_HANDSHAKE: usize = HANDSHAKE - (1 << 10);

/// Segments worth trying where the longest message that is cut has so many bytes: doubled from the least one on, as far as that has at most [`MOST_SEGMENTS`].
pub(super) fn segments(collective: &Collective, longest: usize) -> Vec<usize> {
    let few = |&s: &usize| s < longest && longest.div_ceil(s) <= MOST_SEGMENTS;
    // blocks go on as a whole, so that what is to be had is below the handshake
    let doubled = (0..).map(|k| LEAST_ACROSS << k).take_while(|&s| s < longest && collective.size != Size::Block);
    let mut all: Vec<usize> = doubled.chain([BELOW_HANDSHAKE]).filter(few).collect();
    all.push(0);
    all.sort_unstable();
    all
}

/// Of the segments worth trying those tried first: none, the one just below the handshake, and the one that makes some pieces.
pub(super) fn few_segments(collective: &Collective, longest: usize) -> Vec<usize> {
    let all = segments(collective, longest);
    let wanted = if collective.size == Size::Block { BELOW_HANDSHAKE } else { longest / PIECES };
    let near = near(&all, wanted);
    all.into_iter().filter(|&s| s == 0 || s == near || s == BELOW_HANDSHAKE).collect()
}

/// Where it goes through coordinators, the same in segments of all sizes, of which as many are under way as their links want.
///
/// # Errors
/// The policy lacks a link, or an algorithm that there is not.
pub fn in_all_segments(policy: &CompiledPolicy, members: &[Location], form: &Form, shape: &Shape) -> Result<Vec<Form>> {
    let others = in_segments_of_all_sizes(form, shape);
    let costs = PolyModel::new(policy, members, form.collective(), shape.bytes)?;
    others.into_iter().map(|other| other.with_flow(&costs, shape)).collect()
}

/// As [`in_all_segments`], where it is left open how many are under way.
pub(super) fn in_segments_of_all_sizes(form: &Form, shape: &Shape) -> Vec<Form> {
    let Some(coordinated) = form.coordinated() else { return Vec::new() };
    let through = through(coordinated.collective).filter(|through| through.segmented);
    let longest = through.map(|through| (through.longest_message)(&coordinated.groups, shape));
    let sizes = longest.map_or(Vec::new(), |longest| segments(coordinated.collective, longest));
    sizes.into_iter().map(|segment| in_segment(coordinated, segment)).filter(|other| other.fits(shape)).collect()
}

/// The same in segments of another size, of which as many are under way as their own links want.
pub(super) fn in_segment(coordinated: &Coordinated, segment: usize) -> Form {
    let mut other = Coordinated { segment, ..coordinated.clone() };
    (other.inside.parameters.in_flight, other.between.parameters.in_flight) = (0, 0);
    Form::Coordinated(other)
}

/// The segment that is nearest to a size.
fn near(segments: &[usize], bytes: usize) -> usize {
    segments.iter().copied().min_by_key(|s| s.abs_diff(bytes)).unwrap_or(0)
}
