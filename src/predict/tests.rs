//! What no schedule of the collectives does.

use super::*;
use crate::schedule::{Program, Span};

/// Rank 0's messages take for ever.
struct Lost;

impl CostModel for Lost {
    fn cost(&self, link: Link, _: usize) -> Cost {
        if link.from == 0 { Cost::NEVER } else { Cost::default() }
    }
}

/// Rank 0 sends to rank 1, which sends it on to rank 2; then ranks 2 and 3 exchange messages, in the order that is given.
fn schedule(receives_first: [bool; 2]) -> Schedule {
    let message = Span::output(0, 8);
    let mut programs = vec![Program::new(); 4];
    programs[0].send(1, message, &[]);
    let got = programs[1].recv(0, message, &[]);
    programs[1].send(2, message, &[got]);
    programs[2].recv(1, message, &[]);
    for (me, receives_first) in [2, 3].into_iter().zip(receives_first) {
        let (program, other) = (&mut programs[me], 5 - me);
        if receives_first {
            let got = program.recv(other, message, &[]);
            program.send(other, message, &[got]);
        } else {
            program.send(other, message, &[]);
            program.recv(other, message, &[]);
        }
    }
    Schedule { programs }
}

#[test]
fn who_waits_in_a_circle_waits_for_ever_also_where_a_message_takes_for_ever() {
    assert_eq!(completion(&schedule([false, true]), &Lost).unwrap(), f64::INFINITY);
    for model in [&Lost as &dyn CostModel, &Free] {
        let said = completion(&schedule([true, true]), model).unwrap_err().to_string();
        assert!(said.contains("rank 2 waits for ever"), "{said}");
    }
}

#[test]
fn what_never_comes_is_waited_for_for_ever_also_where_ranks_are_not_replayed_by_time() {
    let message = Span::output(0, 8);
    // rank 0's neighbours alone hear it in order; in a ring all hear each other
    for (ranks, ring) in [(2, false), (100, true)] {
        let schedule = Schedule::build(ranks, |rank| {
            let mut program = Program::new();
            if ring || rank == 0 {
                program.send((rank + 1) % ranks, message, &[]);
            }
            if ring || rank == 1 {
                program.recv((rank + ranks - 1) % ranks, message, &[]);
            }
            program
        });
        assert_eq!(completion(&schedule, &Lost).unwrap(), f64::INFINITY, "{ranks} ranks");
        assert_eq!(completion_within(&schedule, &Lost, 1.0).unwrap(), f64::INFINITY, "{ranks} ranks");
    }
}

/// Messages take hardly any time, but keep the port for some.
struct Short;

impl CostModel for Short {
    fn cost(&self, _: Link, _: usize) -> Cost {
        Cost { gap: 1e-6, transit: 1e-30, ..Cost::default() }
    }
}

#[test]
fn where_windows_are_too_short_to_be_told_from_their_begin_ranks_are_replayed_by_time() {
    let alltoall = crate::collective::collective("alltoall").unwrap();
    let direct = alltoall.algorithm("direct").unwrap();
    let schedule = direct.schedule(&alltoall.shape(64, 0, 8), &crate::collective::Parameters::default()).unwrap();
    assert!((completion(&schedule, &Short).unwrap() / 62e-6 - 1.0).abs() < 1e-9);
}

#[test]
fn a_rank_may_send_to_itself_wherever_it_is_replayed() {
    let message = Span::output(0, 8);
    let ranks = 100;
    let schedule = Schedule::build(ranks, |rank| {
        let mut program = Program::new();
        program.send((rank + 1) % ranks, message, &[]);
        program.recv((rank + ranks - 1) % ranks, message, &[]);
        program.send(rank, message, &[]);
        program.recv(rank, message, &[]);
        program
    });
    let model = Unlike { pipes: false };
    let [mut windows, mut all] = [(); 2].map(|()| recorded(&schedule, &model));
    assert!(windows.in_windows(f64::INFINITY).unwrap().is_some() && all.all_at_once(f64::INFINITY));
    assert_eq!(windows.done, all.done);
}

