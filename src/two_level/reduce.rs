//! The reduction through coordinators: each group's vectors are combined up its tree, and what coordinators have goes to the root by one of its
//! algorithms, segment by segment.

use super::blocks::{BETWEEN, DOWN, UP};
use super::coordinated::{Coordinated, Part, Through};
use crate::collective::data_flow::DataFlow;
use crate::collective::fold::{places, up};
use crate::collective::{Shape, bcast, reduce};
use crate::error::Result;
use crate::schedule::{Buffer, Program, Span};

pub(super) static THROUGH: Through = Through {
    collective: &reduce::COLLECTIVE,
    inside: || bcast::trees().collect(),
    between: || reduce::COLLECTIVE.built().filter(|a| !a.segmented).collect(),
    segmented: true,
    fits: Coordinated::keeps_order,
    longest_message: |_, shape| shape.bytes,
    program,
};

fn program(part: &Part) -> Result<Program> {
    let (shape, mut flow) = (part.shape, DataFlow::new());
    let (me, top) = (part.ranks()[part.position], part.groups[0][0]);
    let given = if shape.in_place && me == shape.root { Span::output(0, shape.bytes) } else { Span::input(0, shape.bytes) };
    let home = if me == shape.root { Span::output(0, shape.bytes) } else { Span::scratch(0, shape.bytes) };
    combine_up(&mut flow, part, (given, home), shape.bytes);
    if part.parent.is_none() {
        between_coordinators(&mut flow, part, home)?;
    }
    // an operation that does not commute ends at the first rank
    flow.in_lane(DOWN);
    for segment in shape.segments(part.segment).filter(|_| top != shape.root) {
        if me == top {
            flow.send(shape.root, segment.within(home));
        } else if me == shape.root {
            flow.recv(top, segment.within(home));
        }
    }
    Ok(flow.done())
}

/// What coordinators have at `home` goes to the first one.
fn between_coordinators(flow: &mut DataFlow, part: &Part, home: Span) -> Result<()> {
    let shape = part.shape;
    let among = Shape { ranks: part.groups.len(), root: 0, in_place: true, ..*shape };
    let (first, mut most) = (flow.scratch(), 0);
    let mut known: Option<(usize, Program)> = None;
    for (k, segment) in shape.segments(part.segment).enumerate() {
        // all but some are as long as the one before
        let (_, between) = match known.take().filter(|(len, _)| *len == segment.len) {
            Some(same) => known.insert(same),
            None => known.insert((segment.len, part.between(&Shape { bytes: segment.len, ..among })?)),
        };
        // the first one is the longest
        most = between.scratch().max(most).next_multiple_of(size_of::<u128>());
        flow.embed(
            between,
            shape,
            (BETWEEN, 0),
            |group| part.groups[group][0],
            |span| match span.buffer {
                // in turns: one is combined while others are under way, in no more memory than a tree's
                Buffer::Scratch => Span { offset: first + k % places(most).min(part.under_way() + 1) * most + span.offset, ..span },
                _ => span.within(segment.within(home)),
            },
        );
    }
    Ok(())
}

/// Combines the vectors of a group up its tree, segment by segment: from where each rank's lies given, to where the coordinator wants it.
pub(super) fn combine_up(flow: &mut DataFlow, part: &Part, places: (Span, Span), bytes: usize) {
    let ranks = part.ranks();
    let group = Shape { ranks: ranks.len(), root: 0, bytes, ..*part.shape };
    flow.in_lane(UP);
    up(flow, part.position, &group, part.segment, places, |v, _| part.node(v), |position| ranks[position]);
}

#[cfg(test)]
mod tests {
    use crate::collective::{Algorithm, Parameters, bcast, reduce};
    use crate::schedule::check;
    use crate::two_level::{Coordinated, IntraGroup};

    #[test]
    fn what_a_coordinator_receives_into_is_as_much_as_is_under_way() {
        let (segment, bytes) = (8 << 10, 4 << 20);
        let part = |algorithm: &'static Algorithm, in_flight| IntraGroup {
            algorithm,
            parameters: Parameters { in_flight, ..Parameters::default() },
        };
        let of = |algorithm: &'static str, in_flight: usize| {
            let between = part(reduce::COLLECTIVE.algorithm(algorithm).unwrap(), in_flight);
            let groups = vec![vec![0], vec![1], vec![2], vec![3]];
            let through = Coordinated { collective: &reduce::COLLECTIVE, groups, inside: part(bcast::BINOMIAL, 0), between, segment };
            let schedule = through.schedule(&through.shape(bytes)).unwrap();
            check(&schedule, &through.specification(&through.shape(bytes))).unwrap();
            schedule.programs[0].scratch()
        };
        // in the chain one sends to the root, in the star three do
        assert_eq!([of("chain", 4), of("chain", 16)], [5 * segment, 17 * segment]);
        assert_eq!([of("flat", 4), of("flat", 16)], [3 * 5 * segment, 3 * 17 * segment]);
        assert!(of("flat", 0) <= bytes, "nothing is said");
    }
}
