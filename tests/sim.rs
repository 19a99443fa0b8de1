//! The simulator does what its description says.

mod common;

use collwise::collective::{Parameters, Shape, bcast, gather, reduce};
use collwise::platform::{Noise, Placement, Platform};
use collwise::schedule::{Action, Program, Schedule, Span};
use collwise::sim::{Disturbance, Simulator};
use collwise::two_level::{Coordinated, IntraGroup};

const OVERHEAD: (f64, f64) = (5e-6 + 6e-6, 1e-9 + 2e-9);
const GAP: (f64, f64) = (8e-6, 8.5e-9);

/// Two groups; a pipe of 50 MB/s between them.
fn platform(more: &str) -> Platform {
    let text = format!(
        "format = 1\nname = \"t\"\n[hosts]\nsend_overhead_s = 5e-6\nsend_overhead_s_per_byte = 1e-9\nrecv_overhead_s = 6e-6\n\
         recv_overhead_s_per_byte = 2e-9\ngap_s = 8e-6\ngap_s_per_byte = 8.5e-9\neager_limit_bytes = 65536\n{more}\n\
         [[group]]\nname = \"a\"\ncount = 4\nlatency_s = 50e-6\n[[group]]\nname = \"b\"\ncount = 4\nlatency_s = 40e-6\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nlatency_s = 5e-3\nbandwidth_bytes_per_s = 50e6\n"
    );
    Platform::parse("t", &text).unwrap()
}

fn simulator(more: &str) -> Simulator {
    Simulator::new(&platform(more), Placement::Slot).unwrap()
}

/// Messages (from, to, bytes), all ready at the start.
fn schedule(messages: &[(usize, usize, usize)]) -> Schedule {
    let mut schedule = Schedule { programs: vec![Program::new(); 8] };
    for &(from, to, bytes) in messages {
        schedule.programs[from].send(to, Span::output(0, bytes), &[]);
        schedule.programs[to].recv(from, Span::output(0, bytes), &[]);
    }
    schedule
}

/// When each rank was done.
fn times(simulator: &Simulator, messages: &[(usize, usize, usize)], seed: u64) -> Vec<f64> {
    let mut noise = Disturbance::new(Noise::default(), seed);
    simulator.run(&schedule(messages), &mut noise).unwrap().iter().map(|t| t.finish()).collect()
}

fn near(got: f64, want: f64) {
    assert!((got / want - 1.0).abs() < 1e-9, "{got} is not {want}");
}

#[test]
fn one_message_takes_its_latency_and_its_bytes() {
    let s = simulator("");
    near(times(&s, &[(0, 1, 0)], 0)[1], 50e-6);
    near(times(&s, &[(0, 1, 10_000)], 0)[1], 50e-6 + 10_000.0 * (OVERHEAD.1 + GAP.1));
    near(times(&s, &[(4, 7, 10_000)], 0)[7], 40e-6 + 10_000.0 * (OVERHEAD.1 + GAP.1));
    // between the groups the pipe of 20 ns per byte is slower than the port
    near(times(&s, &[(0, 4, 10_000)], 0)[4], 5e-3 + 10_000.0 * (OVERHEAD.1 + 20e-9));
}

#[test]
fn some_ranks_take_what_they_take_among_all() {
    let s = simulator("");
    let all = s.run(&schedule(&[(1, 6, 10_000), (1, 2, 5), (6, 2, 80_000)]), &mut Disturbance::new(Noise::default(), 0)).unwrap();
    let some = Schedule { programs: schedule(&[(0, 2, 10_000), (0, 1, 5), (2, 1, 80_000)]).programs[..3].to_vec() };
    let among = s.run_among(&[1, 2, 6], &some, &mut Disturbance::new(Noise::default(), 0)).unwrap();
    assert_eq!(among, [1, 2, 6].map(|r| all[r].clone()));
    assert!(s.run_among(&[1, 2, 8], &some, &mut Disturbance::new(Noise::default(), 0)).is_err());
}

#[test]
fn a_port_sends_one_message_after_the_other() {
    let t = times(&simulator(""), &[(0, 1, 1000), (0, 2, 1000), (0, 3, 1000)], 0);
    let gap = GAP.0 + 1000.0 * GAP.1;
    near(t[2] - t[1], gap);
    near(t[3] - t[2], gap);
}

#[test]
fn a_short_message_does_not_overtake_a_long_one_before_it() {
    // the processor is at the long one for 65 us when its port takes the short one
    let long = 50e-6 + 60_000.0 * (OVERHEAD.1 + GAP.1);
    near(times(&simulator(""), &[(0, 1, 60_000), (0, 1, 100)], 0)[1], long + 6e-6 + 100.0 * 2e-9);
}