/// A replay of which all is kept.
pub(super) fn recorded<'a>(schedule: &'a Schedule, model: &'a dyn CostModel) -> Run<'a> {
    let mut run = Run::new(schedule, model).unwrap();
    run.record = Some(Record::new(schedule));
    run
}

/// The same with as many messages under way as may be, whether more would be or not.
pub(super) fn held_back<'a>(mut run: Run<'a>) -> Run<'a> {
    let limits = under_way::limits(&run.schedule.programs, &run.progress.sent);
    run.hold_back(limits);
    run
}

/// Each link has its own costs, some of which are of streams slower than the port; what goes from two ranks to two others goes through one pipe.
pub(super) struct Unlike {
    pub pipes: bool,
}

impl CostModel for Unlike {
    fn cost(&self, link: Link, bytes: usize) -> Cost {
        let (a, b) = (1.0 + (link.from * 7 % 5) as f64, 1.0 + (link.to * 3 % 4) as f64);
        let stream = 1e-9 * bytes as f64;
        Cost {
            send_overhead: a * 1e-6,
            gap: a * 1e-6 + stream,
            link_gap: a * b * stream,
            transit: (a + 2.0 * b) * 1e-6 + a * b * stream,
            recv_overhead: b * 1e-6,
        }
    }

    fn combine(&self, rank: Rank, bytes: usize) -> f64 {
        1e-10 * ((1 + rank % 3) * bytes) as f64
    }

    fn pipe(&self, link: Link, bytes: usize) -> Option<(Pipe, f64)> {
        self.pipes.then_some(((link.from / 2, link.to / 2), 3e-9 * bytes as f64))
    }
}

#[test]
fn ranks_one_after_the_other_or_in_windows_do_what_they_do_all_at_once() {
    let loggp = crate::model::Values::of(&[("L", 5e-6), ("o", 6e-6), ("g", 3e-6), ("G", 1e-9)]);
    let loggp = crate::model::model("loggp").unwrap().costs(&loggp).unwrap();
    let models: [(&dyn CostModel, bool); 4] =
        [(loggp.as_ref(), true), (&Unlike { pipes: false }, true), (&Unlike { pipes: true }, false), (&Free, false)];
    let (mut in_order, mut in_windows) = ([0; 4], [0; 4]);
    for collective in crate::collective::COLLECTIVES.iter().copied() {
        let algorithms = collective.algorithms.iter();
        for (algorithm, ranks, bytes) in algorithms.flat_map(|a| [2, 3, 8, 13, 24].map(|p| [0, 1, 3000].map(|m| (a, p, m))).concat()) {
            let shape = collective.shape(ranks, ranks / 3, bytes);
            let schedule = algorithm.bounded_schedule(&shape, &crate::collective::Parameters::of(512, 0));
            let Ok(Some(schedule)) = schedule else { continue };
            for (k, (model, all)) in models.into_iter().enumerate() {
                let new = || recorded(&schedule, model);
                let (mut one, mut all_at_once) = (new(), new());
                assert!(all_at_once.all_at_once(f64::INFINITY));
                let order = order::senders_first(&schedule);
                let replayed = one.one_after_the_other(&order, f64::INFINITY).unwrap();
                let ordered = order.len() == ranks;
                assert!(replayed == ordered.then_some(true) || !all, "{} among {ranks}", algorithm.name);
                in_order[k] += usize::from(replayed.is_some());
                // where they have to be replayed by time nothing was done yet
                let done = if replayed.is_some() { one.done } else { one.all_at_once(f64::INFINITY).then_some(one.done).unwrap() };
                assert_eq!(done, all_at_once.done, "{} among {ranks}, {bytes} B", algorithm.name);
                let [one, all] = [one.record, all_at_once.record].map(Option::unwrap);
                assert!(one.port_free == all.port_free && one.start == all.start, "{} among {ranks}", algorithm.name);
                let mut windows = new();
                if windows.in_windows(f64::INFINITY).unwrap().is_some() {
                    in_windows[k] += usize::from(schedule.messages() > 0);
                    assert_eq!(windows.done, done, "{} among {ranks}, {bytes} B", algorithm.name);
                    let windows = windows.record.unwrap();
                    assert!(windows.port_free == all.port_free && windows.start == all.start, "{} among {ranks}", algorithm.name);
                } else {
                    // nothing was done yet
                    assert!(windows.all_at_once(f64::INFINITY) && windows.done == done, "{} among {ranks}", algorithm.name);
                }
            }
        }
    }
    assert!(in_order[0] > 200 && in_order[1] == in_order[0] && (1..in_order[0]).contains(&in_order[2]), "{in_order:?}");
    // where messages take no time there are no windows
    assert!(in_windows[0] > in_order[0] && in_windows[1..3] == [in_windows[0]; 2], "{in_windows:?}");
    assert_eq!(in_windows[3], 0);
}

