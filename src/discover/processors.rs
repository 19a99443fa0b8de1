//! Groups by the network alone: a latency holds what both processors take for a message, and where hosts of one switch differ in that, they look
//! like many networks. One-to-two experiments tell both apart (LMO: Lastovetsky, Rychkov, O'Flynn, EuroPVM/MPI 2008).

use crate::cluster::{Bound, Method};
use crate::error::Result;
use crate::measure::{Experiment, Session};
use crate::topology::{LatencyMatrix, Rank};

/// From so many hosts on that are alone in their groups it is looked whether they are kept apart by their processors: with fewer there is little to gain.
const ALONE: usize = 3;

/// The network has at least this share of a latency: what is left of one that is hardly more than both processors' time is noise.
const LEAST_SHARE: f64 = 0.1;

/// The groups by the network alone where many hosts are alone in theirs, if that joins some and divides none; else the groups as they are.
pub(super) fn without_processors(
    session: &mut Session,
    leaders: &[Rank],
    matrix: &LatencyMatrix,
    groups: Vec<Vec<usize>>,
    (method, bound): (&Method, Bound),
) -> Result<Vec<Vec<usize>>> {
    if groups.iter().filter(|group| group.len() == 1).count() < ALONE {
        return Ok(groups);
    }
    let fixed = fixed_delays(session, leaders, matrix)?;
    let network = LatencyMatrix::from_pairs(matrix.len(), "measured, without processors", |a, b| {
        (matrix.get(a, b) - fixed[a] - fixed[b]).max(LEAST_SHARE * matrix.get(a, b))
    });
    let found = (method.group)(&network, bound);
    let is_whole = |group: &Vec<usize>| found.iter().any(|f| group.iter().all(|host| f.contains(host)));
    Ok(if found.len() < groups.len() && groups.iter().all(is_whole) { found } else { groups })
}

/// What a message takes of each host's processor, whatever its size: what a round trip with both of its nearest takes more than with the farther one
/// alone. The larger of both orders counts: in the other one an answer may wait for the processor.
fn fixed_delays(session: &mut Session, leaders: &[Rank], matrix: &LatencyMatrix) -> Result<Vec<f64>> {
    let n = matrix.len();
    let nearest = |v: usize| {
        let mut others: Vec<usize> = (0..n).filter(|&u| u != v).collect();
        others.sort_by(|&a, &b| matrix.get(v, a).total_cmp(&matrix.get(v, b)).then(a.cmp(&b)));
        (others[0], others[1])
    };
    let to_two = |v: usize, first: usize, second: usize| Experiment::OneToManyRoundTrip {
        root: leaders[v],
        leaves: vec![leaders[first], leaders[second]],
        out: 0,
        back: 0,
    };
    let pairs: Vec<(usize, usize)> = (0..n).map(nearest).collect();
    let both = |(v, &(j, k)): (usize, &(usize, usize))| [to_two(v, j, k), to_two(v, k, j)];
    let all: Vec<Experiment> = pairs.iter().enumerate().flat_map(both).collect();
    session.measure_well("processors apart from the network", &all)?;
    let known = all.chunks(2).map(|orders| Ok(session.samples().need(&orders[0])?.max(session.samples().need(&orders[1])?)));
    let known = known.collect::<Result<Vec<f64>>>()?;
    let alone = |(v, &(j, k)): (usize, &(usize, usize))| 2.0 * matrix.get(v, j).max(matrix.get(v, k));
    Ok(pairs.iter().enumerate().map(alone).zip(known).map(|(alone, both)| (both - alone).max(0.0)).collect())
}
