//! What the ranks of an experiment do.

use super::Experiment;
use crate::error::Result;
use crate::schedule::{Action, Program, Schedule, Span};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

impl Experiment {
    /// The program of the rank at a position of [`Experiment::ranks`]; its ranks are positions too. The library's own
    /// collective has nothing in it: whoever runs it calls the library.
    ///
    /// # Errors
    /// An algorithm that there is not.
    pub fn program(&self, me: usize) -> Result<Program> {
        let mut p = Program::new();
        let (data, empty) = (|n| Span::output(0, n), Span::output(0, 0));
        match self {
            Experiment::RoundTrip { out, back, .. } => exchange(&mut p, me, data(*out), data(*back)),
            Experiment::SendTime { bytes, .. } if me == 0 => {
                let sent = p.send(1, data(*bytes), &[]);
                p.recv(1, empty, &[sent]);
            }
            Experiment::SendTime { bytes, .. } => exchange(&mut p, me, data(*bytes), empty),
            Experiment::ReceiveTime { bytes, delay_ns, .. } if me == 0 => {
                let asked = p.send(1, empty, &[]);
                let waited = p.push(Action::Delay { seconds: *delay_ns as f64 * 1e-9 }, &[asked]);
                p.recv(1, data(*bytes), &[waited]);
            }
            Experiment::ReceiveTime { bytes, .. } => exchange(&mut p, me, empty, data(*bytes)),
            Experiment::SaturationTrain { bytes, count, delay_ns, .. } => train(&mut p, me, data(*bytes), *count, *delay_ns),
            Experiment::OneToManyRoundTrip { leaves, out, back, .. } if me == 0 => {
                let leaves = 1..=leaves.len();
                for leaf in leaves.clone() {
                    p.send(leaf, data(*out), &[]);
                }
                for leaf in leaves {
                    p.recv(leaf, data(*back), &[]);
                }
            }
            Experiment::OneToManyTrain { leaves, bytes, count, .. } if me == 0 => {
                let leaves = 1..=leaves.len();
                for leaf in (0..*count).flat_map(|_| leaves.clone()) {
                    p.send(leaf, data(*bytes), &[]);
                }
                for leaf in leaves {
                    p.recv(leaf, empty, &[]);
                }
            }
            Experiment::OneToManyTrain { bytes, count, .. } => {
                let got: Vec<_> = (0..*count).map(|_| p.recv(0, data(*bytes), &[])).collect();
                p.send(0, empty, &got);
            }
            Experiment::Copy { bytes, count, .. } => {
                for _ in 0..*count {
                    p.copy(Span::input(0, *bytes), data(*bytes), &[]);
                }
            }
            Experiment::Combine { bytes, count, .. } => {
                for _ in 0..*count {
                    p.combine(Span::input(0, *bytes), data(*bytes), &[]);
                }
            }
            Experiment::TwoLevel { two_level } => p = at_places(&two_level.ranks(), two_level.program(two_level.ranks()[me])?),
            Experiment::Coordinated { coordinated, bytes } => {
                let ranks = coordinated.ranks();
                p = at_places(&ranks, coordinated.program(ranks[me], &coordinated.shape(*bytes))?);
            }
            Experiment::OneToManyRoundTrip { out, back, .. } => {
                let got = p.recv(0, data(*out), &[]);
                p.send(0, data(*back), &[got]);
            }
            Experiment::Collective { collective, ranks, root, bytes, algorithm, parameters } => {
                let shape = collective.shape(ranks.len(), *root, *bytes);
                if let Some(program) = collective.algorithm(algorithm)?.program(me, &shape, parameters) {
                    p = program;
                }
            }
        }
        Ok(p)
    }

    /// The programs of all its ranks, as positions.
    ///
    /// # Errors
    /// As [`Experiment::program`].
    pub fn schedule(&self) -> Result<Schedule> {
        let ranks = self.ranks();
        match self {
            Experiment::TwoLevel { two_level } => places_of(&ranks, |all| two_level.schedule(all)),
            _ => Ok(Schedule { programs: (0..ranks.len()).map(|me| self.program(me)).collect::<Result<_>>()? }),
        }
    }
}

/// A schedule of ranks 0 to some number, as one of the places of these ranks among all of them.
fn places_of(ranks: &[Rank], schedule: impl Fn(usize) -> Result<Schedule>) -> Result<Schedule> {
    let places: FxHashMap<Rank, usize> = ranks.iter().enumerate().map(|(place, &r)| (r, place)).collect();
    let mut programs = schedule(ranks.iter().max().map_or(0, |r| r + 1))?.programs;
    let at_place = |&rank: &Rank| std::mem::take(&mut programs[rank]).renamed(|r| places[&r]);
    Ok(Schedule { programs: ranks.iter().map(at_place).collect() })
}

/// A program with its ranks named by their places among all.
fn at_places(ranks: &[Rank], program: Program) -> Program {
    let places: FxHashMap<Rank, usize> = ranks.iter().enumerate().map(|(place, &r)| (r, place)).collect();
    program.renamed(|r| places[&r])
}

/// `a` sends and is answered; the other side, which answers.
fn exchange(p: &mut Program, me: usize, out: Span, back: Span) {
    if me == 0 {
        p.send(1, out, &[]);
        p.recv(1, back, &[]);
    } else {
        let got = p.recv(0, out, &[]);
        p.send(0, back, &[got]);
    }
}

fn train(p: &mut Program, me: usize, message: Span, count: usize, delay_ns: u64) {
    let empty = Span::output(0, 0);
    if me == 0 {
        for k in 0..count {
            if k > 0 && delay_ns > 0 {
                p.push(Action::Delay { seconds: delay_ns as f64 * 1e-9 }, &[]);
            }
            p.send(1, message, &[]);
        }
        p.recv(1, empty, &[]);
    } else {
        let got: Vec<_> = (0..count).map(|_| p.recv(0, message, &[])).collect();
        p.send(0, empty, &got);
    }
}