/// All links and processors are alike; combining and copying take time.
struct Alike;

impl CostModel for Alike {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let stream = 1e-9 * bytes as f64;
        Cost { send_overhead: 2e-6, gap: 3e-6 + stream, link_gap: 3e-6 + 2.0 * stream, transit: 2e-5 + 2.0 * stream, recv_overhead: 1e-6 }
    }

    fn copy(&self, _: Rank, bytes: usize) -> f64 {
        2e-10 * bytes as f64
    }

    fn combine(&self, _: Rank, bytes: usize) -> f64 {
        5e-10 * bytes as f64
    }
}

/// What a replay in windows takes, if it is within a limit.
fn completion_of(mut run: Run, limit: f64) -> Option<f64> {
    run.in_windows(limit).unwrap()?.then(|| run.completion())
}

#[test]
fn where_ranks_do_alike_one_of_them_does_what_all_do() {
    let mut found = std::collections::BTreeMap::new();
    for collective in crate::collective::COLLECTIVES.iter().copied() {
        let algorithms = collective.algorithms.iter();
        for (algorithm, ranks, in_flight) in algorithms.flat_map(|a| [8, 13, 24, 32].map(|p| [0, 2].map(|n| (a, p, n))).concat()) {
            let parameters = crate::collective::Parameters { in_flight, ..crate::collective::Parameters::of(512, 0) };
            let schedule = algorithm.bounded_schedule(&collective.shape(ranks, ranks / 3, 3000), &parameters);
            let Ok(Some(schedule)) = schedule else { continue };
            for model in [&Alike as &dyn CostModel, &Free] {
                let new = || held_back(recorded(&schedule, model));
                let (mut one, mut all) = (new(), new());
                assert!(all.all_at_once(f64::INFINITY));
                let mut windows = new();
                if in_flight == 0 && windows.in_windows(f64::INFINITY).unwrap().is_some() {
                    assert_eq!(windows.done, all.done, "{} among {ranks}", algorithm.name);
                    // what is within a limit to the digit is not cut off
                    assert_eq!(completion_of(new(), all.completion()), Some(all.completion()), "{} among {ranks}", algorithm.name);
                }
                let replayed = one.one_for_all(f64::INFINITY).unwrap();
                if replayed.is_none() {
                    // nothing was done yet
                    assert!(one.all_at_once(f64::INFINITY));
                }
                *found.entry((algorithm.name, model.cost(Link { from: 0, to: 1 }, 0).transit > 0.0)).or_insert(0) +=
                    usize::from(replayed.is_some());
                let [one_record, all_record] = [one.record.as_ref(), all.record.as_ref()].map(Option::unwrap);
                assert_eq!(one_record.port_free, all_record.port_free, "{} among {ranks}", algorithm.name);
                for rank in 0..ranks {
                    let ops = [one.ops(rank), all.ops(rank)];
                    assert_eq!(one.done[ops[0].clone()], all.done[ops[1].clone()], "rank {rank} of {ranks}, {}", algorithm.name);
                    assert_eq!(
                        one_record.start[ops[0].clone()],
                        all_record.start[ops[1].clone()],
                        "rank {rank} of {ranks}, {}",
                        algorithm.name
                    );
                }
                // only what takes longer than there is time may be cut off
                let (seconds, limited) = (all.completion(), |limit| new().one_for_all(limit).unwrap());
                assert_eq!(limited(seconds), replayed);
                let within = |limit| completion_within(&schedule, model, limit).unwrap();
                assert!(within(seconds) == seconds && within(seconds * 0.99) >= seconds && within(seconds * 0.5) >= seconds);
            }
        }
    }
    let times = |name, takes_time| found.get(&(name, takes_time)).copied().unwrap_or(0);
    for name in ["ring", "pairwise", "dissemination", "neighbour_exchange", "recursive_doubling", "rotated"] {
        assert!(times(name, true) >= 2, "{name}: {found:?}");
    }
    // where messages take no time, what a rank does hangs on the others' order
    assert!(found.iter().all(|(&(_, takes_time), &times)| takes_time || times == 0), "{found:?}");
}