#[test]
fn flows_between_two_groups_share_the_pipe_and_directions_do_not() {
    let s = simulator("");
    let alone = times(&s, &[(0, 4, 50_000)], 0)[4];
    let both = times(&s, &[(0, 4, 50_000), (1, 5, 50_000)], 0);
    near(both[4].max(both[5]) - alone, 50_000.0 * 20e-9);
    let crossing = times(&s, &[(0, 4, 50_000), (5, 1, 50_000)], 0);
    near(crossing[4].max(crossing[1]), alone);
}

#[test]
fn messages_that_arrive_together_queue_at_the_receiver() {
    let s = simulator("");
    let alone = times(&s, &[(1, 0, 20_000)], 0)[0];
    let two = times(&s, &[(1, 0, 20_000), (2, 0, 20_000)], 0)[0];
    // the port takes them in one after the other; the processor works on the first one meanwhile
    near(two - alone, 20_000.0 * GAP.1);
}

#[test]
fn above_the_eager_limit_a_handshake_comes_first() {
    let s = simulator("");
    let per_byte = OVERHEAD.1 + GAP.1;
    near(times(&s, &[(0, 1, 65_536)], 0)[1], 50e-6 + 65_536.0 * per_byte);
    near(times(&s, &[(0, 1, 65_537)], 0)[1], 3.0 * 50e-6 + 65_537.0 * per_byte);
}

#[test]
fn a_handshake_is_granted_when_it_is_there() {
    // the receiver posts its receive while the request is on its way: as if it had been posted before
    let time = |delay: f64| {
        let (mut sends, mut receives) = (Program::new(), Program::new());
        sends.send(1, Span::output(0, 65_537), &[]);
        let waited = receives.push(Action::Delay { seconds: delay }, &[]);
        receives.recv(0, Span::output(0, 65_537), &[waited]);
        let traces = simulator("").run(&Schedule { programs: vec![sends, receives] }, &mut Disturbance::new(Noise::default(), 0)).unwrap();
        traces[1].finish()
    };
    near(time(20e-6), time(0.0));
    near(time(60e-6), time(0.0) + 10e-6);
}

#[test]
fn scatters_leap_and_gathers_escalate_where_tcp_does() {
    let leap = simulator("[tcp]\nscatter_leap_bytes = 30000\nscatter_leap_s = 1e-3\n");
    let fan = |bytes| times(&leap, &[(0, 1, bytes), (0, 2, bytes)], 0)[2];
    assert!(fan(30_001) - fan(30_000) > 1e-3, "{} {}", fan(30_000), fan(30_001));
    let lossy =
        simulator("[tcp]\ngather_low_bytes = 4000\ngather_high_bytes = 60000\ngather_escalation_s = 0.2\ngather_escalation_share = 0.3\n");
    let slow = |bytes| (0..200).filter(|&seed| times(&lossy, &[(1, 0, bytes), (2, 0, bytes)], seed)[0] > 0.2).count();
    assert_eq!((slow(3000), slow(60_001)), (0, 0), "below M1 and above M2");
    assert!((40..80).contains(&slow(20_000)), "{} of 200 with a share of 0.3", slow(20_000));
    let alone = (0..200).filter(|&seed| times(&lossy, &[(1, 0, 20_000)], seed)[0] > 0.2).count();
    assert_eq!(alone, 0, "a message that meets no other is not lost");
}

#[test]
fn a_gather_in_segments_below_the_range_in_which_tcp_loses_messages_is_five_times_as_fast() {
    let platform = Platform::read(&common::file("platforms/hcl16.toml")).unwrap();
    let s = Simulator::new(&platform, Placement::Slot).unwrap();
    // in the mean of many runs, since messages are lost by chance
    let mean = |name: &str, segment: usize| {
        let schedule =
            gather::COLLECTIVE.algorithm(name).unwrap().schedule(&Shape::new(16, 0, 16 << 10), &Parameters::of(segment, 0)).unwrap();
        let once =
            |seed| s.run(&schedule, &mut Disturbance::new(Noise::default(), seed)).unwrap().iter().map(|t| t.finish()).fold(0.0, f64::max);
        (0..100).map(once).sum::<f64>() / 100.0
    };
    let (whole, cut) = (mean("flat", 0), mean("split_flat", 2 << 10));
    assert!(whole > 5.0 * cut, "{whole} s whole, {cut} s cut");
}

