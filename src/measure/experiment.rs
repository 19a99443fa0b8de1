//! Experiments as values. Each is a small schedule and a rule that tells which span of time of which rank is its result, so that
//! the simulator, MPI and a model's replay all run the same thing.

use crate::collective::{Collective, NativeCall, Parameters, bcast};
use crate::error::{Error, Result};
use crate::schedule::{Elements, Layout, Trace};
use crate::topology::{Rank, check_ranks};
use crate::two_level::{Coordinated, TwoLevel};
use crate::units::{MAX_BYTES, MAX_SECONDS};
use serde::{Deserialize, Serialize};

/// No experiment that somebody measured has more messages; replayed, so many take some gigabytes.
const MOST_MEASURED: usize = 20_000_000;

/// What is combined where no collective says it: numbers as most programs combine them.
const SUM: Elements = Elements { bytes: 8, commute: true };

/// One experiment. Its result is in seconds, taken on one rank's clock.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Experiment {
    /// RTT(out, back): `a` sends `out` bytes, `b` answers with `back`. Result: a's time for both.
    RoundTrip {
        /// The rank whose clock counts.
        a: Rank,
        /// The other rank.
        b: Rank,
        /// Bytes out.
        out: usize,
        /// Bytes back.
        back: usize,
    },
    /// PRTT(n, d, s) of Hoefler et al. (2007): `a` sends `count` messages with `delay_ns` of computing between them, `b` answers
    /// once, with nothing, after all. Result: a's time for all.
    SaturationTrain {
        /// The sender, whose clock counts.
        a: Rank,
        /// The receiver.
        b: Rank,
        /// Bytes of a message.
        bytes: usize,
        /// Number of messages.
        count: usize,
        /// Computing between two sends.
        delay_ns: u64,
    },
    /// os(m): how long a send keeps its caller; the receiver answers with nothing before the next one.
    SendTime {
        /// The sender, whose clock counts.
        a: Rank,
        /// The receiver.
        b: Rank,
        /// Bytes of the message.
        bytes: usize,
    },
    /// or(m): `a` asks with an empty message, computes until `b`'s answer of `bytes` must be there, and then receives it.
    /// Result: how long that receive takes (Kielmann, Bal, Verstoep 2000).
    ReceiveTime {
        /// The receiver, whose clock counts.
        a: Rank,
        /// The sender.
        b: Rank,
        /// Bytes of the message.
        bytes: usize,
        /// Computing before the receive.
        delay_ns: u64,
    },
    /// One to two (LMO), and one to many: the root sends `out` bytes to each leaf in turn, each answers with `back`. Result: the
    /// root's time for all.
    OneToManyRoundTrip {
        /// The rank whose clock counts.
        root: Rank,
        /// The others, in the order in which they are served.
        leaves: Vec<Rank>,
        /// Bytes out.
        out: usize,
        /// Bytes back.
        back: usize,
    },
    /// `count` rounds of messages from the root to each leaf in turn; each leaf answers once, with nothing, after its last. Result:
    /// the root's time for all.
    OneToManyTrain {
        /// The rank whose clock counts.
        root: Rank,
        /// The others.
        leaves: Vec<Rank>,
        /// Bytes of a message.
        bytes: usize,
        /// Messages to each leaf.
        count: usize,
    },
    /// A rank copies `bytes` of its memory, `count` times. Result: its time for all.
    Copy {
        /// The rank.
        rank: Rank,
        /// Bytes that it copies.
        bytes: usize,
        /// How often.
        count: usize,
    },
    /// A rank combines `bytes` with as many others, as a sum of numbers of eight bytes, `count` times. Result: its time for all.
    Combine {
        /// The rank.
        rank: Rank,
        /// Bytes that it combines.
        bytes: usize,
        /// How often.
        count: usize,
    },
    /// A broadcast over groups. Result: as for a broadcast.
    TwoLevel {
        /// The groups and the way between them; the root is the first rank of the first group.
        two_level: TwoLevel,
    },
    /// A collective over groups that goes through coordinators. Result: as for a collective.
    Coordinated {
        /// The groups and what they do.
        coordinated: Coordinated,
        /// Bytes of the message; 0 where there is none.
        #[serde(default, skip_serializing_if = "crate::collective::is_zero")]
        bytes: usize,
    },
    /// A collective. Result: from the root's start (where there is none, the first rank's) until the last rank is done, on that rank's clock;
    /// a probe over MPI finds the other clocks' offsets first.
    Collective {
        /// Which one.
        collective: &'static Collective,
        /// Who takes part.
        ranks: Vec<Rank>,
        /// The root's position among them; 0 where there is no root.
        root: usize,
        /// Bytes of the message.
        bytes: usize,
        /// The algorithm's name.
        algorithm: String,
        /// What was chosen about it.
        parameters: Parameters,
    },
}

