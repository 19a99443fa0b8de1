//! Valid schedules drawn at random: several lanes, any dependencies, buffers used again and again.

use collwise::schedule::{Action, OpId, Piece, Program, Schedule, Span, Specification};
use rand::Rng;

/// A schedule with what it does to each rank's buffer, byte by byte.
pub struct Drawn {
    pub schedule: Schedule,
    pub specification: Specification,
    /// What lies in each rank's buffer at the end: whose byte, and which.
    pub ends: Vec<Vec<(usize, usize)>>,
}

/// An operation of one rank as it is drawn.
struct Step {
    action: Action,
    lane: u16,
    after: Vec<OpId>,
}

impl Step {
    fn span(&self) -> Span {
        match self.action {
            Action::Send { span, .. } | Action::Recv { span, .. } => span,
            _ => Span::control(0),
        }
    }
}

/// True if two operations use a byte in common and one of them receives into it.
fn clash(a: &Step, b: &Step) -> bool {
    let (x, y) = (a.span(), b.span());
    let receives = |s: &Step| matches!(s.action, Action::Recv { .. });
    x.len > 0 && y.len > 0 && x.offset < y.offset + y.len && y.offset < x.offset + x.len && (receives(a) || receives(b))
}

/// Draws some messages among some ranks with buffers of `bytes`. All ranks have bytes of their own at the beginning.
pub fn draw(random: &mut impl Rng, ranks: usize, messages: usize, bytes: usize) -> Drawn {
    let mut steps: Vec<Vec<Step>> = (0..ranks).map(|_| Vec::new()).collect();
    let mut ends: Vec<Vec<(usize, usize)>> = (0..ranks).map(|r| (0..bytes).map(|k| (r, k)).collect()).collect();
    for _ in 0..messages {
        let from = random.random_range(0..ranks);
        let to = (from + random.random_range(1..ranks)) % ranks;
        let lane = random.random_range(0..3);
        let most = if random.random_bool(0.2) { bytes } else { bytes.min(bytes / 8 + 1) };
        let len = random.random_range(0..=most);
        let mut place = || Span::data(random.random_range(0..=bytes - len), len);
        let (source, target) = (place(), place());
        let moved: Vec<(usize, usize)> = ends[from][source.offset..source.offset + len].to_vec();
        ends[to][target.offset..target.offset + len].copy_from_slice(&moved);
        for (me, action) in [(from, Action::Send { to, span: source }), (to, Action::Recv { from, span: target })] {
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
        for step in steps {
            program.in_lane(step.lane);
            program.push(step.action, &step.after);
        }
        program
    });
    let own = |r: usize| vec![Piece { at: 0, len: bytes, of: r, from: 0 }];
    let pieces = |end: &Vec<(usize, usize)>| {
        let mut found: Vec<Piece> = Vec::new();
        for (at, &(of, from)) in end.iter().enumerate() {
            match found.last_mut() {
                Some(p) if p.of == of && p.from + p.len == from => p.len += 1,
                _ => found.push(Piece { at, len: 1, of, from }),
            }
        }
        found
    };
    let specification =
        Specification { bytes, before: (0..ranks).map(own).collect(), after: ends.iter().map(pieces).collect(), synchronises: false };
    Drawn { schedule: Schedule { programs: programs.collect() }, specification, ends }
}