#[test]
fn runs_repeat_to_the_bit_and_placement_moves_ranks() {
    let p = Platform::read(&common::file("platforms/ccgrid2007.toml")).unwrap();
    let shape = Shape::new(78, 0, 100_000);
    let binomial = bcast::algorithm("binomial").unwrap().schedule(&shape, &Default::default()).unwrap();
    let run = |placement| {
        let s = Simulator::new(&p, placement).unwrap();
        s.run(&binomial, &mut Disturbance::new(Noise::default(), 1)).unwrap()
    };
    assert_eq!(run(Placement::Slot), run(Placement::Slot));
    let completion = |placement| run(placement).iter().map(|t| t.finish()).fold(0.0, f64::max);
    assert!(completion(Placement::Node) > 1.5 * completion(Placement::Slot), "by node most edges of the tree cross sites");
}

#[test]
fn a_processor_takes_turns_between_messages_that_wait_and_sends() {
    // overheads of 11 us above the gap of 8: a relay's period is their sum, however long it is fed faster than it can pass on
    let s = simulator("");
    let (hop, period) = (50e-6 + 100.0 * (OVERHEAD.1 + GAP.1), OVERHEAD.0 + 100.0 * OVERHEAD.1);
    for count in [1, 2, 50, 500] {
        let shape = Shape::new(4, 0, 100 * count);
        let chain = bcast::algorithm("segmented_chain").unwrap();
        let schedule = chain.schedule(&shape, &Parameters::of(100, 0)).unwrap();
        let traces = s.run(&schedule, &mut Disturbance::new(Noise::default(), 1)).unwrap();
        let got = traces.iter().map(|t| t.finish()).fold(0.0, f64::max);
        near(got, 3.0 * hop + (count - 1) as f64 * period);
    }
}

#[test]
fn large_messages_wait_for_their_window_and_small_ones_leave_at_once() {
    let s = simulator("");
    let time = |bytes: usize, in_flight| {
        let shape = Shape::new(2, 0, 12 * bytes);
        let parameters = Parameters { in_flight, ..Parameters::of(bytes, 0) };
        let schedule = bcast::algorithm("segmented_chain").unwrap().schedule(&shape, &parameters).unwrap();
        let traces = s.run(&schedule, &mut Disturbance::new(Noise::default(), 1)).unwrap();
        traces.iter().map(|t| t.finish()).fold(0.0, f64::max)
    };
    // with one under way each is granted when the one before it was taken in; it was asked for meanwhile, but for the first
    let large = 65_537;
    near(time(large, 1), 50e-6 + 12.0 * (50e-6 + 50e-6 + large as f64 * (OVERHEAD.1 + GAP.1)));
    let by_window: Vec<f64> = [1, 2, 4, 0].map(|w| time(large, w)).to_vec();
    assert!(by_window.windows(2).all(|t| t[0] >= t[1]) && by_window[0] > 1.2 * by_window[3], "{by_window:?}");
    assert_eq!(time(65_536, 1), time(65_536, 0), "without a handshake nothing is held back");
}

#[test]
fn a_reduction_through_coordinators_keeps_a_long_link_busy_where_messages_wait_for_their_receives() {
    // every message shakes hands, which takes 15 ms between the groups; its bytes take 21 ms of the pipe
    let platform =
        Platform::parse("t", &platform("").to_toml().unwrap().replace("eager_limit_bytes = 65536", "eager_limit_bytes = 0")).unwrap();
    let (s, bytes) = (Simulator::new(&platform, Placement::Slot).unwrap(), 1 << 20);
    let coordinated = Coordinated {
        collective: &reduce::COLLECTIVE,
        groups: vec![(0..4).collect(), (4..8).collect()],
        inside: IntraGroup::of(bcast::CHAIN),
        between: IntraGroup::of(reduce::COLLECTIVE.algorithm("chain").unwrap()),
        segment: 8 << 10,
    };
    let shape = coordinated.shape(bytes);
    let programs = (0..8).map(|me| coordinated.program(me, &shape).unwrap()).collect();
    let traces = s.run(&Schedule { programs }, &mut Disturbance::new(Noise::default(), 0)).unwrap();
    let took = traces.iter().map(|t| t.finish()).fold(0.0, f64::max);
    assert!(took < 0.08, "{took} s");
}

#[test]
fn schedules_that_cannot_run_are_refused() {
    let s = simulator("");
    let mut noise = Disturbance::new(Noise::default(), 1);
    let mut lonely = Schedule { programs: vec![Program::new(); 2] };
    lonely.programs[0].recv(1, Span::output(0, 1), &[]);
    assert!(s.run(&lonely, &mut noise).is_err());
    assert!(s.run(&Schedule { programs: vec![Program::new(); 9] }, &mut noise).unwrap_err().to_string().contains("9 ranks on 8 hosts"));
}