/// As the sample file says it.
impl std::fmt::Display for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

impl Experiment {
    /// Who takes part; the first one's clock counts (for a collective: the root's).
    pub fn ranks(&self) -> Vec<Rank> {
        match self {
            Experiment::RoundTrip { a, b, .. }
            | Experiment::SaturationTrain { a, b, .. }
            | Experiment::SendTime { a, b, .. }
            | Experiment::ReceiveTime { a, b, .. } => vec![*a, *b],
            Experiment::Copy { rank, .. } | Experiment::Combine { rank, .. } => vec![*rank],
            Experiment::TwoLevel { two_level } => two_level.ranks(),
            Experiment::Coordinated { coordinated, .. } => coordinated.ranks(),
            Experiment::OneToManyRoundTrip { root, leaves, .. } | Experiment::OneToManyTrain { root, leaves, .. } => {
                std::iter::once(*root).chain(leaves.iter().copied()).collect()
            }
            Experiment::Collective { ranks, .. } => ranks.clone(),
        }
    }

    /// Checks one that was read, over so many ranks: everything else here trusts it.
    ///
    /// # Errors
    /// [`Error::Invalid`] with what is wrong.
    pub fn validate(&self, ranks: usize) -> Result<()> {
        check_ranks(&self.ranks(), ranks)?;
        match self {
            Experiment::TwoLevel { two_level } => two_level.validate(ranks)?,
            Experiment::Combine { bytes, .. } if bytes % SUM.bytes > 0 => {
                return Err(Error::invalid(format!("it sums numbers of {} bytes, and {bytes} bytes are not of such", SUM.bytes)));
            }
            Experiment::Coordinated { coordinated, bytes } => {
                coordinated.validate(ranks)?;
                has_message(coordinated.collective, *bytes)?;
                if !coordinated.fits(&coordinated.shape(*bytes)) {
                    return Err(Error::invalid(format!("its {} does not go through coordinators so", coordinated.collective.name)));
                }
            }
            Experiment::Collective { collective, ranks, root, bytes, algorithm, .. } => {
                let algorithm = collective.algorithm(algorithm)?;
                has_message(collective, *bytes)?;
                if !(algorithm.fits)(&collective.shape(ranks.len(), *root, *bytes)) {
                    let count = ranks.len();
                    return Err(Error::invalid(format!("{} does not fit {count} ranks: it wants {}", algorithm.name, algorithm.wants)));
                }
                if *root >= ranks.len() {
                    return Err(Error::invalid(format!("root {root} is outside its {} ranks", ranks.len())));
                }
            }
            _ => {}
        }
        if self.bytes() > MAX_BYTES {
            return Err(Error::invalid(format!("{} bytes fit into no memory", self.bytes())));
        }
        let messages = self.message_count()?;
        if messages > MOST_MEASURED {
            return Err(Error::invalid(format!("it sends some {messages} messages, at most {MOST_MEASURED} are replayed")));
        }
        if self.delay_s() > MAX_SECONDS {
            return Err(Error::invalid(format!("it computes for {} s, at most {MAX_SECONDS} s make sense", self.delay_s())));
        }
        Ok(())
    }

    /// How many messages it sends, about, or how often it goes through memory; for one whose ranks are there.
    fn message_count(&self) -> Result<usize> {
        Ok(match self {
            Experiment::RoundTrip { .. } | Experiment::SendTime { .. } | Experiment::ReceiveTime { .. } => 2,
            Experiment::SaturationTrain { count, .. } | Experiment::Copy { count, .. } | Experiment::Combine { count, .. } => *count,
            Experiment::OneToManyRoundTrip { leaves, .. } => 2 * leaves.len(),
            Experiment::OneToManyTrain { leaves, count, .. } => leaves.len().saturating_mul(*count),
            Experiment::TwoLevel { two_level } => two_level.message_count(),
            Experiment::Coordinated { coordinated, bytes } => coordinated.message_count(*bytes)?,
            Experiment::Collective { collective, ranks, bytes, algorithm, parameters, .. } => {
                ranks.len().saturating_mul(parameters.pieces(collective.algorithm(algorithm)?, *bytes))
            }
        })
    }

