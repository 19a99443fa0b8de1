//! Wall times of applications: reports of mpiP, messages on the wire, how runs are split, and what is predicted from them.

mod common;

use collwise::collective::{Parameters, Shape, bcast, scatter};
use collwise::platform::Platform;
use collwise::qnm::{
    Active, Application, Call, Computing, Form, Law, Library, Machine, Neighbourhood, Network, Observed, Partners, Per, Profile, Report,
    Run, Said, Series, Service, Split, Spread, Station, Table, exact, partners, report, split, wire,
};
use collwise::stats;
use common::applications::{alike, close, run_of, run_with};
use proptest::prelude::*;
use rand_distr::{Distribution, Normal};

fn text(name: &str) -> String {
    std::fs::read_to_string(common::file("tests/data").join(name)).unwrap()
}

#[test]
fn a_full_report_says_who_ran_where_and_what_was_sent() {
    let full = Report::parse("full", &text("mpip/hpccg.4.full.mpiP")).unwrap();
    assert_eq!(full.ranks(), 4);
    assert!(close(full.mean.app_s, 0.4035, 1e-9) && close(full.mean.mpi_s, 0.356, 1e-9), "{:?}", full.mean);
    assert_eq!((full.nodes[2].as_str(), full.version.as_str(), full.command.as_str()), ("vm", "3.5.0", "../HPCCG 20 20 20"));
    assert_eq!(full.sites[1].place, "exchange_externals.cpp:109");
    let run = Run::of(&full).unwrap();
    // processes 1 and 2 have neighbours on both sides
    let send = &run.calls[1];
    assert_eq!((send.name.as_str(), send.said), ("Send", Said::Report));
    assert_eq!(send.count * 4.0, 918.0, "894 in exchange_externals.cpp, and six at each of four other places");
    assert!(close(run.imbalance_s, 0.053 - 0.0475, 1e-6), "what process 0 computes beyond the mean: {}", run.imbalance_s);
}

/// The same file twice would be two runs that do not differ.
#[test]
fn a_report_that_is_named_twice_is_refused() {
    let [one, other] = ["hpccg.4.full", "lulesh.8.d"].map(|name| common::file("tests/data/mpip").join(format!("{name}.mpiP")));
    assert_eq!(Report::read_all(&[one.clone(), other.clone()]).unwrap().len(), 2);
    let detour = other.parent().unwrap().join("../mpip/lulesh.8.d.mpiP");
    let error = Report::read_all(&[one, other, detour.clone()]).unwrap_err().to_string();
    assert!(error.contains(&format!("read {} twice", detour.display())), "{error}");
}

/// What mpiP does not record is said to be unknown, and what it does not list is scaled up.
#[test]
fn what_reports_do_not_tell_is_known_to_be_missing() {
    let run_of = |name: &str| Run::of(&Report::parse(name, &text(&format!("mpip/{name}.mpiP"))).unwrap()).unwrap();
    // each ten times on each of four processes, 1,000 integers a partner
    let calls = run_of("calls.4.full");
    assert_eq!(calls.unlisted, (0.0, 0.0));
    let unsaid: Vec<&str> = calls.calls.iter().filter(|c| !matches!(c.said, Said::Report)).map(|c| c.name.as_str()).collect();
    assert_eq!(unsaid, ["Allgather", "Alltoallv", "Reduce_scatter", "Scatterv"]);
    assert!(calls.calls.iter().all(|c| c.count == 10.0), "{:?}", calls.calls);
    let said = |name: &str| calls.calls.iter().find(|c| c.name == name).map(|c| c.bytes);
    assert_eq!([said("Alltoall"), said("Allreduce"), said("Gatherv")], [Some(4000.0); 3]);
    // those of calls that go with them, as often
    let matching: Vec<&str> = calls.calls.iter().filter(|c| c.said == Said::Match).map(|c| c.name.as_str()).collect();
    assert_eq!(matching, ["Allgather", "Alltoallv", "Scatterv"]);
    assert_eq!([said("Allgather"), said("Alltoallv"), said("Scatterv")], [Some(4000.0), Some(16_000.0), Some(4000.0)]);
    // with -d: the twenty sites that send most have 41.08 % of the bytes, the twenty with most time 64.9 % of that
    let cut = run_of("lulesh.8.d");
    assert!(close(1.0 - cut.unlisted.0, 0.4394, 0.02) && close(1.0 - cut.unlisted.1, 0.6489, 0.02), "{:?}", cut.unlisted);
    // half of the sends are of no bytes
    let sends = run_of("zero-sends.2.k0");
    assert_eq!((sends.calls[0].count, sends.calls[0].bytes), (100.0, 500.0));
}

