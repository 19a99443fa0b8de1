//! Who processes send to: what follows from an algorithm, and what reports let guess of a program, which does not say it.

use super::Distance;
use super::scale::{Form, Series, balanced};
use serde::Serialize;
use std::ops::Mul;

/// Kinds of partners.
const KINDS: usize = 6;

/// Who ranks send to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Partners {
    /// Whom the program chose: its [`Neighbourhood`].
    Program,
    /// The next rank.
    Next,
    /// Ranks at distances of 1, 2, 4, ..., in turn.
    Doubling,
    /// Each other rank, in turn.
    Anyone,
    /// Those of its row at distances of 1, 2, 4, ..., where ranks lie on a plane, rows being its longer side.
    Row,
    /// On such a plane, the rank whose column is its row.
    Transposed,
}

impl Partners {
    /// All kinds.
    pub const ALL: [Partners; KINDS] =
        [Partners::Program, Partners::Next, Partners::Doubling, Partners::Anyone, Partners::Row, Partners::Transposed];
}

/// Messages one after the other, and their bytes, by who they go to; and those of them that do not wait until the one before is there.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Rounds {
    kinds: [(f64, f64); KINDS],
    /// Messages that a process starts as soon as its port lets it, beside the one that is counted by its kind.
    pub starts: f64,
}

impl Rounds {
    /// So many messages to partners of one kind, and bytes in all of them.
    pub fn of(partners: Partners, messages: f64, bytes: f64) -> Rounds {
        let mut rounds = Rounds::default();
        rounds.kinds[partners as usize] = (messages, bytes);
        rounds
    }

    /// With so many messages more that a process starts without waiting; their bytes are counted already.
    pub fn starting(self, more: f64) -> Rounds {
        Rounds { starts: self.starts + more, ..self }
    }

    /// Both, one after the other.
    pub fn and(self, other: Rounds) -> Rounds {
        let both = |k: usize| (self.kinds[k].0 + other.kinds[k].0, self.kinds[k].1 + other.kinds[k].1);
        Rounds { kinds: std::array::from_fn(both), starts: self.starts + other.starts }
    }

    /// Messages one after the other, to whomever.
    pub fn messages(&self) -> f64 {
        self.kinds.iter().map(|r| r.0).sum()
    }

    /// Partners, messages and bytes of each kind that there is.
    pub fn each(&self) -> impl Iterator<Item = (Partners, f64, f64)> {
        Partners::ALL
            .into_iter()
            .zip(self.kinds)
            .filter(|(_, r)| r.0 > 0.0)
            .map(|(partners, (messages, bytes))| (partners, messages, bytes))
    }
}

impl Mul<f64> for Rounds {
    type Output = Rounds;

    fn mul(self, times: f64) -> Rounds {
        Rounds { kinds: self.kinds.map(|(messages, bytes)| (messages * times, bytes * times)), starts: self.starts * times }
    }
}

/// How the processes of a program lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Neighbourhood {
    /// In a row, each with the next.
    Chain,
    /// On a plane, nearly as wide as it is high.
    Plane,
    /// In space, nearly a cube.
    #[default]
    Cube,
    /// Each with those at distances of 1, 2, 4, ...
    Hypercube,
}

/// A step to a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// So many ranks further, around the end.
    Ahead(usize),
    /// The rank whose number differs in this bit.
    Across(usize),
    /// The rank in the place of this one where rows and columns are exchanged.
    Transposed {
        /// Ranks of a row.
        row: usize,
    },
    /// So many ranks further or less far, for all that have such a partner, or for one half of them.
    By {
        /// The partner's rank less one's own.
        distance: isize,
        /// Of pairs of ranks so far from each other, only the lower ones, or only the upper ones; none for all ranks.
        lower: Option<bool>,
    },
    /// So many ranks further along a side of so many, around its end.
    Side {
        /// Ranks between neighbours.
        stride: usize,
        /// Ranks of a side.
        length: usize,
    },
}

impl Phase {
    /// The partner of a rank; none where it has none in this phase.
    pub fn partner(self, rank: usize, ranks: usize) -> Option<usize> {
        let partner = match self {
            Phase::Ahead(by) => (rank + by) % ranks,
            Phase::Across(bit) => rank ^ bit,
            Phase::By { distance, lower } => {
                let is_lower = (rank / distance.unsigned_abs().max(1)).is_multiple_of(2);
                if lower.is_some_and(|lower| lower != is_lower) { rank } else { rank.checked_add_signed(distance)? }
            }
            Phase::Transposed { row } => rank % row * (ranks / row) + rank / row,
            Phase::Side { stride, length } => {
                let place = rank / stride % length;
                rank - place * stride + (place + 1) % length * stride
            }
        };
        (partner < ranks && partner != rank).then_some(partner)
    }
}

