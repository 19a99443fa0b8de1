//! Whom the processes of applications send to, and among which of them collectives are.

mod common;

use collwise::platform::Platform;
use collwise::qnm::{
    Alike, Application, Call, Distance, Form, Histogram, Machine, Neighbourhood, Part, Partners, Phase, Profile, Report, Run, Said, Series,
    Site, Spread, balanced, parts, report,
};
use common::applications::{alike, close, run_with};

/// A matrix on a plane of processes, as NPB's CG has it: sums along rows and an exchange across the diagonal, and numbers along rows.
#[test]
fn rows_of_a_plane_are_recognised_and_placed() {
    let cluster = Platform::read(&common::file("platforms/icluster2.toml")).unwrap();
    let machine = Machine::of_platform(&cluster, 1).unwrap();
    let run = |ranks: usize| {
        let row = balanced(ranks, 2)[0] as f64;
        let call = |count: f64, bytes: f64, size: usize| Call {
            name: "Send".into(),
            count,
            bytes,
            said: Said::Report,
            part: None,
            nth: 0,
            size,
            seconds: 0.0,
        };
        let calls = vec![call(800.0 * row.log2(), 8.0, 0), call(400.0 * (1.0 + row.log2()), 56e3 / row, 1)];
        let mpi_s = calls.iter().map(|c| c.count * (50e-6 + c.bytes * 9e-9)).sum::<f64>();
        let all = calls.iter().map(|c| c.count).sum::<f64>();
        let mean = calls.iter().map(|c| c.count * c.bytes).sum::<f64>() / all;
        Run { calls: vec![call(all, mean, 0)], ..run_with(ranks, 1.0 / ranks as f64 + mpi_s, mpi_s, calls) }
    };
    let app = Application::fit([2, 4, 8, 16].map(run).to_vec(), &machine, Spread::OnePerNode).unwrap();
    let laws: Vec<(Form, Form)> = app.calls.iter().map(|c| (c.count.law.form, c.bytes.as_ref().unwrap().law.form)).collect();
    assert_eq!(laws, [(Form::Row, Form::Constant), (Form::Row, Form::Side)]);
    let is = |ranks: usize, machine: &Machine, spread: Spread| app.predict(ranks, machine, spread).unwrap().components.switch_s;
    let alone = is(64, &machine, Spread::OnePerNode);
    assert!(close(alone, run(64).mpi_s, 1e-9), "{alone}");
    // four of a row are on a node: of their messages only those across the diagonal leave it, three of them through one port
    let four = Machine::of_platform(&cluster, 4).unwrap();
    let leaves = 400.0 * (50e-6 + 3.0 * 14e3 * 9e-9);
    let in_blocks = is(16, &four, Spread::Block);
    assert!(close(in_blocks, leaves, 1e-9), "{in_blocks} {leaves}");
}

/// Whom processes send to is followed where our own reports say it, and how programs like that go on with other numbers of processes.
#[test]
fn noted_partners_are_followed() {
    // sixteen processes: pairs at a distance of 4, as a plane's columns have them, and nothing along rows
    let column = |rank: usize| if (rank / 4).is_multiple_of(2) { 4 } else { -4 };
    let profiles: Vec<Profile> = (0..16)
        .map(|rank| {
            let mut profile = Profile { node: format!("n{rank}"), app_s: 2.0, ..Profile::default() };
            for _ in 0..100 {
                profile.note("Send", "8KiB", 14, 10e-3, 10_000);
                profile.note_partner("Send", "8KiB", (rank, column(rank)), 10_000);
            }
            profile
        })
        .collect();
    let read = Report::parse("own", &report("app", &profiles).unwrap()).unwrap();
    let far: Vec<(isize, usize, f64)> = read.distances.iter().map(|d| (d.distance, d.processes, d.messages)).collect();
    assert_eq!(far, [(-4, 8, 800.0), (4, 8, 800.0)]);
    let cluster = Platform::read(&common::file("platforms/icluster2.toml")).unwrap();
    let machine = Machine::of_platform(&cluster, 1).unwrap();
    let app = Application::fit(vec![Run::of(&read).unwrap()], &machine, Spread::OnePerNode).unwrap();
    let on = |cores: usize| {
        let there = Machine::of_platform(&cluster, cores).unwrap();
        app.predict(16, &there, Spread::Block).unwrap().components.switch_s
    };
    // in blocks of four all messages leave, four of them through one port; in blocks of eight none does
    assert!(close(on(1), 100.0 * (50e-6 + 90e-6), 1e-9), "{}", on(1));
    assert!(close(on(4), 100.0 * (50e-6 + 4.0 * 90e-6), 1e-9), "{}", on(4));
    assert_eq!(on(8), 0.0);
    let distance = |distance: isize, processes: usize| Distance {
        call: "Send".into(),
        size: "8B".into(),
        distance,
        processes,
        messages: 10.0 * processes as f64,
        lower: 5.0 * processes as f64,
        bytes: 80.0 * processes as f64,
    };
    let cube: Vec<Distance> = [-16, -4, -1, 1, 4, 16].map(|d| distance(d, 48)).to_vec();
    assert_eq!(Neighbourhood::nearest(&cube, 64), Neighbourhood::Cube);
    let row: Vec<Distance> = [-1, 1].map(|d| distance(d, 63)).to_vec();
    assert_eq!(Neighbourhood::nearest(&row, 64), Neighbourhood::Chain);
    let doubling: Vec<Distance> = [1, 2, 4, 8, 16, 32].map(|d| distance(d, 32)).to_vec();
    assert_eq!(Neighbourhood::nearest(&doubling, 64), Neighbourhood::Hypercube);
}