/// A message takes a second a byte, of its sender too.
struct Bytes;

impl CostModel for Bytes {
    fn kinds(&self) -> usize {
        1
    }

    fn cost(&self, _: Link, bytes: usize) -> Cost {
        let time = bytes as f64;
        Cost { send_overhead: time, gap: time, transit: time, ..Cost::default() }
    }
}

#[test]
fn who_may_go_on_by_what_is_taken_in_at_its_own_turn_does_not_stand_for_others() {
    let (two, one) = (Span::output(0, 2), Span::output(2, 1));
    let ranks = 8;
    let schedule = Schedule::build(ranks, |rank| {
        let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        let mut program = Program::new();
        program.in_flight(1);
        program.send(next, two, &[]);
        program.send(next, one, &[]);
        program.in_lane(1);
        let copy = program.copy(Span::scratch(0, 1), Span::scratch(1, 1), &[]);
        program.in_lane(0);
        program.recv(before, two, &[copy]);
        program.recv(before, one, &[]);
        program
    });
    let mut run = held_back(Run::new(&schedule, &Bytes).unwrap());
    // the copies take no time: the last rank's receiver is done with its first message when its own turn comes, and those of the others are not
    assert_eq!(run.one_for_all(f64::INFINITY).unwrap(), None);
    assert!(run.all_at_once(f64::INFINITY));
    assert_eq!(run.completion(), 4.0);
}

/// Rank 0's messages and rank 4's go through one pipe, which rank 4's keep busy for long; what rank 0 sends keeps its receiver's processor.
struct OnePipe;

impl CostModel for OnePipe {
    fn cost(&self, link: Link, _: usize) -> Cost {
        let (transit, recv_overhead) = match (link.from, link.to) {
            (0, 2) => (11.0, 10.0),
            (1, 2) => (2.5, 1.0),
            (2, 3) => (20.0, 0.0),
            _ => (1.0, 0.0),
        };
        Cost { transit, recv_overhead, ..Cost::default() }
    }

    fn pipe(&self, link: Link, _: usize) -> Option<(Pipe, f64)> {
        [0, 4].contains(&link.from).then_some(((0, 1), if link.from == 4 { 5.0 } else { 0.0 }))
    }
}

#[test]
fn a_limit_holds_of_what_all_ranks_do() {
    let message = Span::output(0, 8);
    let mut programs = vec![Program::new(); 6];
    let late = programs[0].push(Action::Delay { seconds: 0.1 }, &[]);
    programs[0].send(2, message, &[late]);
    programs[1].send(2, message, &[]);
    programs[2].recv(0, Span::output(8, 8), &[]);
    let got = programs[2].recv(1, message, &[]);
    programs[2].send(3, message, &[got]);
    programs[3].recv(2, message, &[]);
    programs[4].send(5, message, &[]);
    programs[5].recv(4, message, &[]);
    let schedule = Schedule { programs };
    // rank 0's message waits for rank 4's, and rank 1's comes before it
    for limit in [f64::INFINITY, 25.0] {
        let seconds = completion_within(&schedule, &OnePipe, limit).unwrap();
        assert!((seconds / 22.5 - 1.0).abs() < 1e-9, "{seconds} s, within {limit}");
    }
}