/// NPB's IS, class A, on a simulated network: mpiP says no bytes of its Alltoallv. Each process has 2^23 keys of four bytes, over all.
#[test]
fn bytes_that_nobody_says_are_found_by_time() {
    let platform = Platform::read(&common::file("platforms/icluster2.toml")).unwrap();
    let mut machine = Machine::of_platform(&platform, 1).unwrap();
    machine.library = Library::Mpich;
    let runs = [1, 2, 4, 8, 16].map(|p| Run::of(&Report::parse("is", &text(&format!("mpip/npb-is.A.{p}.mpiP"))).unwrap()).unwrap());
    assert_eq!((runs[4].program(), runs[1].program()), ("is.A", "is.A"));
    let app = Application::fit(runs.to_vec(), &machine, Spread::OnePerNode).unwrap();
    for run in app.runs.iter().filter(|r| r.ranks > 1) {
        let call = run.calls.iter().find(|c| c.name == "Alltoallv").unwrap();
        // their time contains waiting, and collisions on the way
        let all = 4.0 * f64::from(1 << 23) / run.ranks as f64;
        assert!((0.9..1.8).contains(&(call.bytes / all)), "{} processes: {} bytes of {all}", run.ranks, call.bytes);
    }
    for (ranks, predicted) in app.left_out(&machine, Spread::OnePerNode).unwrap() {
        assert!(close(predicted.unwrap().wall_s, app.measured_s(ranks).unwrap(), 0.05), "{ranks}");
    }
    // within a node nothing tells them, and what other runs tell is followed; where none does, elsewhere it is not known what they take
    let node = |cores: usize| {
        let mut machine = Machine::of_platform(&platform, cores).unwrap();
        machine.library = Library::Mpich;
        machine
    };
    let bytes = |app: &Application, ranks: usize| {
        let run = app.runs.iter().find(|r| r.ranks == ranks).unwrap();
        run.calls.iter().find(|c| c.name == "Alltoallv").map(|c| (c.said, c.bytes)).unwrap()
    };
    let some = Application::fit(runs.to_vec(), &node(2), Spread::Block).unwrap();
    assert_eq!((bytes(&some, 2), bytes(&some, 4).0), ((Said::Nobody, 0.0), Said::Time));
    let none = Application::fit(runs.to_vec(), &node(16), Spread::Block).unwrap();
    assert_eq!(bytes(&none, 16), (Said::Nobody, 0.0));
    let elsewhere = none.predict(4, &machine, Spread::OnePerNode).unwrap();
    assert!(elsewhere.interval_s.is_none() && elsewhere.wall_s < 1.5, "{elsewhere:?}");
    let mut run = runs[3].clone();
    assert!(run.set_bytes("Alltoallv", 4096.0) && !run.set_bytes("Alltoallv", 1.0) && !run.set_bytes("Bcast", 1.0));
}

/// Two runs of HPCCG on four processes, by mpiP 3.5.0, which lists no tasks in its concise reports.
#[test]
fn concise_reports_that_mpip_wrote_tell_what_its_full_ones_do() {
    let [full, concise] = ["full", "concise"].map(|kind| Report::parse(kind, &text(&format!("mpip/hpccg.4.{kind}.mpiP"))).unwrap());
    assert_eq!((full.ranks(), concise.ranks(), concise.nodes.len()), (4, 4, 4));
    // what its processes took together, in seconds, is the sum of all sites: also of those that are not of the twenty with most time
    let all = concise.sites.iter().map(|site| site.seconds).sum::<f64>();
    assert!(close(all, 4.0 * concise.mean.mpi_s, 0.001) && close(concise.mean.mpi_s, 0.241813, 1e-9), "{all}");
    let (full, concise) = (Run::of(&full).unwrap(), Run::of(&concise).unwrap());
    let names: Vec<&str> = full.calls.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["Allreduce", "Send"], "what receives sends nothing");
    for (a, b) in full.calls.iter().zip(&concise.calls) {
        assert_eq!((&a.name, a.count), (&b.name, b.count));
        assert!(close(a.bytes, b.bytes, 0.001), "{a:?} {b:?}");
    }
    // 1,188 of ddot, and 24 others, two of them of two numbers
    assert!(close(concise.calls[0].bytes, 9760.0 / 1212.0, 0.001) && concise.calls[0].count == 303.0, "{:?}", concise.calls[0]);
}

#[test]
fn reports_with_tables_that_are_not_needed_are_read() {
    // -m 1024, which counts the calls that send so much in a line of its own; and a program of file operations, which sends nothing
    let large = Report::parse("m", &text("mpip/hpccg.4.m1024.mpiP")).unwrap();
    assert_eq!((large.ranks(), Run::of(&large).unwrap().calls.len()), (4, 2));
    let files = Report::parse("io", &text("mpip/14-mpiio.2.full.mpiP")).unwrap();
    let run = Run::of(&files).unwrap();
    assert_eq!((run.ranks, run.calls.iter().map(|call| call.bytes * call.count).sum::<f64>()), (2, 0.0));
}