/// mpiP's option -y says among how many processes collectives are: rows as NPB's FT has them on 64 ranks (class W), whose report is large.
#[test]
fn parts_of_the_processes_are_read() {
    let real = Report::read(&common::file("tests/data/mpip/hpccg.4.yp.mpiP")).unwrap();
    let rows: Vec<_> = real.histogram.iter().map(|row| (row.call.as_str(), row.share, row.ranks, row.bytes)).collect();
    assert_eq!(rows, [("Allreduce", 68.5, (0, 7), (8.0, 15.0)), ("Allreduce", 2.35, (0, 7), (16.0, 31.0))]);
    assert!(Run::of(&real).unwrap().calls.iter().all(|call| call.part.is_none()), "four of four are all");

    let rows = ["Alltoall 57.8 32 - 63 4096 - 8191", "Bcast 16.7 64 - 127 8 - 15", "Alltoall 13.6 0 - 7 65536 - 131071"];
    let row = |text: &&str| Histogram::of(&text.split_whitespace().collect::<Vec<_>>()).unwrap();
    let histogram: Vec<Histogram> = rows.iter().map(row).collect();
    let report = |ranks: usize, histogram: &[Histogram]| Report {
        nodes: vec![String::new(); ranks],
        histogram: histogram.to_vec(),
        version: "3.5.0".into(),
        ..real.clone()
    };
    let site = |call: &str, bytes: f64| Site { call: call.into(), count: Some(1.0), bytes, ..Site::default() };
    let found = |report: &Report, site: &Site| parts(report, site).into_iter().map(|share| (share.part, share.calls)).collect::<Vec<_>>();
    let one = |ranks: usize, stride: Option<usize>| vec![(Some(Part::new(ranks, stride)), 1.0)];
    let ft = report(64, &histogram);
    assert_eq!(found(&ft, &site("Alltoall", 4096.0)), one(32, Some(2)));
    assert_eq!(found(&ft, &site("Alltoall", 65_536.0)), one(2, Some(1)));
    assert_eq!(found(&ft, &site("Bcast", 12.0)), [(None, 1.0)]);
    assert_eq!(found(&ft, &site("Reduce", 16.0)), [(None, 1.0)], "nothing is said of it");
    // rows and columns alike: it is not known which; those of the most even plane, if others are as likely, too
    let of_range = |ranks: usize, text: &str| found(&report(ranks, &[row(&text)]), &site("Alltoall", 4096.0));
    assert_eq!(of_range(64, "Alltoall 50 8 - 15 4096 - 8191"), one(8, None));
    let guess = |ranks: usize, stride: Option<usize>, range: (usize, usize)| Some(Part { range: Some(range), ..Part::new(ranks, stride) });
    let halves = |a, b| vec![(a, 0.5), (b, 0.5)];
    assert_eq!(of_range(24, "Alltoall 50 0 - 7 4096 - 8191"), halves(Some(Part::new(4, Some(1))), Some(Part::new(6, Some(4)))));
    let plane = [row(&"Alltoall 50 8 - 15 4096 - 8191"), row(&"Alltoall 50 0 - 7 65536 - 131071")];
    assert_eq!(found(&report(48, &plane), &site("Alltoall", 4096.0)), [(guess(8, Some(6), (8, 15)), 1.0)]);
    assert_eq!(found(&report(48, &plane), &site("Alltoall", 7e4)), [(guess(6, Some(1), (2, 7)), 1.0)]);
    // all but one, or any other number that divides nothing
    assert_eq!(of_range(32, "Alltoall 50 16 - 31 4096 - 8191"), [(guess(16, None, (16, 31)), 1.0)]);
    assert_eq!(of_range(23, "Alltoall 50 8 - 15 4096 - 8191"), [(guess(10, None, (8, 15)), 1.0)]);
    assert_eq!(row(&"Bcast 1.5 0 - 7 -2147483648 - -1").bytes.0, 2f64.powi(31), "as mpiP writes 2 GiB");
    for wrong in ["Alltoall 57.8 32 - 63 4096", "Alltoall x 32 - 63 4096 - 8191", "Alltoall 1 32 to 63 4096 - 8191", ""] {
        assert_eq!(Histogram::of(&wrong.split_whitespace().collect::<Vec<_>>()), None, "{wrong}");
    }
}

