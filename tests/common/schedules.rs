//! Valid schedules drawn at random: several lanes, any dependencies, input, output and scratch, buffers used again and again, copies, elements
//! that are combined, control messages, delays, and sends to few peers at once.

use super::byte;
use collwise::error::Result;
use collwise::schedule::{
    Action, Buffer, CONTROL_BYTES, Elements, Fold, Layout, OpId, Piece, Program, Schedule, Span, Specification, Trace,
};
use collwise::transport::{Buffers, Executor, Task, Transport};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

/// What is in a byte: whose values, in the order of ranks, and which place of theirs; nothing in scratch that was not written.
type Value = Option<(Vec<usize>, usize)>;

const BUFFERS: [Buffer; 3] = [Buffer::Input, Buffer::Output, Buffer::Scratch];

/// A schedule with what it does to each rank's output, byte by byte.
pub struct Drawn {
    pub schedule: Schedule,
    pub specification: Specification,
    bytes: usize,
    ends: Vec<Vec<Value>>,
}

/// An operation of one rank as it is drawn.
struct Step {
    action: Action,
    lane: u16,
    after: Vec<OpId>,
}

/// True if two operations use a byte in common and one of them writes it. Control messages have no bytes that anybody uses.
fn clash(a: &Step, b: &Step) -> bool {
    let ((read_a, write_a), (read_b, write_b)) = (a.action.uses(), b.action.uses());
    let overlap = |x: Option<Span>, y: Option<Span>| x.zip(y).is_some_and(|(x, y)| x.buffer != Buffer::Control && x.overlaps(&y));
    overlap(write_a, write_b) || overlap(write_a, read_b) || overlap(read_a, write_b)
}

/// What a rank gives: its place `k` has this byte.
pub fn own(rank: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|k| byte(k, rank)).collect()
}

/// Bytes are added; elements of two bytes are maps x -> a x + b, of which `left` comes after `into`, which does not commute.
pub fn operation(elements: Elements) -> impl Fn(&[u8], &mut [u8]) -> Result<()> + Sync {
    move |left, into| {
        if elements.commute {
            into.iter_mut().zip(left).for_each(|(x, y)| *x = x.wrapping_add(*y));
        } else {
            for (x, y) in into.chunks_exact_mut(2).zip(left.chunks_exact(2)) {
                (x[0], x[1]) = (y[0].wrapping_mul(x[0]), y[0].wrapping_mul(x[1]).wrapping_add(y[1]));
            }
        }
        Ok(())
    }
}

impl Drawn {
    /// A schedule of control messages and delays only.
    #[allow(dead_code)] // the MPI program of the tests has none
    pub fn without_bytes(schedule: Schedule) -> Drawn {
        let (specification, ends) = (Specification::empty(schedule.ranks()), vec![vec![]; schedule.ranks()]);
        Drawn { schedule, specification, bytes: 0, ends }
    }

    /// A rank's input and output at the beginning.
    pub fn buffers(&self, rank: usize) -> (Vec<u8>, Vec<u8>) {
        (own(rank, self.bytes), own(rank, self.bytes))
    }

    /// A rank's output at the end.
    pub fn expected(&self, rank: usize) -> Vec<u8> {
        let elements = self.specification.elements;
        let value = |value: &Value| {
            let (ranks, from) = value.as_ref().expect("output is never undefined");
            let begin = from - from % elements.bytes;
            let element = |r: usize| (begin..begin + elements.bytes).map(|k| byte(k, r)).collect::<Vec<u8>>();
            let mut folded = element(*ranks.last().unwrap());
            let before = ranks[..ranks.len() - 1].iter().rev();
            before.for_each(|&r| operation(elements)(&element(r), &mut folded).unwrap());
            folded[from - begin]
        };
        self.ends[rank].iter().map(value).collect()
    }
}