/// Where a root has room for few messages at a time, all others come before their receives are posted.
#[test]
fn what_comes_early_is_looked_at_again_when_it_may_go_on_and_no_more_often() {
    let loggp = crate::model::Values::of(&[("L", 3e-5), ("o", 5e-5), ("g", 8e-6), ("G", 1e-10)]);
    let loggp = crate::model::model("loggp").unwrap().costs(&loggp).unwrap();
    let reduce = &crate::collective::reduce::COLLECTIVE;
    let shape = reduce.shape(5000, 0, 64 << 10);
    let schedule = reduce.algorithm("flat").unwrap().schedule(&shape, &Default::default()).unwrap();
    let before = EVENTS.get();
    completion(&schedule, loggp.as_ref()).unwrap();
    let events = EVENTS.get() - before;
    assert!(events < 20 * schedule.messages() as u64, "{events} events for {} messages", schedule.messages());
}

/// A link on which a thousand messages fit behind each other.
struct Long;

impl CostModel for Long {
    fn cost(&self, _: Link, bytes: usize) -> Cost {
        Cost { send_overhead: 1e-6, gap: 1e-9 * bytes as f64, transit: 1e-6 * bytes as f64, recv_overhead: 1e-6, ..Cost::default() }
    }
}

#[test]
fn no_more_is_under_way_than_may_be_where_programs_say_nothing() {
    // of large messages 64, of small ones as many as make up 4 MiB
    for (bytes, most) in [(256 << 10, 64), (16 << 10, 256)] {
        for (windows, in_flight) in [(1, 0), (3, 0), (3, 2), (3, 64)] {
            let messages = windows * most;
            let mut programs = vec![Program::new(), Program::new(), Program::new()];
            for k in 0..messages {
                let span = Span::output(k * bytes, bytes);
                programs[0].send(1, span, &[]);
                let got = programs[1].recv(0, span, &[]);
                programs[1].send(2, span, &[got]);
                programs[2].recv(1, span, &[]);
            }
            let Cost { gap, transit, .. } = Long.cost(Link { from: 0, to: 1 }, bytes);
            // a message leaves when the one a window before it is received; those of the first one leave one after the other
            let window = if in_flight > 0 { in_flight } else { most };
            let want = (messages / window + 1) as f64 * transit + (window - 1) as f64 * gap;
            let programs = programs.into_iter().map(|program| program.with_in_flight(in_flight)).collect();
            let found = completion(&Schedule { programs }, &Long).unwrap();
            assert!((found / want - 1.0).abs() < 1e-3, "{messages} of {bytes} bytes, {in_flight} said: {found}, want {want}");
        }
    }
}

#[test]
fn a_pipeline_on_long_links_is_known_by_its_first_windows() {
    let chain = |segment: usize| {
        move |bytes: usize| {
            let mut programs = vec![Program::new(), Program::new(), Program::new()];
            for span in crate::schedule::segments(bytes, segment) {
                programs[0].send(1, span, &[]);
                let got = programs[1].recv(0, span, &[]);
                programs[1].send(2, span, &[got]);
                programs[2].recv(1, span, &[]);
            }
            Ok(Schedule { programs })
        }
    };
    for (bytes, segment) in [(1 << 30, 256 << 10), (1000 << 20, 16 << 10)] {
        let whole = completion(&chain(segment)(bytes).unwrap(), &Long).unwrap();
        let seen = std::cell::Cell::new(0);
        let schedule = |bytes: usize| {
            seen.set(bytes.max(seen.get()));
            chain(segment)(bytes)
        };
        let repeats = Repeats { segment, turn: 1, in_flight: 0 };
        let found = pipelined(bytes, repeats, &Long, f64::INFINITY, schedule).unwrap();
        assert!((found / whole - 1.0).abs() < 0.01, "{bytes} in {segment}: {found}, replayed {whole}");
        assert!(seen.get() < bytes / 2);
    }
}