    /// The longest time that it computes at once.
    pub(super) fn delay_s(&self) -> f64 {
        match self {
            Experiment::SaturationTrain { delay_ns, .. } | Experiment::ReceiveTime { delay_ns, .. } => *delay_ns as f64 * 1e-9,
            _ => 0.0,
        }
    }

    /// True if the result takes the traces of all ranks.
    pub fn is_collective(&self) -> bool {
        self.collective().is_some()
    }

    /// The collective that it is.
    pub fn collective(&self) -> Option<&'static Collective> {
        match self {
            Experiment::Collective { collective, .. } => Some(collective),
            Experiment::TwoLevel { .. } => Some(&bcast::COLLECTIVE),
            Experiment::Coordinated { coordinated, .. } => Some(coordinated.collective),
            _ => None,
        }
    }

    /// The position, in [`Experiment::ranks`], of the rank whose clock counts.
    pub fn timer(&self) -> usize {
        if let Experiment::Collective { root, .. } = self { *root } else { 0 }
    }

    /// True if all its ranks begin together, since no root of theirs does.
    pub fn begins_together(&self) -> bool {
        self.collective().is_some_and(|collective| !collective.root_begins())
    }

    /// The sizes of the buffers of the rank at a position of [`Experiment::ranks`].
    pub fn layout(&self, me: usize) -> Layout {
        match self {
            Experiment::Collective { collective, ranks, root, bytes, .. } => {
                (collective.layout)(&collective.shape(ranks.len(), *root, *bytes), me)
            }
            Experiment::Coordinated { coordinated, bytes } => {
                (coordinated.collective.layout)(&coordinated.shape(*bytes), coordinated.ranks()[me])
            }
            Experiment::Copy { bytes, .. } | Experiment::Combine { bytes, .. } => Layout { input: *bytes, output: *bytes },
            _ => Layout { input: 0, output: self.bytes() },
        }
    }

    /// Bytes of its message, or of a block.
    pub fn bytes(&self) -> usize {
        match self {
            Experiment::RoundTrip { out, back, .. } | Experiment::OneToManyRoundTrip { out, back, .. } => *out.max(back),
            Experiment::TwoLevel { two_level } => two_level.bytes,
            Experiment::Coordinated { bytes, .. }
            | Experiment::SaturationTrain { bytes, .. }
            | Experiment::OneToManyTrain { bytes, .. }
            | Experiment::SendTime { bytes, .. }
            | Experiment::ReceiveTime { bytes, .. }
            | Experiment::Copy { bytes, .. }
            | Experiment::Combine { bytes, .. }
            | Experiment::Collective { bytes, .. } => *bytes,
        }
    }

    /// What it combines, if it combines something.
    pub fn combined(&self) -> Option<Elements> {
        match self {
            Experiment::Combine { .. } => Some(SUM),
            _ => self.collective().filter(|c| c.combines).map(|c| c.shape(1, 0, self.bytes()).elements),
        }
    }

    /// Messages that one rank sends to another in a row.
    pub fn messages(&self) -> usize {
        if let Experiment::SaturationTrain { count, .. } | Experiment::OneToManyTrain { count, .. } = self { *count } else { 1 }
    }

    /// The library's own collective that a rank calls after its program, if it does.
    pub fn native(&self, me: Rank) -> Option<NativeCall> {
        match self {
            Experiment::Collective { collective, ranks, root, algorithm, .. } if *algorithm == collective.native().name => {
                Some(NativeCall::new(collective, ranks.clone(), *root))
            }
            Experiment::TwoLevel { two_level } => two_level.native(me),
            _ => None,
        }
    }

    /// True if any of its ranks calls the library's own collective.
    pub fn is_native(&self) -> bool {
        match self {
            Experiment::TwoLevel { two_level } => (0..two_level.groups.len()).any(|k| two_level.local_native(k)),
            _ => self.native(0).is_some(),
        }
    }

    /// Computing that was asked for and lies in the measured span.
    pub fn computing(&self) -> f64 {
        if let Experiment::SaturationTrain { count, delay_ns, .. } = self {
            count.saturating_sub(1) as f64 * *delay_ns as f64 * 1e-9
        } else {
            0.0
        }
    }

    /// The result, from the traces of all its ranks on one clock.
    pub fn seconds(&self, traces: &[&Trace]) -> f64 {
        if self.is_collective() { traces.iter().map(|t| t.finish()).fold(0.0, f64::max) } else { self.span(traces[0]) }
    }

    /// The result of what is no collective, from the trace of its first rank.
    pub fn span(&self, trace: &Trace) -> f64 {
        match self {
            Experiment::SendTime { .. } => trace.end[0] - trace.start[0],
            Experiment::ReceiveTime { .. } => trace.end[2] - trace.start[2],
            // the first operation is a send, or what goes through memory
            _ => trace.finish() - trace.start.first().copied().unwrap_or(0.0),
        }
    }
}