/// Calls in parts of the processes have laws of their own, are not there where a program has none, and go only as far as their part.
#[test]
fn parts_of_the_processes_are_placed() {
    let cluster = Platform::read(&common::file("platforms/icluster2.toml")).unwrap();
    let machine = Machine::of_platform(&cluster, 1).unwrap();
    let call = |part: Option<Part>, nth: usize| {
        let bytes = 4096.0;
        Call { name: "Alltoall".into(), count: 10.0, bytes, said: Said::Report, part, nth, size: 0, seconds: 1.0 }
    };
    let run = |ranks: usize| {
        let part = |ranks: usize, stride: usize| Some(Part::new(ranks, Some(stride)));
        let calls = if ranks > 8 { vec![call(part(4, 1), 1), call(part(ranks / 4, 4), 2)] } else { vec![call(None, 0)] };
        run_with(ranks, 10.0 / ranks as f64 + 1.0, 1.0, calls)
    };
    let app = Application::fit([4, 8, 16, 32].map(run).to_vec(), &machine, Spread::OnePerNode).unwrap();
    let messages = |ranks: usize| app.predict(ranks, &machine, Spread::OnePerNode).unwrap().traffic.messages.round();
    // to three others, and to seven; to seven, and to three in a row and in a column
    assert_eq!([4, 8, 16].map(messages), [30.0, 70.0, 60.0]);
    assert_eq!(messages(64), 10.0 * (3.0 + 15.0), "columns grow, rows do not");
    // on nodes of four rows stay inside
    let four = Machine::of_platform(&cluster, 4).unwrap();
    let alone = app.predict(16, &machine, Spread::OnePerNode).unwrap().components.switch_s;
    let in_blocks = app.predict(16, &four, Spread::Block).unwrap().components.switch_s;
    let message = |sharing: f64| 50e-6 + sharing * 4096.0 * 9e-9;
    assert!(close(alone, 60.0 * message(1.0), 1e-9) && close(in_blocks, 30.0 * message(4.0), 1e-9), "{alone} {in_blocks}");
}