/// The values of two operands combined, if that is allowed.
fn combined(left: &Value, right: &Value, commute: bool) -> Option<(Vec<usize>, usize)> {
    let ((l, from), (r, also)) = (left.as_ref()?, right.as_ref()?);
    let mut all: Vec<usize> = l.iter().chain(r).copied().collect();
    if commute {
        all.sort_unstable();
    }
    let fits = |w: &[usize]| if commute { w[0] < w[1] } else { w[0] + 1 == w[1] };
    (from == also && all.windows(2).all(fits)).then_some((all, *from))
}

/// The memory of all ranks as it is drawn.
struct Memory {
    values: Vec<BTreeMap<Buffer, Vec<Value>>>,
}

impl Memory {
    fn read(&self, rank: usize, span: Span) -> Option<Vec<Value>> {
        let values = &self.values[rank][&span.buffer][span.offset..span.offset + span.len];
        values.iter().all(Option::is_some).then(|| values.to_vec())
    }

    fn write(&mut self, rank: usize, span: Span, values: &[Value]) {
        self.values[rank].get_mut(&span.buffer).unwrap()[span.offset..span.offset + span.len].clone_from_slice(values);
    }
}

/// A control message, or a delay.
fn without_bytes(random: &mut impl Rng, me: usize, ranks: usize) -> Vec<(usize, Action)> {
    if random.random_bool(0.3) {
        return vec![(me, Action::Delay { seconds: random.random_range(0.0..30e-6) })];
    }
    let (to, span) = ((me + random.random_range(1..ranks)) % ranks, Span::control(random.random_range(0..=CONTROL_BYTES)));
    vec![(me, Action::Send { to, span }), (to, Action::Recv { from: me, span })]
}

/// Draws some messages, copies, combinings and delays among some ranks with buffers of `bytes`. All ranks have values of their own at the
/// beginning.
pub fn draw(random: &mut impl Rng, ranks: usize, steps_wanted: usize, bytes: usize, elements: Elements) -> Drawn {
    let mut steps: Vec<Vec<Step>> = (0..ranks).map(|_| Vec::new()).collect();
    let bytes = bytes.next_multiple_of(elements.bytes);
    let begin = |r: usize| {
        let known: Vec<Value> = (0..bytes).map(|k| Some((vec![r], k))).collect();
        BTreeMap::from([(Buffer::Input, known.clone()), (Buffer::Output, known), (Buffer::Scratch, vec![None; bytes])])
    };
    let mut memory = Memory { values: (0..ranks).map(begin).collect() };
    for _ in 0..steps_wanted {
        let me = random.random_range(0..ranks);
        let most = if random.random_bool(0.2) { bytes } else { bytes.min(bytes / 8 + 1) };
        let unit = elements.bytes;
        let len = random.random_range(0..=most / unit) * unit;
        let mut offset = || random.random_range(0..=(bytes - len) / unit) * unit;
        let (source_at, target_at) = (offset(), offset());
        // most stay in their place, so that there is something to combine
        let target_at = if random.random_bool(0.7) { source_at } else { target_at };
        let source = Span { buffer: BUFFERS[random.random_range(0..3)], offset: source_at, len };
        let target = Span { buffer: BUFFERS[random.random_range(1..3)], offset: target_at, len };
        let Some(values) = memory.read(me, source) else { continue };
        let lane = random.random_range(0..3);
        let moves = if random.random_bool(0.15) {
            without_bytes(random, me, ranks)
        } else if random.random_bool(0.5) {
            let to = (me + random.random_range(1..ranks)) % ranks;
            memory.write(to, target, &values);
            vec![(me, Action::Send { to, span: source }), (to, Action::Recv { from: me, span: target })]
        } else if source.overlaps(&target) {
            continue;
        } else {
            let operand = memory.read(me, target).unwrap_or_default();
            let all = values.iter().zip(&operand).map(|(l, r)| combined(l, r, elements.commute).map(Some));
            match all.collect::<Option<Vec<Value>>>().filter(|all| all.len() == len) {
                Some(all) => {
                    memory.write(me, target, &all);
                    vec![(me, Action::Combine { left: source, into: target })]
                }
                None => {
                    memory.write(me, target, &values);
                    vec![(me, Action::Copy { from: source, into: target })]
                }
            }
        };
        for (me, action) in moves {
            let mut step = Step { action, lane, after: Vec::new() };
            let before = &steps[me];
            let mut after: Vec<OpId> = (0..before.len()).filter(|&k| clash(&before[k], &step)).map(|k| k as OpId).collect();
            // and now and then one that need not be
            if !before.is_empty() && random.random_bool(0.2) {
                after.push(random.random_range(0..before.len()) as OpId);
            }
            after.sort_unstable();
            after.dedup();
            step.after = after;
            steps[me].push(step);
        }
    }
    let programs = steps.into_iter().map(|steps| {
        let mut program = Program::new();
        program.in_flight(random.random_range(0..5));
        program.peers(random.random_range(0..3));
        for step in steps {
            program.in_lane(step.lane);
            program.push(step.action, &step.after);
        }
        program
    });
    let schedule = Schedule { programs: programs.collect() };
    let ends: Vec<Vec<Value>> = memory.values.into_iter().map(|mut m| m.remove(&Buffer::Output).unwrap()).collect();
    let specification = Specification {
        layouts: vec![Layout { input: bytes, output: bytes }; ranks],
        before: (0..ranks).map(|r| vec![Piece::input(bytes, r), Piece::output(0, bytes, r, 0)]).collect(),
        after: ends.iter().map(|end| pieces(end)).collect(),
        elements,
        synchronises: false,
    };
    Drawn { schedule, specification, bytes, ends }
}

