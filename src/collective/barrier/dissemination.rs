//! Dissemination of radix r: in round k every rank tells the r - 1 ranks that are 1, 2, ..., r - 1 times `r^k` after it, and hears from
//! as many before it. `ceil(log_r P) ((r-1) g + L)`: all ranks are done at once, after as few latencies as any barrier takes: one, where the radix is the
//! number of ranks, which is best of few coordinators that are far from each other.

use super::super::{Algorithm, Parameters, Shape};
use crate::schedule::{OpId, Program, Span};
use crate::topology::Rank;

/// all to all in rounds, the distance growing
pub static ALGORITHM: Algorithm = Algorithm {
    name: "dissemination",
    summary: "rounds in which every rank signals those at a distance that grows by the radix (default 2)",
    citation: "Hensgen, Finkel, Manber, Int. J. Parallel Programming 17 (1988); radix: Hoefler et al., IPDPS 2006",
    radices: &[2, 3, 4, 8, 16, 32],
    builder: Some(program),
    ..Algorithm::NEW
};

fn program(me: Rank, shape: &Shape, parameters: &Parameters) -> Program {
    let (ranks, radix) = (shape.ranks, parameters.radix.max(2));
    let (mut program, mut received): (Program, Vec<OpId>) = (Program::new(), Vec::new());
    let mut distance = 1;
    while distance < ranks {
        let steps = (1..radix).map(|j| j * distance).take_while(|&step| step < ranks);
        for step in steps.clone() {
            program.send((me + step) % ranks, Span::control(0), &received);
        }
        received = steps.map(|step| program.recv((me + ranks - step) % ranks, Span::control(0), &[])).collect();
        distance *= radix;
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_few_ranks_may_do_it_in_one_round() {
        for ranks in 2..=32 {
            let largest = ALGORITHM.radices_among(ranks).last().unwrap();
            let schedule = ALGORITHM.schedule(&Shape::new(ranks, 0, 0), &Parameters::of(0, largest)).unwrap();
            assert!(schedule.programs.iter().all(|program| program.len() == 2 * (ranks - 1)), "{ranks} ranks, radix {largest}");
        }
    }
}