/// At most so many phases stand for those of each with each other.
const MOST_PHASES: usize = 16;

/// Messages of processes that have partners at distances of 1, 2, 4, ... grow at least by this with four times the processes.
const GROWS: f64 = 1.25;

impl Neighbourhood {
    /// All of them.
    pub const ALL: [Neighbourhood; 4] = [Neighbourhood::Chain, Neighbourhood::Plane, Neighbourhood::Cube, Neighbourhood::Hypercube];

    /// What the numbers and bytes of messages to neighbours tell; a cube, as of most programs, where they do not.
    pub fn guess(counts: &Series, bytes: Option<&Series>) -> Neighbourhood {
        let first = counts.earlier.as_ref().map_or(&counts.points, |e| &e.points)[0];
        let last = counts.points[counts.points.len() - 1];
        match (counts.law.form, bytes.map(|b| b.law.form)) {
            (Form::Share | Form::Inner, _) => Neighbourhood::Chain,
            (Form::Plane, _) | (Form::Constant, Some(Form::Borders)) => Neighbourhood::Plane,
            (Form::Cube | Form::Around, _) => Neighbourhood::Cube,
            // as often as there are rounds of doubling, and not on a grid
            _ if last.1 / first.1 >= GROWS && last.0 >= 4 * first.0 => Neighbourhood::Hypercube,
            _ => Neighbourhood::Cube,
        }
    }

    /// That whose partners are most nearly those of messages that are known to go so far.
    pub fn nearest(known: &[Distance], ranks: usize) -> Neighbourhood {
        let all: f64 = known.iter().map(|d| d.messages).sum();
        // the share of messages that go as far, and of such distances that messages go
        let likeness = |neighbours: Neighbourhood| {
            let steps = neighbours.phases(Partners::Program, ranks);
            let mut far: Vec<usize> =
                steps.iter().flat_map(|s| (0..ranks).filter_map(|r| Some(s.partner(r, ranks)?.abs_diff(r)))).collect();
            far.sort_unstable();
            far.dedup();
            let goes = |d: &&Distance| far.binary_search(&d.distance.unsigned_abs()).is_ok();
            let explained = known.iter().filter(goes).map(|d| d.messages).sum::<f64>() / all.max(f64::MIN_POSITIVE);
            let is_gone = |f: &&usize| known.iter().any(|d| d.distance.unsigned_abs() == **f);
            explained * far.iter().filter(is_gone).count() as f64 / far.len().max(1) as f64
        };
        let best = Neighbourhood::ALL.into_iter().map(|n| (likeness(n), n)).reduce(|best, one| if one.0 > best.0 { one } else { best });
        best.filter(|best| best.0 > 0.0).map_or(Neighbourhood::default(), |best| best.1)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Neighbourhood::Chain => "the next one of a row",
            Neighbourhood::Plane => "four neighbours on a plane",
            Neighbourhood::Cube => "six neighbours in space",
            Neighbourhood::Hypercube => "those at distances of 1, 2, 4, ...",
        }
    }

    /// The phases in which ranks send to such partners. In each of them a rank sends to one other.
    pub fn phases(self, partners: Partners, ranks: usize) -> Vec<Phase> {
        let row = || balanced(ranks, 2)[0];
        let doubling = |among: usize| (0..usize::BITS).map(|k| 1 << k).take_while(|bit| *bit < among).map(Phase::Across).collect();
        let sides = |dimensions: usize| {
            let mut stride = 1;
            let side = |length: usize| {
                let phase = Phase::Side { stride, length };
                stride *= length;
                phase
            };
            balanced(ranks, dimensions).into_iter().map(side).filter(|p| matches!(p, Phase::Side { length: 2.., .. })).collect()
        };
        match (partners, self) {
            _ if ranks < 2 => Vec::new(),
            (Partners::Next, _) | (Partners::Program, Neighbourhood::Chain) => vec![Phase::Ahead(1)],
            (Partners::Doubling, _) | (Partners::Program, Neighbourhood::Hypercube) => doubling(ranks),
            (Partners::Row, _) => doubling(row()),
            (Partners::Transposed, _) => vec![Phase::Transposed { row: row() }],
            (Partners::Anyone, _) => (1..ranks).step_by((ranks - 1).div_ceil(MOST_PHASES)).map(Phase::Ahead).collect(),
            (Partners::Program, Neighbourhood::Plane) => sides(2),
            (Partners::Program, Neighbourhood::Cube) => sides(3),
        }
    }
}