#[test]
fn ranks_are_placed() {
    let machine = alike(4, Some(3));
    let place = |ranks, spread| machine.place(ranks, spread).unwrap();
    assert_eq!(place(6, Spread::Block), [0, 0, 0, 0, 1, 1]);
    assert_eq!(place(6, Spread::Cyclic), [0, 1, 2, 0, 1, 2]);
    assert_eq!(place(3, Spread::OnePerNode), [0, 1, 2]);
    assert!(machine.place(4, Spread::OnePerNode).is_err() && machine.place(0, Spread::Block).is_err());
    // more ranks than processors share them evenly
    assert_eq!(place(15, Spread::Block), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
    // through one port: four ranks of a node that all send to another share it, and all wait for the last
    let next = |machine: &Machine, placed: &[usize]| machine.message_s(placed, Partners::Next, Neighbourhood::Cube, 1e6);
    let two = alike(4, Some(2));
    let dealt = two.place(8, Spread::Cyclic).unwrap();
    assert!(close(next(&two, &dealt), 50e-6 + 8e-3 * 4.0, 1e-9));
    assert!(close(next(&alike(1, Some(8)), &[0, 1, 2, 3]), 50e-6 + 8e-3, 1e-9));
    // in blocks one message of each node leaves it, dealt out all four do
    let platform = Platform::read(&common::file("platforms/icluster2.toml")).unwrap();
    let machine = Machine::of_platform(&platform, 4).unwrap();
    let (block, cyclic) = (machine.place(80, Spread::Block).unwrap(), machine.place(80, Spread::Cyclic).unwrap());
    assert_eq!(next(&machine, &cyclic), next(&machine, &block), "100 nodes: one on each");
    let cyclic: Vec<usize> = (0..80).map(|r| r % 20).collect();
    assert!(close(next(&machine, &block), 50e-6 + 9e-3, 1e-9) && close(next(&machine, &cyclic), 50e-6 + 36e-3, 1e-9));
    // of six distances of 64 ranks, two stay inside nodes of four
    let doubling = machine.message_s(&block[..64], Partners::Doubling, Neighbourhood::Cube, 1e6);
    assert!(close(doubling, (50e-6 + 36e-3) * 4.0 / 6.0, 1e-9), "{doubling}");
    // each rank has three of 79 others on its node
    let anyone = machine.message_s(&block, Partners::Anyone, Neighbourhood::Cube, 0.0);
    assert!((0.9 * 50e-6..=50e-6).contains(&anyone), "{anyone}");
}

/// Boxes of processes are as near to cubes as they divide, and partners are each other's.
#[test]
fn partners_are_where_they_should_be() {
    for (ranks, dimensions, sides) in
        [(64, 3, vec![4, 4, 4]), (32, 3, vec![4, 4, 2]), (12, 2, vec![4, 3]), (7, 3, vec![7, 1, 1]), (1, 2, vec![1, 1])]
    {
        assert_eq!(balanced(ranks, dimensions), sides, "{ranks}");
    }
    for ranks in 1..200 {
        for neighbours in Neighbourhood::ALL {
            for partners in Partners::ALL {
                for phase in neighbours.phases(partners, ranks) {
                    let to: Vec<usize> = (0..ranks).filter_map(|r| phase.partner(r, ranks)).collect();
                    let mut once = to.clone();
                    once.sort_unstable();
                    once.dedup();
                    assert!(to.iter().all(|t| *t < ranks) && once.len() == to.len(), "nobody is sent to twice: {ranks} {phase:?}");
                    let all_send = match phase {
                        Phase::Across(_) => ranks.is_power_of_two(),
                        // but for those on the diagonal
                        Phase::Transposed { .. } => false,
                        _ => true,
                    };
                    assert!(!all_send || to.len() == ranks, "{ranks} {phase:?}");
                }
            }
        }
    }
    // of a square of 4 x 4, rank 6 is in row 1 and column 2
    let square = Neighbourhood::Cube.phases(Partners::Transposed, 16);
    assert_eq!([6, 9, 5].map(|rank| square[0].partner(rank, 16)), [Some(9), Some(6), None]);
    assert_eq!(Neighbourhood::Cube.phases(Partners::Row, 16), [Phase::Across(1), Phase::Across(2)]);
    assert_eq!(Neighbourhood::Cube.phases(Partners::Row, 8), [Phase::Across(1), Phase::Across(2)], "a row of four");
    // of a cube of 4 x 4 x 4, rank 3 is at the end of the first side
    let phases = Neighbourhood::Cube.phases(Partners::Program, 64);
    assert_eq!(phases.iter().map(|p| p.partner(3, 64)).collect::<Vec<_>>(), [Some(0), Some(7), Some(19)]);
}

/// The numbers of messages of grids tell the grid, and how far that goes.
#[test]
fn neighbours_are_guessed_from_laws() {
    let series =
        |f: &dyn Fn(usize) -> f64, sizes: &[usize]| Series::decided(&sizes.iter().map(|p| (*p, f(*p))).collect::<Vec<_>>()).unwrap();
    let open = |p: usize, dimensions: usize| balanced(p, dimensions).iter().map(|n| 2.0 * (1.0 - 1.0 / *n as f64)).sum::<f64>();
    let around = |p: usize| balanced(p, 3).iter().map(|n| 3.0 - 2.0 / *n as f64).product::<f64>() - 1.0;
    let sizes = [2, 4, 8, 16, 32, 64];
    for (law, is, form) in [
        (&(|p| 100.0 * open(p, 1)) as &dyn Fn(usize) -> f64, Neighbourhood::Chain, Form::Share),
        (&|p| 100.0 * open(p, 2), Neighbourhood::Plane, Form::Plane),
        (&|p| 100.0 * open(p, 3), Neighbourhood::Cube, Form::Cube),
        (&|_| 600.0, Neighbourhood::Cube, Form::Constant),
        (&|p| 50.0 * (1.0 + (p as f64).log2()), Neighbourhood::Hypercube, Form::Logarithm),
    ] {
        let counts = series(law, &sizes);
        assert_eq!((counts.law.form, Neighbourhood::guess(&counts, None)), (form, is));
        assert!(close(counts.at(128).value, law(128), 1e-9));
    }
    // LULESH: cubes only
    let counts = series(&|p| 20.0 * around(p), &[8, 27, 64]);
    assert_eq!((counts.law.form, Neighbourhood::guess(&counts, None)), (Form::Around, Neighbourhood::Cube));
    // the borders of a plane's parts become shorter as those of a square do
    let borders = series(&|p| 1e6 * balanced(p, 2).iter().sum::<usize>() as f64 / p as f64, &sizes);
    assert_eq!(Neighbourhood::guess(&series(&|_| 4.0, &sizes), Some(&borders)), Neighbourhood::Plane);
}

/// Parts are the same ones in several runs by how far their ranks lie apart, whichever are more; they are as they were seen where they were, and need not
/// divide all processes.
#[test]
fn parts_of_several_runs_are_the_same_ones() {
    let cluster = Platform::read(&common::file("platforms/icluster2.toml")).unwrap();
    let machine = Machine::of_platform(&cluster, 1).unwrap();
    // rows of three, and columns; blocks of 64 KiB and 1 KiB
    let grid = |ranks: usize| {
        let profile = |rank: usize| {
            let mut profile = Profile { node: format!("n{rank}"), app_s: 10.0 / ranks as f64, ..Profile::default() };
            for (members, stride, calls, size, bytes) in [(3, 1, 100, "64KiB", 65_536), (ranks / 3, 3, 10, "1KiB", 1024)] {
                let alike = Alike {
                    collective: "alltoall".into(),
                    digits: 11,
                    size: size.into(),
                    ranks: members,
                    stride: Some(stride),
                    communicator: String::new(),
                };
                for _ in 0..calls {
                    profile.note("Alltoall", size, 11, 1e-3, bytes);
                    profile.note_use(alike.clone(), 1e-3, bytes, || None);
                }
            }
            profile
        };
        let all: Vec<Profile> = (0..ranks).map(profile).collect();
        Run::of(&Report::parse("own", &report("app", &all).unwrap()).unwrap()).unwrap()
    };
    let app = Application::fit([6, 9, 12, 24].map(grid).to_vec(), &machine, Spread::OnePerNode).unwrap();
    let sent = |app: &Application, ranks: usize| {
        let traffic = app.predict(ranks, &machine, Spread::OnePerNode).unwrap().traffic;
        (traffic.messages.round(), (traffic.messages * traffic.message_bytes / 1024.0).round())
    };
    for ranks in [6, 9, 12, 24, 48] {
        let columns = 10.0 * (ranks as f64 / 3.0 - 1.0);
        let (messages, kibibytes) = sent(&app, ranks);
        // reports have three digits
        assert!(close(messages, 200.0 + columns, 1e-9) && close(kibibytes, 12_800.0 + columns, 1e-3), "{ranks}: {messages} {kibibytes}");
    }
    // a prime has parts that do not divide it
    let (messages, kibibytes) = sent(&app, 11);
    assert!(messages > 220.0 && kibibytes > 12_800.0, "{messages} {kibibytes}");
    // three of all, whether that divides them or not
    let call = |part| Call { name: "Alltoall".into(), count: 10.0, bytes: 4096.0, said: Said::Report, part, nth: 1, size: 0, seconds: 1.0 };
    let run = |ranks: usize| run_with(ranks, 10.0 / ranks as f64 + 1.0, 1.0, vec![call(Some(Part::new(3, Some(1))))]);
    let three = Application::fit([5, 7, 8].map(run).to_vec(), &machine, Spread::OnePerNode).unwrap();
    assert_eq!([5, 6, 7, 11, 16].map(|ranks| sent(&three, ranks).0), [20.0; 5]);
    // of two reports of as many processes, one says among which calls are
    let mut silent = grid(12);
    for call in silent.calls.iter_mut().chain(&mut silent.by_size) {
        (call.part, call.nth) = (None, 0);
    }
    silent.undivided = vec!["Alltoall".into()];
    // one that sends otherwise is no such report
    let mut other = silent.clone();
    other.by_size.iter_mut().for_each(|call| call.bytes *= 2.0);
    let apart = Application::fit(vec![grid(12), other], &machine, Spread::OnePerNode).unwrap();
    assert!(apart.runs.iter().any(|run| run.calls.iter().all(|call| call.part.is_none())));
    let both = Application::fit(vec![grid(6), grid(12), silent, grid(24)], &machine, Spread::OnePerNode).unwrap();
    let (messages, kibibytes) = sent(&both, 12);
    assert!(messages == 230.0 && close(kibibytes, sent(&app, 12).1, 1e-3), "{messages} {kibibytes}");
}

/// Where one process computes longer than the others, the time of a collective is waiting for it, whatever algorithm would take as long: it is as long on
/// a faster network. Without such a process, it is the algorithm's.
#[test]
fn waiting_for_a_process_that_computes_longer_is_no_algorithm() {
    let (machine, faster) = (alike(1, None), Machine::alike(1, None, 5e-6, 1.25e9).unwrap());
    let fit = |waits: bool| {
        let run = |ranks: usize| {
            // a ring's rounds
            let seconds = 100.0 * 2.0 * (ranks - 1) as f64 * 50e-6;
            let name = "Allreduce".into();
            let call = Call { name, count: 100.0, bytes: 8.0, said: Said::Report, part: None, nth: 0, size: 0, seconds };
            Run { imbalance_s: if waits { seconds } else { 0.0 }, ..run_with(ranks, 1.0 + seconds, seconds, vec![call]) }
        };
        Application::fit([8, 16, 32, 64].map(run).to_vec(), &machine, Spread::OnePerNode).unwrap()
    };
    let (waits, rings) = (fit(true), fit(false));
    let named = |app: &Application| app.observed.algorithms.iter().map(|o| o.call.clone()).collect::<Vec<_>>();
    assert_eq!((named(&waits), named(&rings)), (vec![], vec!["Allreduce".to_string()]));
    let there = |app: &Application| app.predict(64, &faster, Spread::OnePerNode).unwrap().wall_s;
    assert!(there(&waits) > 1.6 - 0.02 && there(&rings) < 1.1, "{} {}", there(&waits), there(&rings));
}

/// What messages take beyond the network is waiting for partners that are late now and then, and as long on a faster network, where it is much less a message
/// than processors are busy with one; where it is as much, it is their work, and goes with what the platforms say of it.
#[test]
fn waiting_for_partners_now_and_then_is_as_long_on_a_faster_network() {
    let slow = std::fs::read_to_string(common::file("platforms/icluster2.toml")).unwrap();
    let tenth = |line: &str| match line.split_once(" = ") {
        Some((key, value)) if key.ends_with("_s") || key.ends_with("_s_per_byte") => {
            format!("{key} = {}", value.parse::<f64>().unwrap() / 10.0)
        }
        _ => line.to_string(),
    };
    let fast: String = slow.lines().map(|line| tenth(line) + "\n").collect();
    let (slow, fast) = (Platform::parse("slow", &slow).unwrap(), Platform::parse("fast", &fast).unwrap());
    let (slow, fast) = (Machine::of_platform(&slow, 1).unwrap(), Machine::of_platform(&fast, 1).unwrap());
    let switch_s = |app: &Application, machine: &Machine| app.predict(16, machine, Spread::OnePerNode).unwrap().components.switch_s;
    let fit = |beyond_s: f64| {
        let run = |ranks: usize, network_s: f64| {
            let seconds = network_s + 1000.0 * beyond_s;
            let name = "Send".into();
            let call = Call { name, count: 1000.0, bytes: 8.0, said: Said::Report, part: None, nth: 0, size: 0, seconds };
            run_with(ranks, 1.0 + seconds, seconds, vec![call])
        };
        let of = |network_s: f64| Application::fit([4, 8, 16].map(|p| run(p, network_s)).to_vec(), &slow, Spread::OnePerNode).unwrap();
        // long enough for all of the network to be seen
        of(switch_s(&of(1.0), &slow))
    };
    // processors are busy with a message for 18 us
    for (beyond_s, is_kept) in [(2e-6, true), (18e-6, false)] {
        let app = fit(beyond_s);
        let there = app.predict(16, &fast, Spread::OnePerNode).unwrap();
        let expected = 1.0 + switch_s(&app, &fast) + 1000.0 * beyond_s * if is_kept { 1.0 } else { 0.1 };
        assert!(close(there.wall_s, expected, 1e-3), "{beyond_s}: {} {expected}", there.wall_s);
    }
}