/// Refuses a size of what has no message.
fn has_message(collective: &Collective, bytes: usize) -> Result<()> {
    if !collective.sized() && bytes > 0 {
        return Err(Error::invalid(format!("{} has no message, and {bytes} bytes are asked for", collective.one())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::COLLECTIVES;
    use crate::schedule::Program;

    #[test]
    fn every_experiment_is_a_valid_schedule() {
        let ranks: Vec<usize> = (0..7).collect();
        let mut all = vec![
            Experiment::RoundTrip { a: 3, b: 9, out: 10, back: 0 },
            Experiment::SaturationTrain { a: 1, b: 0, bytes: 8, count: 16, delay_ns: 100 },
            Experiment::SendTime { a: 0, b: 1, bytes: 1 << 20 },
            Experiment::ReceiveTime { a: 0, b: 1, bytes: 5, delay_ns: 1000 },
            Experiment::OneToManyRoundTrip { root: 4, leaves: vec![1, 2], out: 100, back: 0 },
            Experiment::Copy { rank: 3, bytes: 5, count: 3 },
            Experiment::Combine { rank: 3, bytes: 16, count: 3 },
        ];
        for collective in COLLECTIVES.iter().copied().filter(|c| c.tuned) {
            let seven = collective.shape(ranks.len(), 0, 1000);
            all.extend(collective.built().filter(|a| (a.fits)(&seven)).map(|a| Experiment::Collective {
                collective,
                ranks: ranks.clone(),
                root: if collective.rooted { 2 } else { 0 },
                bytes: if collective.sized() { 1000 } else { 0 },
                algorithm: a.name.into(),
                parameters: Parameters::of(128, 0),
            }));
        }
        for e in &all {
            crate::schedule::completes(&e.schedule().unwrap()).unwrap_or_else(|fault| panic!("{e:?}: {fault}"));
            let text = serde_json::to_string(e).unwrap();
            assert_eq!(&serde_json::from_str::<Experiment>(&text).unwrap(), e);
        }
    }

    #[test]
    fn a_schedule_has_each_ranks_program() {
        let groups = vec![vec![9, 3, 5], vec![2], vec![7, 4]];
        let intra_group = crate::two_level::IntraGroup::of(bcast::algorithm("binomial").unwrap());
        let jobs = (1..3).map(|to| crate::intercluster::Job::Send { from: 0, to }).collect();
        let two_level = TwoLevel {
            bytes: 1000,
            hosts: Vec::new(),
            inter_group: crate::two_level::InterGroup::Tree(jobs),
            segment: 64,
            in_flight: 2,
            near: Vec::new(),
            peers: 0,
            intra_group: vec![intra_group; groups.len()],
            groups,
        };
        let e = Experiment::TwoLevel { two_level };
        let each: Vec<Program> = (0..6).map(|me| e.program(me).unwrap()).collect();
        let actions = |programs: &[Program]| programs.iter().map(|p| p.actions().collect::<Vec<_>>()).collect::<Vec<_>>();
        assert_eq!(actions(&e.schedule().unwrap().programs), actions(&each));
    }
}