/// An output in as few pieces as possible.
fn pieces(end: &[Value]) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    for (at, value) in end.iter().enumerate() {
        let (ranks, from) = value.as_ref().expect("output is never undefined");
        let of = ranks[1..].iter().fold(Fold::from(ranks[0]), |all, &r| all.combined(&Fold::from(r), true).unwrap());
        match found.last_mut() {
            Some(p) if p.of == of && p.from + p.len == *from => p.len += 1,
            _ => found.push(Piece::output(at, 1, of, *from)),
        }
    }
    found
}

/// Bytes that are added, or pairs of bytes whose operation does not commute.
pub fn elements(seed: u64) -> Elements {
    if seed.is_multiple_of(2) { Elements::default() } else { Elements { bytes: 2, commute: false } }
}

/// What is drawn from a seed.
pub fn drawn(seed: u64, ranks: usize, steps: usize, bytes: usize) -> Drawn {
    draw(&mut Xoshiro256PlusPlus::seed_from_u64(seed), ranks, steps, bytes, elements(seed))
}

/// Runs one rank's program of what is drawn from a seed, and checks every byte of its output.
pub fn run_rank<T: Transport>(executor: &mut Executor<T::Request>, transport: &mut T, drawn: &Drawn, seed: u64) -> Trace {
    let me = transport.rank();
    let (input, mut output) = drawn.buffers(me);
    let (program, combine) = (&drawn.schedule.programs[me], operation(elements(seed)));
    let mut trace = Trace::new(program.len());
    let mut task = Task::new(program).combining(&combine).traced(Some(&mut trace));
    // SAFETY: the buffers are this rank's own
    #[allow(unsafe_code)]
    unsafe { executor.run(transport, &mut task, Buffers::of(&input, &mut output), 0) }.unwrap();
    let wrong = output.iter().zip(drawn.expected(me)).filter(|(a, b)| **a != *b).count();
    assert_eq!(wrong, 0, "seed {seed}: {wrong} of {} bytes at rank {me}", output.len());
    trace
}

/// Runs so many drawn schedules with buffers of these sizes on the transport of one of `ranks` ranks.
pub fn run_drawn<T: Transport>(transport: &mut T, ranks: usize, seeds: u64, sizes: [usize; 3]) {
    let mut executor = Executor::default();
    for seed in 0..seeds {
        let drawn = drawn(seed, ranks, 20 + seed as usize, sizes[seed as usize % 3]);
        run_rank(&mut executor, transport, &drawn, seed);
    }
}