#[test]
fn sums_that_tell_no_number_of_tasks_are_refused_with_their_line() {
    let whole = text("mpip/hpccg.4.concise.mpiP");
    for (from, to, says) in [
        ("Aggregate           1.090583", "Aggregate           0.950583", "line 22"),
        ("Aggregate           1.090583", "Aggregate           1e300", "line 22"),
        (
            "Allreduce           15       4     165.5",
            "Allreduce           15       5     165.5",
            "a site of 5 tasks, of which there were 4",
        ),
        ("Aggregate           1.090583          0.967253  88.69\n", "", "how many tasks"),
    ] {
        let error = Report::parse("f", &whole.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[test]
fn every_cut_of_a_report_is_refused_with_its_line() {
    for name in ["mpip/zero-sends.2.k0.mpiP", "mpip/hpccg.4.concise.mpiP"] {
        let whole = text(name);
        let end = whole.find("End of Report").unwrap();
        for cut in 0..end {
            let error = Report::parse("cut.mpiP", &whole[..cut]).unwrap_err().to_string();
            assert!(error.starts_with("read cut.mpiP, line "), "{error}");
        }
    }
}

#[test]
fn damaged_lines_are_named() {
    let whole = text("mpip/hpccg.4.full.mpiP");
    let line_of = |what: &str| whole.lines().position(|l| l.contains(what)).unwrap() + 1;
    for (from, to, says) in [
        ("   1      0.405      0.367    90.48", "   1      0.405", "cut"),
        ("   1      0.405      0.367    90.48", "   1      0.405          x    90.48", "\"x\""),
        ("   1      0.405      0.367    90.48", "   7      0.405      0.367    90.48", "task 1"),
        ("@ MPI Task Assignment      : 2 vm", "@ MPI Task Assignment      : 5 vm", "task 2"),
        ("Send                 2    *     894      3200      3200      3200 2.861e+06", "", "missing"),
        ("Task    AppTime    MPITime     MPI%", "Task    Elapsed    MPITime     MPI%", "AppTime"),
    ] {
        let error = Report::parse("f", &whole.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let error = Report::parse("f", &whole.replace("   2      0.398      0.352", "   2      0.398        nan")).unwrap_err().to_string();
    assert!(error.contains(&format!("line {}", line_of("   2      0.398      0.352"))), "{error}");
    assert!(Report::parse("f", "").unwrap_err().to_string().contains("empty"));
    assert!(Report::parse("f", "<html>").unwrap_err().to_string().contains("no report"));
    // one task less than were assigned
    let error = Report::parse("f", &whole.replace("   3      0.402      0.349    86.82\n", "")).unwrap_err().to_string();
    assert!(error.contains("times of 3 tasks"), "{error}");
}

proptest! {
    #[test]
    fn no_damage_panics(at in 0usize..21000, with in any::<u8>(), drop in 0usize..40) {
        let mut bytes = text("mpip/hpccg.4.full.mpiP").into_bytes();
        let at = at.min(bytes.len() - 41);
        bytes.splice(at..at + drop, [with]);
        let _ = Report::parse("f", &String::from_utf8_lossy(&bytes)).map(|r| Run::of(&r));
    }
}

/// mpiP lists as senders only processes that sent something, and most programs give the size of a scatter's blocks everywhere, some at the root alone.
#[test]
fn a_scatter_whose_root_alone_gives_its_size_has_that_size_in_all_of_its_calls() {
    // a site of one call of eight bytes on each of four processes
    let text = text("mpip/hpccg.4.full.mpiP").replace("Allreduce            3 ", "Scatter              3 ");
    let (times, sent) = text.split_once("@--- Callsite Message Sent").unwrap();
    let at_the_root = |line: &&str| !line.starts_with("Scatter") || line.contains("3    0") || line.contains(" * ");
    let sent: Vec<&str> = sent.lines().filter(at_the_root).collect();
    let all = "*       4         8         8         8        32";
    let sent = sent.join("\n").replacen(all, "*       1         8         8         8         8", 1);
    let everywhere = Report::parse("f", &text).unwrap();
    let root_alone = Report::parse("f", &format!("{times}@--- Callsite Message Sent{sent}\n")).unwrap();
    for (report, bytes) in [(everywhere, 32.0), (root_alone, 8.0)] {
        let site = report.sites.iter().find(|s| s.call == "Scatter").unwrap();
        assert_eq!((site.count, site.bytes, site.size(&scatter::COLLECTIVE)), (Some(4.0), bytes, Some(8)));
    }
}

/// A profile of a program that was written by collwise itself is read back, to three digits.
#[test]
fn own_profiles_are_reports() {
    let profile = |rank: usize| {
        let mut p = Profile { node: format!("n{rank}"), app_s: 10.0 + rank as f64, ..Profile::default() };
        for k in 0..20 {
            p.note("Allreduce", "a.rs", 7, 0.01 * (rank + 1) as f64, 8);
            p.note("Barrier", "a.rs", 9, 0.02, 0);
            if rank == 0 {
                p.note("Send", "b.rs", 7, 1e-5 * k as f64, 100 * k);
            }
        }
        p
    };
    let profiles: Vec<Profile> = (0..5).map(profile).collect();
    let read = Report::parse("own", &report("app 5", &profiles).unwrap()).unwrap();
    assert_eq!((read.ranks(), read.command.as_str()), (5, "app 5"));
    assert!(close(read.mean.app_s, 12.0, 2e-3));
    assert!(close(read.mean.mpi_s, 20.0 * (0.03 + 0.02) + 190e-5 / 5.0, 5e-3));
    let run = Run::of(&read).unwrap();
    let calls: Vec<(&str, f64, f64)> = run.calls.iter().map(|c| (c.name.as_str(), c.count, c.bytes)).collect();
    assert_eq!(calls, [("Allreduce", 20.0, 8.0), ("Barrier", 20.0, 0.0), ("Send", 4.0, 950.0)]);
    // what it says to be nothing is nothing: our own reports say the bytes of all calls
    let mut silent = Profile { app_s: 1.0, ..Profile::default() };
    silent.note("Alltoallv", "a.rs", 1, 0.1, 0);
    let silent = Run::of(&Report::parse("own", &report("app", &[silent]).unwrap()).unwrap()).unwrap();
    assert_eq!((silent.calls[0].said, silent.calls[0].bytes), (Said::Report, 0.0));
    assert!(report("app", &[]).is_err());
    // arguments may have lines that look like a report's
    let read = Report::parse("own", &report("sh -c 'a\n@ MPI Task Assignment : 9 n'", &profiles).unwrap()).unwrap();
    assert_eq!((read.ranks(), read.command.as_str()), (5, "sh -c 'a @ MPI Task Assignment : 9 n'"));
}

/// What collectives send in all follows from what they deliver.
#[test]
fn messages_of_collectives_add_up() {
    for ranks in 2..40usize {
        let p = ranks as f64;
        let all = |call: &str, bytes: f64| {
            let w = wire(call, ranks, bytes, Library::Mpich).unwrap();
            assert!(w.rounds.each().all(|(partners, ..)| partners != Partners::Program), "{call}");
            (w.messages * p, w.bytes * p)
        };
        // a binomial broadcast, as it runs
        let shape = Shape::new(ranks, 0, 1000);
        let schedule = bcast::algorithm("binomial").unwrap().schedule(&shape, &Parameters::default()).unwrap();
        let (messages, bytes) = all("Bcast", 1000.0);
        assert!((messages - schedule.messages() as f64).abs() < 1e-9 && (bytes - 1000.0 * (p - 1.0)).abs() < 1e-6);
        // everybody gets everybody's block
        for bytes in [8.0, 1e6] {
            assert!(close(all("Allgather", bytes).1, p * (p - 1.0) * bytes, 1e-12));
        }
        assert!(close(all("Alltoall", 1e6).1, p * (p - 1.0) * 1e6, 1e-12));
        assert!(close(all("Alltoallv", 1e6).1, (p - 1.0) * 1e6, 1e-12));
        // each rank of a power of two sends what it has in each round of doubling; nobody can do with less than two messages a
        // rank that is not one of them
        let power = (ranks.ilog2() as f64).exp2();
        let (messages, bytes) = all("Allreduce", 8.0);
        assert!((messages - power * power.log2() - 2.0 * (p - power)).abs() < 1e-9);
        assert!(close(bytes, 8.0 * messages, 1e-12));
        if ranks.is_power_of_two() {
            // bandwidth-optimal: twice all but a rank's own part
            assert!(close(all("Allreduce", 1e6).1, 2.0 * (p - 1.0) * 1e6, 1e-12));
        }
        // nobody can know of all others in fewer rounds
        for call in ["Barrier", "Bcast", "Reduce", "Allreduce", "Allgather", "Scan", "Gather", "Scatter"] {
            assert!(wire(call, ranks, 8.0, Library::Mpich).unwrap().rounds.messages() >= p.log2().ceil(), "{call}");
        }
        assert!(close(all("Barrier", 0.0).0, p * p.log2().ceil(), 1e-12));
        for call in ["Barrier", "Bcast", "Reduce", "Allreduce", "Allgather", "Alltoall", "Gather", "Scatter", "Scan", "Reduce_scatter"] {
            let of = |call: &str, ranks| wire(call, ranks, 64.0, Library::Mpich).unwrap();
            assert_eq!(of(&format!("I{}", call.to_lowercase()), ranks), of(call, ranks), "{call}");
            let one = of(call, 1);
            assert_eq!((one.messages, one.bytes), (0.0, 0.0), "{call} of one process");
        }
    }
    let sent = wire("Isend", 2, 5.0, Library::OpenMpi).unwrap();
    assert_eq!((sent.rounds.each().collect::<Vec<_>>(), partners("Isend")), (vec![(Partners::Program, 1.0, 5.0)], Some(Partners::Program)));
    for silent in ["Recv", "Irecv", "Waitall", "Iprobe", "Comm_rank", "I", "", "Ié"] {
        assert_eq!((wire(silent, 8, 5.0, Library::OpenMpi), partners(silent)), (None, None), "{silent}");
    }
}

#[test]
fn laws_are_recognised() {
    let sizes = [3, 4, 8, 16, 32];
    let points = |f: fn(f64) -> f64| sizes.map(|p| (p, f(p as f64)));
    for (form, f) in [
        (Form::Constant, (|_| 3.0) as fn(f64) -> f64),
        (Form::Share, |p| 200.0 * (p - 1.0) / p),
        (Form::Inner, |p| 200.0 * (p - 2.0) / p),
        (Form::Inverse, |p| 7.0 / p),
        (Form::Logarithm, |p| 0.1 * (1.0 + p.log2())),
        (Form::Power, |p| 2.0 * p.powf(-0.5)),
        (Form::Offset, |p| 1.0 + 9.0 / p),
    ] {
        let law = Law::fit(&points(f)).unwrap();
        assert_eq!(law.form, form);
        for p in [2usize, 3, 64, 1000] {
            assert!((law.at(p).value - f(p as f64)).abs() <= 1e-9 * f(p as f64).abs(), "{form:?} {p}");
        }
    }
    assert_eq!(Law::fit(&[]), None);
    assert!(Law::fit(&[(4, 2.0)]).unwrap().at(8).spread.is_none(), "one value says nothing of its spread");
}

/// 95 % intervals hold about 95 % of what comes after.
#[test]
fn intervals_of_laws_hold_what_they_say() {
    let noise = Normal::new(0.0f64, 0.05).unwrap();
    let mut random = stats::random(1);
    let (mut held, mut exponents) = (0, 0);
    const RUNS: usize = 1000;
    for _ in 0..RUNS {
        let mut value = |p: usize| 40.0 * (p as f64).powf(-0.8) * noise.sample(&mut random).exp();
        let points = [2, 4, 8, 16, 32, 64].map(|p| (p, value(p)));
        let law = Law::of(Form::Power, &points).unwrap();
        let guess = law.at(128);
        held += usize::from((value(128) / guess.value).ln().abs() <= guess.spread.unwrap());
        exponents += usize::from((law.b.unwrap() + 0.8).abs() <= law.b_margin.unwrap());
    }
    assert!((0.93..0.97).contains(&(held as f64 / RUNS as f64)), "{held}");
    assert!((0.93..0.97).contains(&(exponents as f64 / RUNS as f64)), "{exponents}");
}

#[test]
fn computing_is_interpolated_between_runs() {
    let series = Series::new(&[(1, 16.0), (4, 4.0), (16, 9.0), (16, 1.0), (16, 0.1)]).unwrap();
    assert!((series.at(2).value - 8.0).abs() < 1e-9);
    assert!((series.at(8).value - 2.0).abs() < 1e-9, "between 4 and the median at 16");
    assert!(!series.is_beyond(16) && series.is_beyond(17) && !series.is_beyond(1));
}

fn asked_at_most(c: &collwise::qnm::Components) -> f64 {
    c.active_s + c.compute_s
}

proptest! {
    /// The parts of a run are its whole, and contention is what the network of queues says.
    #[test]
    fn a_split_is_a_solution(
        ranks in 1usize..200, compute in 0.01f64..100.0, share in 0.0f64..0.9, count in 0f64..1e4, cores in 1usize..5, few in any::<bool>(),
    ) {
        let mpi_s = compute * share / (1.0 - share);
        let run = run_of(ranks, compute + mpi_s, mpi_s, count, 1000.0);
        let machine = alike(cores, few.then_some(3));
        let Split { components: c, traffic, switch_clamped, .. } = split(&run, &machine, Spread::Block, &Observed::default()).unwrap();
        prop_assert!((c.wall_s() - run.wall_s).abs() < 1e-9 * run.wall_s);
        // computing that took turns was measured with waiting in it, if nothing else explains the time
        prop_assert!((c.compute_s - compute).abs() < 1e-9 * run.wall_s || (c.compute_s < compute && c.active_s == 0.0));
        let placed = machine.place(ranks, Spread::Block).unwrap();
        let sent = count * machine.message_s(&placed, Partners::Program, Neighbourhood::Cube, 1000.0);
        prop_assert!((traffic.switch_s - sent.min(mpi_s)).abs() < 1e-9 && switch_clamped == (sent > mpi_s));
        prop_assert!(c.contention_s >= -1e-12 && c.contention_s <= asked_at_most(&c) * (ranks - 1) as f64 + 1e-9);
        let placed = machine.place(ranks, Spread::Block).unwrap();
        let asked = if machine.is_crowded(&placed) { c.active_s + c.compute_s } else { c.active_s };
        if asked > 1e-9 {
            let think_s = c.switch_s + c.active_s + c.compute_s - asked;
            // where processes take turns, those of the fullest processor do
            let fullest = placed.iter().map(|n| placed.iter().filter(|m| *m == n).count().div_ceil(cores)).max().unwrap();
            let (stations, customers) = if machine.is_crowded(&placed) {
                (vec![Station { demand_s: asked, count: 1, service: Service::Queue }], fullest)
            } else {
                (machine.stations(&placed, asked), ranks)
            };
            let waits = exact(&Network { think_s, stations }, customers).unwrap().response_s - asked;
            if machine.is_crowded(&placed) && think_s == 0.0 {
                prop_assert!((waits - asked * (fullest - 1) as f64).abs() < 1e-9 * run.wall_s);
            }
            prop_assert!((waits.max(0.0) - c.contention_s).abs() < 1e-6 * run.wall_s, "{} {}", waits, c.contention_s);
        }
        if cores == 1 && !few {
            // on one processor each, a process finds at most all others spread over all processors
            prop_assert!(c.contention_s <= c.active_s * (ranks - 1) as f64 / ranks as f64 + 1e-9);
        }
    }
}

/// Runs that the model itself makes: computing 100 / P, MPI active 20 us a message, 1,000 P^0.5 messages of 64 KiB / P^0.5.
fn made(ranks: usize, machine: &Machine, spread: Spread) -> Run {
    let p = ranks as f64;
    let (count, bytes, compute) = (1000.0 * p.sqrt(), 65_536.0 / p.sqrt(), 100.0 / p);
    let active = 20e-6 * count;
    let placed = machine.place(ranks, spread).unwrap();
    // messages that become more with more processes are taken to go along the sides of a hypercube
    let switch = count * machine.message_s(&placed, Partners::Program, Neighbourhood::Hypercube, bytes);
    let network = Network { think_s: compute + switch, stations: machine.stations(&placed, active) };
    let response = exact(&network, ranks).unwrap().response_s;
    run_of(ranks, compute + switch + response, switch + response, count, bytes)
}

#[test]
fn an_application_of_known_laws_is_predicted() {
    for (cores, spread) in [(1, Spread::OnePerNode), (4, Spread::Block), (4, Spread::Cyclic)] {
        let machine = alike(cores, Some(64));
        let runs = [2, 4, 8, 16, 32].map(|p| made(p, &machine, spread)).to_vec();
        let app = Application::fit(runs, &machine, spread).unwrap();
        let Active::Law { per, law } = &app.active else { panic!("{:?}", app.active) };
        assert_eq!((*per, law.form), (Per::Message, Form::Constant));
        assert!(close(law.c, 20e-6, 1e-4), "{}", law.c);
        assert_eq!((app.compute.series.law.form, app.calls[0].count.law.form), (Form::Inverse, Form::Power));
        for ranks in [12, 64] {
            let (predicted, truth) = (app.predict(ranks, &machine, spread).unwrap(), made(ranks, &machine, spread));
            assert!(close(predicted.wall_s, truth.wall_s, 1e-3), "{ranks}: {} {}", predicted.wall_s, truth.wall_s);
            assert_eq!(predicted.extrapolated, ranks == 64);
            let (low, high) = predicted.interval_s.unwrap();
            assert!(low <= predicted.wall_s && predicted.wall_s <= high);
        }
        for (ranks, predicted) in app.left_out(&machine, spread).unwrap() {
            let (predicted, measured) = (predicted.unwrap().wall_s, app.measured_s(ranks).unwrap());
            assert!(close(predicted, measured, 2e-3), "{ranks}: {predicted} {measured}");
        }
    }
}

/// What was measured is what is predicted there, also by two runs, which tell no law.
#[test]
fn runs_are_predicted_as_they_were() {
    let machine = alike(1, None);
    let runs = [(2, 0.5), (8, 0.1)].map(|(ranks, mpi_s)| run_of(ranks, 10.0 / ranks as f64 + mpi_s, mpi_s, 100.0, 8.0));
    let app = Application::fit(runs.to_vec(), &machine, Spread::OnePerNode).unwrap();
    for run in &runs {
        let predicted = app.predict(run.ranks, &machine, Spread::OnePerNode).unwrap();
        assert!(close(predicted.wall_s, run.wall_s, 1e-6), "{}: {} for {}", run.ranks, predicted.wall_s, run.wall_s);
    }
    // work that one process has alone is none of its neighbours'
    let law = Computing::fit(&[(8, 0.75), (27, 25.0 / 27.0), (64, 62.0 / 64.0)], &[]).unwrap();
    assert!(law.at(1).value > 0.0, "{law:?}");
}

/// Which runs keep all processors of a node busy hangs on how many ranks lie on one, and nodes of one processor have nothing to share.
#[test]
fn runs_that_keep_a_node_busy_tell_how_computing_goes_on() {
    let fitted = |cores, nodes, spread| {
        let seconds = |p: usize| if p < 4 { 1.0 } else { 1.4 } / p as f64;
        let noisy = |p: usize, off: f64| run_of(p, seconds(p) * off + 0.01, 0.01, 100.0, 8.0);
        let runs = [1, 2, 4, 8, 16].into_iter().flat_map(|p| [0.98, 1.0, 1.02].map(|off| noisy(p, off))).collect();
        Application::fit(runs, &alike(cores, nodes), spread).unwrap().compute
    };
    for nodes in [Some(16), None] {
        let compute = fitted(4, nodes, Spread::Block);
        assert!(close(compute.at(64).value, 1.4 / 64.0, 0.05), "{nodes:?}: {compute:?}");
    }
    // in turns on one node
    let runs_above = |cores, nodes, spread| fitted(cores, nodes, spread).above[0].law.points;
    assert_eq!((runs_above(4, Some(1), Spread::Block), runs_above(2, Some(1), Spread::Cyclic)), (3 * 3, 4 * 3));
    for (cores, nodes, spread) in [(1, Some(4), Spread::Block), (4, None, Spread::OnePerNode), (32, Some(1), Spread::Block)] {
        assert_eq!(runs_above(cores, nodes, spread), 5 * 3, "{cores} {nodes:?}");
    }
}

/// Processors twice as fast halve computing and MPI's work; a group of slow ones holds all others up.
#[test]
fn clocks_change_times() {
    let platform = Platform::read(&common::file("platforms/ccgrid2007.toml")).unwrap();
    let machine = || Machine::of_platform(&platform, 1).unwrap();
    let app = Application::fit([4, 8, 16].map(|p| made(p, &machine(), Spread::Block)).to_vec(), &machine(), Spread::Block).unwrap();
    let as_it_is = app.predict(40, &machine(), Spread::Block).unwrap();
    let mut fast = machine();
    fast.clock.iter_mut().for_each(|c| *c = 2.0);
    let fast = app.predict(40, &fast, Spread::Block).unwrap();
    assert!(close(fast.components.compute_s, as_it_is.components.compute_s / 2.0, 1e-12));
    assert!(close(fast.components.active_s, as_it_is.components.active_s / 2.0, 1e-12));
    assert_eq!(fast.components.switch_s, as_it_is.components.switch_s);
    // the same clocks by the way of several classes: one differs by nothing that matters
    let mut nearly = machine();
    nearly.clock[1] = 1.0 + 1e-9;
    let nearly = app.predict(40, &nearly, Spread::Block).unwrap();
    assert!(close(nearly.wall_s, as_it_is.wall_s, 1e-3), "{} {}", nearly.wall_s, as_it_is.wall_s);
    let mut slow = machine();
    slow.clock[0] = 0.5;
    let slow = app.predict(40, &slow, Spread::Block).unwrap();
    assert!(close(slow.components.compute_s, as_it_is.components.compute_s * 2.0, 1e-12));
    let slowest = slow.groups_s.iter().map(|g| g.1).fold(0.0, f64::max);
    assert!(slow.groups_s.len() > 1 && slow.wall_s == slowest, "{:?}", slow.groups_s);
}

/// More processes than processors take turns on those of their own group, whatever the clocks of others.
#[test]
fn crowded_processors_of_several_clocks_take_turns() {
    let platform = Platform::read(&common::file("platforms/ccgrid2007.toml")).unwrap();
    let with = |group: usize, clock: f64| {
        let mut machine = Machine::of_platform(&platform, 1).unwrap();
        machine.clock[group] = clock;
        machine
    };
    let app = Application::fit([4, 8, 16].map(|p| made(p, &with(0, 1.0), Spread::Block)).to_vec(), &with(0, 1.0), Spread::Block).unwrap();
    let ranks = 3 * platform.host_names().len();
    let predict = |machine: &Machine| app.predict(ranks, machine, Spread::Cyclic).unwrap();
    let (alike, nearly, slow) = (predict(&with(0, 1.0)), predict(&with(1, 1.0 + 1e-9)), predict(&with(0, 0.5)));
    assert!(close(nearly.wall_s, alike.wall_s, 1e-6), "{} {}", nearly.wall_s, alike.wall_s);
    // three a processor: none is idle for long
    let busy = |c: &collwise::qnm::Components| c.wall_s() / (c.active_s + c.compute_s);
    assert!((3.0..3.0 + alike.components.switch_s / alike.components.compute_s).contains(&busy(&alike.components)));
    assert_eq!(slow.components.compute_s, 2.0 * alike.components.compute_s);
    let others = slow.groups_s.iter().skip(1).map(|g| g.1);
    assert!(others.clone().count() > 1 && others.into_iter().all(|wall_s| close(wall_s, alike.wall_s, 1e-12)), "{:?}", slow.groups_s);
}

/// Where processes compute for unlike times, those that are done wait: that is no work of MPI, and grows as computing does.
#[test]
fn waiting_for_processes_that_compute_longer_is_a_part_of_its_own() {
    let machine = alike(1, Some(64));
    let runs = [2, 4, 8].map(|p| Run { imbalance_s: 10.0 / p as f64, ..run_of(p, 116.0 / p as f64, 16.0 / p as f64, 100.0, 8.0) });
    let app = Application::fit(runs.to_vec(), &machine, Spread::OnePerNode).unwrap();
    for split in &app.splits {
        let c = split.components;
        assert!(close(c.waiting_s, c.compute_s / 10.0, 1e-9) && c.active_s < 6.0, "{c:?}");
    }
    let mut slow = alike(1, Some(64));
    slow.clock = vec![0.5];
    let [usual, slow] = [machine, slow].map(|m| app.predict(16, &m, Spread::OnePerNode).unwrap().components);
    assert!(close(usual.waiting_s, 10.0 / 16.0, 1e-6) && close(slow.waiting_s, 2.0 * usual.waiting_s, 1e-9));
}

/// Beyond some thousand processes on nodes of several processors the network is solved approximately: what it says changes by 2 % here.
#[test]
fn many_processes_are_solved_in_time() {
    let machine = alike(4, None);
    let app = Application::fit([8, 16, 32].map(|p| made(p, &machine, Spread::Block)).to_vec(), &machine, Spread::Block).unwrap();
    let at = |ranks| app.predict(ranks, &machine, Spread::Block).unwrap().wall_s;
    let (exact, approximate) = (at(2048), at(2049));
    assert!(close(exact, approximate, 0.03), "{exact} {approximate}");
    assert!(at(100_000).is_finite());
}

/// A process that starts all messages at once is kept by each of them; and what MPI does on processors goes as their platforms say.
#[test]
fn starting_messages_and_their_overheads_take_time() {
    let slow = Platform::read(&common::file("platforms/icluster2.toml")).unwrap();
    // 15 blocks of 1 kB at once: a latency, 14 gaps of 15 us, and the bytes at 9 ns
    let call = Call { name: "Alltoallv".into(), count: 1.0, bytes: 16e3, said: Said::Report, part: None, nth: 0, size: 0, seconds: 1.0 };
    let run = run_with(16, 2.0, 1.0, vec![call]);
    let mut machine = Machine::of_platform(&slow, 1).unwrap();
    machine.library = Library::Mpich;
    let Split { traffic, .. } = split(&run, &machine, Spread::OnePerNode, &Observed::default()).unwrap();
    assert!(close(traffic.switch_s, 50e-6 + 14.0 * 15e-6 + 15e3 * 9e-9, 1e-9), "{}", traffic.switch_s);

    let machine = Machine::of_platform(&slow, 1).unwrap();
    let runs = [2, 4, 8].map(|p| run_of(p, 10.0 / p as f64 + 2.0, 2.0, 1000.0, 1000.0)).to_vec();
    let app = Application::fit(runs, &machine, Spread::OnePerNode).unwrap();
    let mut fast = slow.clone();
    for host in fast.groups.iter_mut().map(|g| &mut g.hosts) {
        host.send_overhead_s = host.send_overhead_s.map(|s| s / 10.0);
        host.send_overhead_s_per_byte = host.send_overhead_s_per_byte.map(|s| s / 10.0);
        host.recv_overhead_s = host.recv_overhead_s.map(|s| s / 10.0);
        host.recv_overhead_s_per_byte = host.recv_overhead_s_per_byte.map(|s| s / 10.0);
    }
    let active = |machine: &Machine| app.predict(8, machine, Spread::OnePerNode).unwrap().components.active_s;
    let (here, there) = (active(&machine), active(&Machine::of_platform(&fast, 1).unwrap()));
    assert!(here > 1.0 && close(there, here / 10.0, 1e-9), "{here} {there}");
    // on the same platform it stays as its law says, whatever the sizes
    let sized = |p: usize| run_of(p, 10.0 / p as f64 + 5.0, 5.0, 1000.0, 8e5 / p as f64);
    let said = Application::fit([2, 4, 8].map(sized).to_vec(), &machine, Spread::OnePerNode).unwrap();
    let Active::Law { per: Per::Process, law } = &said.active else { panic!("{:?}", said.active) };
    let predicted = said.predict(64, &machine, Spread::OnePerNode).unwrap().components.active_s;
    assert!(close(predicted, law.at(64).value, 1e-9), "{predicted} {}", law.at(64).value);
    // where one of them does not say, it stays as it is
    assert!(close(active(&alike(1, Some(8))), here, 1e-9));
}

/// A program that divides its work otherwise from some number of processes on: both laws are kept apart, and it is said where they change.
#[test]
fn changes_of_law_are_found() {
    // NPB's FT, class W: planes up to 32 processes, and then rows
    let counts = |p: usize| if p <= 32 { 8.0 } else { 16.0 };
    let bytes = |p: usize| if p <= 32 { 8_388_608.0 / (p * p) as f64 } else { 34_816.0 };
    let decided =
        |of: &dyn Fn(usize) -> f64, sizes: &[usize]| Series::decided(&sizes.iter().map(|p| (*p, of(*p))).collect::<Vec<_>>()).unwrap();
    let with = decided(&counts, &[2, 4, 8, 16, 32, 64]);
    assert_eq!(with.breaks(), [(32, 64)]);
    assert!(close(with.at(12).value, 8.0, 1e-9) && close(with.at(64).value, 16.0, 1e-9));
    assert!(!with.is_beyond(2) && with.is_beyond(65));
    // between them, it may be either
    let without = decided(&bytes, &[2, 4, 8, 16, 64]);
    let guess = without.at(32);
    assert_eq!(without.breaks(), [(16, 64)]);
    assert!(close(guess.value, 8192.0, 1e-6) && guess.spread.unwrap() > (34_816.0f64 / 2048.0).ln() * 0.99, "{guess:?}");
    // a law that is noisy has no break
    let noisy = |p: usize| 100.0 * (1.0 + 0.04 * (p as f64).sin());
    assert!(decided(&noisy, &[2, 4, 8, 16, 32, 64]).breaks().is_empty());
}

#[test]
fn tables_are_interpolated_and_end_where_they_end() {
    let table = Table::new(&[(2, 0.0), (8, 1.0), (8, 1.0), (32, 0.5)]);
    assert!([(1, 0.0), (2, 0.0), (4, 0.5), (8, 1.0), (16, 0.75), (64, 0.5)].iter().all(|(p, v)| (table.at(*p) - v).abs() < 1e-12));
    assert_eq!((Table::default().at(4), Table::default().margin(4)), (0.0, None));
    assert!(table.margin(4).unwrap() > 0.75, "the one inside is off by 0.75, and may be by much more");
}
