//! Ranks that do alike: the same operations on as many bytes, one after the other as the same comes before, with partners that do alike too. Where links and
//! processors are alike, they do so at the same times, and one of them stands for all: in a ring or among partners of an exchange all ranks may.
//!
//! Found by refinement: ranks are hash apart by what they do themselves, then by from and to which of those that are hash apart their messages go, until that
//! tells no more apart.

use super::body::Body;
use super::op::{Kind, of_words};
use super::{Program, Schedule, Streams};
use crate::topology::Rank;
use rustc_hash::FxHashMap;

/// Where so many rounds tell ever more apart, as a root does those around it, none are taken to do alike.
const ROUNDS: usize = 4;

/// One rank is to stand for so many in the mean: fewer are no gain where finding them comes to nothing as often.
const WORTH: usize = 8;

/// A number that hangs on all bits of two (the finalizer of MurmurHash3, Appleby 2011).
#[inline]
fn mixed(a: u64, b: u64) -> u64 {
    let mut x = a.rotate_left(25) ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ x >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    x = (x ^ x >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    x ^ x >> 33
}

/// Of each rank the first one that does alike; `None` where few do. `seconds`: how long a rank copies or combines so many bytes.
pub fn alike(schedule: &Schedule, streams: &Streams, seconds: impl Fn(Rank, bool, usize) -> f64) -> Option<Vec<u32>> {
    if schedule.ranks() < WORTH {
        return None;
    }
    let mut bodies: FxHashMap<*const Body, Signature> = FxHashMap::default();
    let of = |(rank, program): (Rank, &Program)| {
        let signature = bodies.entry(program.body()).or_insert_with(|| Signature::of(program.body()));
        let hash = signature.with(|combines, bytes| seconds(rank, combines, bytes));
        let (to, from) = program.parts.peers();
        if signature.has_lanes { same(from, same(to, hash)) } else { hash }
    };
    let mut hashes: Vec<u64> = schedule.programs.iter().enumerate().map(of).collect();
    let mut ones = first_of_each(&hashes);
    for _ in 0..ROUNDS {
        if ones.1 * WORTH > hashes.len() {
            break;
        }
        // the sum hangs on no order: each message is added at both ends
        let mut sums = vec![0u64; hashes.len()];
        streams.each(schedule, |(me, send), (to, receive)| {
            let ends = (send as u64) << 32 | receive as u64;
            sums[me] = sums[me].wrapping_add(mixed(hashes[to], ends));
            sums[to] = sums[to].wrapping_add(mixed(hashes[me], !ends));
        });
        hashes.iter_mut().zip(sums).for_each(|(hash, sum)| *hash = mixed(*hash, sum));
        let finer = first_of_each(&hashes);
        if finer.1 == ones.1 {
            return Some(finer.0);
        }
        ones = finer;
    }
    None
}

/// Of each rank the first one of the same number, and how many numbers there are.
fn first_of_each(hashes: &[u64]) -> (Vec<u32>, usize) {
    let mut firsts = FxHashMap::default();
    let first = hashes.iter().zip(0..).map(|(&hash, rank)| *firsts.entry(hash).or_insert(rank)).collect();
    (first, firsts.len())
}

/// A number with that of which of some peers are the same.
fn same(peers: &[u32], hash: u64) -> u64 {
    let mut first: FxHashMap<u32, u64> = FxHashMap::default();
    peers.iter().zip(0..).fold(hash, |hash, (&peer, place)| mixed(hash, *first.entry(peer).or_insert(place)))
}

/// A number of all that ranks with a body in common do, but where the bytes are, who their partners are, and how long they work; and how many bytes they
/// copy or combine.
#[derive(Default)]
struct Signature {
    hash: u64,
    works: Vec<(bool, usize)>,
    /// True if a peer may have several streams, in lanes of their own.
    has_lanes: bool,
}

impl Signature {
    fn of(body: &Body) -> Signature {
        let mut of = Signature { hash: body.ops.len() as u64, works: Vec::new(), has_lanes: false };
        let hash = &mut of.hash;
        for op in &body.ops {
            let (kind, bytes) = (op.kind(), op.bytes(&body.words));
            let (stream, takes) = match kind {
                Kind::Send | Kind::Recv => (op.place(), bytes as u64),
                Kind::Copy | Kind::Combine => (0, bytes as u64),
                Kind::Delay => (0, of_words(&body.words[op.place() as usize + 1..])),
            };
            let work = (kind == Kind::Combine, bytes);
            if matches!(kind, Kind::Copy | Kind::Combine) && of.works.last() != Some(&work) {
                of.works.push(work);
            }
            *hash = mixed(mixed(*hash, takes), u64::from(op.next) << 32 | u64::from(stream << 3) | kind as u64);
        }
        for op in 0..body.ops.len() {
            let after = body.after(op);
            *hash = after.iter().fold(mixed(*hash, after.len() as u64), |hash, &after| mixed(hash, after.into()));
        }
        let streams = body.sends.iter().chain(body.receives.iter().map(|incoming| &incoming.stream));
        let lane = body.sends.first().map(|stream| stream.lane);
        of.has_lanes = streams.clone().any(|stream| Some(stream.lane) != lane);
        *hash = streams.fold(mixed(*hash, body.sends.len() as u64), |hash, stream| mixed(hash, stream.in_flight.into()));
        of.works.sort_unstable();
        of.works.dedup();
        of
    }

    /// With how long that takes.
    fn with(&self, seconds: impl Fn(bool, usize) -> f64) -> u64 {
        self.works.iter().fold(self.hash, |hash, &(combines, bytes)| mixed(hash, seconds(combines, bytes).to_bits()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Action, Span};

    fn found(schedule: &Schedule) -> Option<Vec<u32>> {
        alike(schedule, &Streams::new(schedule).unwrap(), |_, _, bytes| bytes as f64)
    }

    /// Each of so many ranks sends to the one after it, and passes on what it got.
    fn ring(ranks: usize) -> Schedule {
        let message = Span::output(0, 8);
        Schedule::build(ranks, |rank| {
            let mut program = Program::new();
            let got = program.recv((rank + ranks - 1) % ranks, message, &[]);
            program.send((rank + 1) % ranks, message, &[]);
            program.send((rank + 1) % ranks, Span::scratch(0, 8), &[got]);
            program.recv((rank + ranks - 1) % ranks, Span::scratch(0, 8), &[]);
            program
        })
    }

    #[test]
    fn in_a_ring_all_do_alike() {
        assert_eq!(found(&ring(9)), Some(vec![0; 9]));
    }

    #[test]
    fn what_one_rank_does_beside_the_others_tells_its_neighbours_apart_as_far_as_that_goes() {
        let mut schedule = ring(64);
        schedule.programs[7].push(Action::Delay { seconds: 1.0 }, &[]);
        // one by one those beside it: never stable within so few rounds
        assert_eq!(found(&schedule), None);
        // where pairs exchange messages, only its partner is apart from the others
        let message = Span::output(0, 8);
        let mut pairs = Schedule::build(32, |rank| {
            let mut program = Program::new();
            program.send(rank ^ 1, message, &[]);
            program.recv(rank ^ 1, message, &[]);
            program
        });
        pairs.programs[5].push(Action::Delay { seconds: 1.0 }, &[]);
        let apart = |rank| if rank == 4 || rank == 5 { rank } else { 0 };
        assert_eq!(found(&pairs), Some((0..32).map(apart).collect()));
    }

    #[test]
    fn who_has_one_partner_is_not_alike_to_who_has_two() {
        // ranks below 16: two lanes to one partner; the others: to two
        let message = Span::output(0, 8);
        let schedule = Schedule::build(32, |rank| {
            let mut program = Program::new();
            for lane in [0, 1] {
                program.in_lane(lane);
                let other = if rank < 16 { rank ^ 1 } else { rank ^ [1, 2][lane as usize] };
                program.send(other, message, &[]);
                program.recv(other, message, &[]);
            }
            program
        });
        assert_eq!(found(&schedule), Some((0..32).map(|rank| rank / 16 * 16).collect()));
    }
}
