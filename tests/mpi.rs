//! Over MPI.
#![cfg(feature = "mpi")]

mod common;

use collwise::collective::bcast;
use collwise::policy::Policy;
use collwise::qnm::{Library, wire};
use collwise::run::AdaptiveCollectives;
use collwise::transport::clocks::Clocks;
use collwise::transport::mpi::{MpiTransport, now};
use collwise::transport::{Control, Ping};
use common::mpi::{ONE_AT_A_TIME, adaptive, check_bcast, mpirun, must_succeed, on_ranks, text, three_groups};
use mpi::datatype::{MutView, UserDatatype};
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::path::Path;
use std::process::{Command, Output};

#[test]
fn every_algorithm_delivers_every_byte() {
    must_succeed(on_ranks("every_algorithm_delivers_every_byte", 33, &[], |world| {
        let private = world.duplicate();
        // SAFETY: `private` outlives the transport
        #[allow(unsafe_code)]
        let mut transport = unsafe { MpiTransport::new(private.as_raw()) }.unwrap();
        // all rank counts are tried over threads; here small ones, and those beside powers of two
        common::deliver_everything(&mut transport, 33, |ranks| ranks <= 9 || ranks % 16 < 2);
        world.barrier();
    }));
}

/// From any root, at a first look and at later ones; what a rank says between a question and its answer is read between them.
#[test]
fn clocks_of_other_ranks_are_read() {
    must_succeed(on_ranks("clocks_of_other_ranks_are_read", 4, &[], |world| {
        let private = world.duplicate();
        // SAFETY: `private` outlives the transport
        #[allow(unsafe_code)]
        let mut transport = unsafe { MpiTransport::new(private.as_raw()) }.unwrap();
        let me = world.rank() as usize;
        for root in 0..4 {
            let others: Vec<usize> = (0..4).filter(|&r| r != root).collect();
            let mut clocks = Clocks::default();
            for round in 0..3 {
                if me == root {
                    assert_eq!(transport.look_at(&others, &mut clocks).unwrap(), []);
                    transport.end_looks(&others, round == 1).unwrap();
                } else {
                    assert_eq!(transport.serve_looks(root).unwrap(), round == 1);
                }
                for &r in &others {
                    if me == root {
                        let asked = now();
                        transport.send_times(r, &[]).unwrap();
                        let reading = clocks.reading(r, transport.receive_times(r, 1).unwrap()[0]);
                        let said = format!("{asked} {reading:?} {}", now());
                        assert!(asked <= reading.at + reading.bound && reading.at - reading.bound <= now(), "{said}");
                        assert!(reading.bound > 0.0 && reading.bound < 1.0, "{said}");
                    } else if me == r {
                        transport.receive_times(root, 0).unwrap();
                        transport.send_times(root, &[now()]).unwrap();
                    }
                }
                let others_of_root = if me == root { &others[..] } else { &[] };
                let answered_s = transport.ask(root, others_of_root).unwrap();
                let start = transport.start_together(root, others_of_root, &clocks, answered_s).unwrap();
                assert!(start <= now(), "nobody begins before the start that it is timed from");
                if me == root {
                    for &r in &others {
                        let reading = clocks.reading(r, transport.receive_times(r, 1).unwrap()[0]);
                        // who is told late says so
                        assert!(reading.at + reading.bound >= start, "rank {r}: {reading:?}, the root {start}");
                    }
                } else {
                    transport.send_times(root, &[start]).unwrap();
                }
            }
        }
        world.barrier();
    }));
}

const SIZES: [usize; 6] = [0, 1, 8, 1000, 65_537, 1 << 20];

#[test]
fn adaptive_bcast_on_2_ranks() {
    adaptive("adaptive_bcast_on_2_ranks", 2, |world| check_bcast(world, &SIZES));
}

#[test]
fn adaptive_bcast_on_5_ranks() {
    adaptive("adaptive_bcast_on_5_ranks", 5, |world| check_bcast(world, &SIZES));
}

#[test]
fn adaptive_bcast_on_16_ranks() {
    adaptive("adaptive_bcast_on_16_ranks", 16, |world| check_bcast(world, &SIZES));
}

#[test]
fn adaptive_bcast_of_64_mib() {
    adaptive("adaptive_bcast_of_64_mib", 4, |world| check_bcast(world, &[64 << 20]));
}

#[test]
fn sub_communicators_and_many_at_once() {
    adaptive("sub_communicators_and_many_at_once", 8, |world| {
        // parts in another order than the world's, used in turns
        let color = mpi::topology::Color::with_value(world.rank() % 3);
        let part = world.split_by_color_with_key(color, -world.rank()).unwrap();
        let many: Vec<SimpleCommunicator> = (0..12).map(|_| world.duplicate()).collect();
        for round in 0..3 {
            check_bcast(&part, &[1 + round, 5000]);
            many.iter().for_each(|comm| check_bcast(comm, &[100 + round]));
        }
        drop(many);
        // handles may come back for other communicators: their plans must not
        for _ in 0..10 {
            check_bcast(&world.duplicate(), &[64, 3000]);
            check_bcast(&world.split_by_color(color).unwrap(), &[64, 3000]);
        }
    });
}

#[test]
fn buffers_of_any_datatype() {
    adaptive("buffers_of_any_datatype", 7, |world| {
        let me = world.rank();
        let mut reals: Vec<f64> = (0..5000).map(|k| if me == 2 { k as f64 } else { -1.0 }).collect();
        world.adaptive_bcast(2, &mut reals[..]).unwrap();
        assert!(reals.iter().enumerate().all(|(k, x)| *x == k as f64));
        let mut one = if me == 0 { 7i32 } else { 0 };
        world.adaptive_bcast(0, &mut one).unwrap();
        assert_eq!(one, 7);
        // one signature, cut into items in different ways: segments must not follow the items
        let items = UserDatatype::contiguous(100, &u8::equivalent_datatype());
        let mut bytes: Vec<u8> = (0..200_000).map(|k| if me == 0 { common::byte(k, 1) } else { 0 }).collect();
        if me % 2 == 0 {
            world.adaptive_bcast(0, &mut bytes[..]).unwrap();
        } else {
            // SAFETY: 2000 items of 100 bytes
            #[allow(unsafe_code)]
            let mut view = unsafe { MutView::with_count_and_datatype(&mut bytes[..], 2000, &items) };
            world.adaptive_bcast(0, &mut view).unwrap();
        }
        assert!((0..bytes.len()).all(|k| bytes[k] == common::byte(k, 1)));
        // every third byte only: not contiguous, and the bytes between stay as they are
        let spread = UserDatatype::vector(1000, 1, 3, &u8::equivalent_datatype());
        let mut holes: Vec<u8> = (0..3000).map(|k| if me == 1 { common::byte(k, 2) } else { 9 }).collect();
        // SAFETY: one item that spans 2998 bytes
        #[allow(unsafe_code)]
        let mut view = unsafe { MutView::with_count_and_datatype(&mut holes[..], 1, &spread) };
        world.adaptive_bcast(1, &mut view).unwrap();
        assert!((0..3000).all(|k| holes[k] == if k % 3 == 0 || me == 1 { common::byte(k, 2) } else { 9 }));
    });
}

#[test]
fn a_host_that_the_policy_does_not_know_falls_back_and_says_so_once() {
    let name = "a_host_that_the_policy_does_not_know_falls_back_and_says_so_once";
    let folder = tempfile::tempdir().unwrap();
    let (policy, _) = three_groups(folder.path(), 4);
    let said = must_succeed(on_ranks(name, 4, &[("COLLWISE_POLICY", &policy)], |world| check_bcast(world, &[1, 5000])));
    if std::env::var_os("COLLWISE_TEST_CHILD").is_none() {
        assert_eq!(said.matches("is in no group of the policy").count(), 1, "{said}");
    }
}

#[test]
fn ranks_with_different_policies_fall_back() {
    let name = "ranks_with_different_policies_fall_back";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 4);
    let said = must_succeed(on_ranks(name, 4, &[("COLLWISE_POLICY", &policy), ("COLLWISE_HOSTS", &hosts)], |world| {
        if world.rank() == 3 {
            let mut other = Policy::read(Path::new(&std::env::var_os("COLLWISE_POLICY").unwrap())).unwrap();
            other.groups[0].choices.values_mut().for_each(|rows| rows[0].evidence.predicted_s *= 2.0);
            collwise::run::use_policy(other);
        }
        check_bcast(world, &[1, 5000]);
    }));
    if std::env::var_os("COLLWISE_TEST_CHILD").is_none() {
        assert!(said.contains("rank 3 has another policy than rank 0"), "{said}");
    }
}

#[test]
fn a_missing_policy_on_one_rank_falls_back() {
    let name = "a_missing_policy_on_one_rank_falls_back";
    let folder = tempfile::tempdir().unwrap();
    let (policy, hosts) = three_groups(folder.path(), 4);
    let said = must_succeed(on_ranks(name, 4, &[("COLLWISE_HOSTS", &hosts), ("POLICY_OF_SOME", &policy)], |world| {
        if world.rank() != 2 {
            collwise::run::use_policy(Policy::read(Path::new(&std::env::var_os("POLICY_OF_SOME").unwrap())).unwrap());
        }
        check_bcast(world, &[1, 5000]);
    }));
    if std::env::var_os("COLLWISE_TEST_CHILD").is_none() {
        assert!(said.contains("rank 2 failed to find a policy"), "{said}");
    }
}

#[test]
fn a_panic_on_one_rank_ends_the_job() {
    let name = "a_panic_on_one_rank_ends_the_job";
    let output = on_ranks(name, 4, &[], |world| {
        assert!(world.rank() != 1, "rank 1 panics on purpose");
        world.barrier();
    });
    if let Some(output) = output {
        assert!(!output.status.success());
        assert_ne!(output.status.code(), Some(124), "it hung: {}", text(&output));
        assert!(text(&output).contains("panics on purpose"));
    }
}

/// `collwise` under mpirun.
fn collwise(ranks: usize, arguments: &[&str], folder: &Path) -> Output {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    mpirun(ranks).arg(env!("CARGO_BIN_EXE_collwise")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn tuning_writes_a_policy_that_checks_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "a1 left\na2 left\na3 left\nb1 right\nb2 right # played by one host\n").unwrap();
    let output = collwise(5, &["tune", "--name", "played", "--hosts", "hosts", "-o", "policy.toml"], folder.path());
    assert!(output.status.success(), "{}", text(&output));
    let policy = Policy::read(&folder.path().join("policy.toml")).unwrap();
    let groups: Vec<(&str, usize)> = policy.groups.iter().map(|g| (g.name.as_str(), g.hosts.len())).collect();
    assert_eq!(groups, [("left", 3), ("right", 2)]);
    assert!(
        policy.two_level(&bcast::COLLECTIVE).iter().filter(|r| r.evidence.measured_s.is_some()).count() >= 11
            && policy.two_level(&bcast::COLLECTIVE).iter().all(|r| r.evidence.native_s.is_some()),
        "ways across were measured beside the library's own, at eleven sizes"
    );
    assert!(policy.provenance.setup_s.is_some_and(|s| s > 0.0), "setting a communicator up was measured");
    let samples = std::fs::read_to_string(folder.path().join("policy.samples.jsonl")).unwrap();
    let (of_several, of_one): (Vec<&str>, Vec<&str>) = samples.lines().skip(1).partition(|line| line.contains("\"algorithm\""));
    assert!(of_several.iter().all(|line| line.contains("\"clock_error_s\"")) && !of_several.is_empty(), "clocks of several ranks");
    assert!(of_one.iter().all(|line| !line.contains("clock_error_s")), "one rank's clock");
    // the same samples, no measuring
    let recorded = Command::new(env!("CARGO_BIN_EXE_collwise"))
        .args(["tune", "--recorded", "policy.samples.jsonl", "--hosts", "hosts", "-o", "again.toml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(recorded.status.success(), "{}", text(&recorded));
    let again = Policy::read(&folder.path().join("again.toml")).unwrap();
    assert_eq!(
        (again.groups, again.links, again.collectives),
        (policy.groups, policy.links, policy.collectives),
        "the same samples make the same policy"
    );
    // resumed: nothing is left to measure
    let resumed = collwise(5, &["tune", "--name", "played", "--hosts", "hosts", "-o", "policy.toml"], folder.path());
    assert!(text(&resumed).contains("going on from"), "{}", text(&resumed));
}

/// The process of a rank: of those with this argument, one that is `collwise` itself and not its launcher.
fn a_rank_of(argument: &str) -> u32 {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_rank = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').next() == Some(env!("CARGO_BIN_EXE_collwise")) && line.contains(argument)
    };
    processes.filter(is_rank).max().expect("a rank is running")
}

#[test]
fn a_rank_that_dies_while_measuring_ends_the_job_and_loses_nothing() {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("killed.toml");
    let samples = folder.path().join("killed.samples.jsonl");
    let lines = || std::fs::read_to_string(&samples).map_or(0, |t| t.lines().count());
    let arguments = ["tune", "--name", "t", "--repetitions", "101", "--precision", "0.0001", "-o", policy.to_str().unwrap()];
    let mut job = mpirun(4).arg(env!("CARGO_BIN_EXE_collwise")).args(arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
    let began = std::time::Instant::now();
    while lines() < 20 && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Command::new("bash").args(["-c", &format!("kill -9 {}", a_rank_of(policy.to_str().unwrap()))]).status().unwrap();
    assert!(!job.wait().unwrap().success(), "a job without one of its ranks cannot succeed");
    let kept = lines();
    assert!(kept >= 20, "{kept} lines of samples");
    assert!(!policy.exists());
    let again = mpirun(4).arg(env!("CARGO_BIN_EXE_collwise")).args(["tune", "--name", "t", "-o"]).arg(&policy).output().unwrap();
    assert!(again.status.success(), "{}", text(&again));
    assert!(text(&again).contains("going on from"), "{}", text(&again));
    assert!(Policy::read(&policy).is_ok());
}

#[test]
fn starting_it_wrong_is_said_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let alone = |variables: &[(&str, &str)]| {
        let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut command = Command::new("timeout");
        command.args(["60", env!("CARGO_BIN_EXE_collwise"), "tune"]).current_dir(folder.path());
        command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]).envs(variables.iter().copied());
        command.output().unwrap()
    };
    let one = alone(&[]);
    assert_eq!(one.status.code(), Some(1));
    assert!(text(&one).contains("one rank") && text(&one).contains("mpirun -n"), "{}", text(&one));
    // another library's launcher: many programs, each of one rank
    let foreign = alone(&[("PMI_SIZE", "4")]);
    assert_eq!(foreign.status.code(), Some(1));
    assert!(text(&foreign).contains("the launcher says 4"), "{}", text(&foreign));
    let unwritable = collwise(2, &["tune", "-o", "/proc/no/such/policy.toml"], folder.path());
    assert!(
        !unwritable.status.success() && text(&unwritable).contains("failed to write /proc/no/such/policy.toml"),
        "{}",
        text(&unwritable)
    );
    let short = folder.path().join("short");
    std::fs::write(&short, "a\n").unwrap();
    let hosts = collwise(2, &["tune", "--hosts", "short", "-o", "p.toml"], folder.path());
    assert!(!hosts.status.success() && text(&hosts).contains("1 are declared for 2 ranks"), "{}", text(&hosts));
    let none = collwise(3, &["tune", "--hosts", "none", "-o", "p.toml"], folder.path());
    for (output, words) in [(&unwritable, "failed to write /proc/no"), (&hosts, "1 are declared"), (&none, "failed to read none")] {
        assert!(!output.status.success() && text(output).matches(words).count() == 1, "once: {}", text(output));
    }
    // on all ranks alike
    let unread = collwise(3, &["bench", "none.toml"], folder.path());
    let policy = common::file("policies/hcl16.toml").display().to_string();
    let outside = collwise(3, &["bench", &policy, "--roots", "3"], folder.path());
    let single = collwise(1, &["bench", &policy], folder.path());
    let unknown = collwise(3, &["tune", "--collectives", "bcas"], folder.path());
    for (output, words) in [
        (&unread, "failed to read none.toml"),
        (&outside, "from rank 3 of 3 ranks"),
        (&single, "collectives of one rank"),
        (&unknown, "the collective \"bcas\""),
    ] {
        assert!(!output.status.success() && text(output).matches(words).count() == 1, "once: {}", text(output));
    }
}

#[test]
fn only_the_rank_that_drives_needs_the_files() {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let (drives, serves) = (folder.path().join("drives"), folder.path().join("serves"));
    std::fs::create_dir_all(drives.join("out")).unwrap();
    std::fs::create_dir(&serves).unwrap();
    std::fs::write(drives.join("hosts"), "a left\nb right\n").unwrap();
    let arguments = ["tune", "--name", "t", "--hosts", "hosts", "--repetitions", "3", "-o", "out/policy.toml"];
    let mut command = mpirun(1);
    command.args(["-wdir"]).arg(&drives).arg(env!("CARGO_BIN_EXE_collwise")).args(arguments);
    command.args([":", "-n", "1", "-wdir"]).arg(&serves).arg(env!("CARGO_BIN_EXE_collwise")).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let policy = Policy::read(&drives.join("out/policy.toml")).unwrap();
    assert_eq!(policy.groups.iter().map(|g| g.name.as_str()).collect::<Vec<_>>(), ["left", "right"]);
    assert_eq!(serves.read_dir().unwrap().count(), 0, "who serves writes nothing");
}

/// A rank may outlive its launcher for as long as it likes, and goes on measuring: it is named.
#[test]
fn a_job_that_still_measures_is_named() {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["tune", "--name", "t", "--repetitions", "101", "--precision", "0.0001", "--samples", "s.jsonl", "-o"];
    let start = |policy: &Path| {
        let mut command = mpirun(3);
        command.arg(env!("CARGO_BIN_EXE_collwise")).args(arguments).arg(policy).current_dir(folder.path());
        command.stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let first = folder.path().join("first.toml");
    let mut job = start(&first);
    let began = std::time::Instant::now();
    let lines = || std::fs::read_to_string(folder.path().join("s.jsonl")).map_or(0, |t| t.lines().count());
    let lock = || std::fs::read_to_string(folder.path().join("s.jsonl.lock")).ok().filter(|_| lines() >= 5);
    let holder = loop {
        assert!(began.elapsed().as_secs() < 60, "the first job holds no lock");
        let Some(holder) = lock() else { continue };
        break holder;
    };
    let process: u32 = holder.split(' ').nth(1).unwrap().parse().unwrap();
    let signal = |name: &str| Command::new("bash").args(["-c", &format!("kill -{name} {process}")]).status().unwrap();
    // stopped, it measures for as long as the second job takes to start
    signal("STOP");
    let second = mpirun(2).arg(env!("CARGO_BIN_EXE_collwise")).args(arguments).arg("second.toml").current_dir(folder.path()).output();
    let second = second.unwrap();
    assert!(!second.status.success() && text(&second).contains(holder.trim()), "{}", text(&second));
    let line = std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap();
    assert!(line.contains("first.toml"), "{line}");
    signal("KILL");
    job.wait().unwrap();
    let kept = lines();
    // what it left is no obstacle
    let mut again = mpirun(3);
    again.arg(env!("CARGO_BIN_EXE_collwise")).args(["tune", "--name", "t", "--samples", "s.jsonl", "-o", "third.toml"]);
    let again = again.current_dir(folder.path()).output().unwrap();
    assert!(again.status.success() && text(&again).contains("going on from"), "{}", text(&again));
    assert!(lines() >= kept, "nothing is lost");
}

/// Open MPI counts its messages for each collective; they are those that reports are expanded into.
#[test]
fn open_mpi_sends_what_reports_are_expanded_into() {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let version = text(&mpirun(1).arg("--version").output().unwrap());
    if !version.contains("4.1.") {
        eprintln!("SKIPPED 1 test: the choices are those of Open MPI 4.1, not of {version}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("traffic");
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".into());
    let compiled =
        Command::new(compiler).args(["-rdynamic", "-o"]).arg(&program).arg(common::file("tests/programs/traffic.c")).output().unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled));
    let (mut calls, mut exact, mut far) = (0, 0, Vec::new());
    for (ranks, most) in [
        (2, 1 << 20),
        (3, 1 << 20),
        (5, 1 << 20),
        (8, 1 << 20),
        (12, 1 << 20),
        (15, 65536),
        (17, 65536),
        (24, 65536),
        (33, 32768),
        (48, 16384),
    ] {
        for first in [4, 12] {
            let output = mpirun(ranks)
                .args(["--mca", "pml_monitoring_enable", "1"])
                .arg(&program)
                .args([most.to_string(), first.to_string()])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", text(&output));
            for line in String::from_utf8(output.stdout).unwrap().lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |k: usize| words[k].parse::<f64>().unwrap();
                let (p, block) = (ranks as f64, number(2));
                // what mpiP says of it: of some calls the bytes of all blocks
                let bytes = match words[0] {
                    "Alltoallv" | "Alltoallw" | "Reduce_scatter" => block * p,
                    _ => block,
                };
                let said = wire(words[0], ranks, bytes, Library::OpenMpi).unwrap();
                let off = |said: f64, sent: f64| (said * p - sent).abs() / sent.max(1.0);
                let worst = off(said.messages, number(3)).max(if words[0].ends_with("arrier") { 0.0 } else { off(said.bytes, number(4)) });
                calls += 1;
                exact += u32::from(worst < 0.01);
                if worst > 0.25 {
                    far.push(format!("{line}: {said:?}"));
                }
            }
        }
    }
    println!("{exact} of {calls} kinds of calls within 1 %");
    assert!(far.is_empty(), "{} of {calls}: {}", far.len(), far.join("\n"));
    assert!(f64::from(exact) > 0.9 * f64::from(calls), "{exact} of {calls}");
}

/// The mini-applications check their results, and their reports say what they did.
#[test]
fn mini_applications_run_and_report() {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    for (example, arguments, call) in [
        ("conjugate_gradient", &["64", "20000"][..], "Allreduce"),
        ("fourier_2d", &["64", "3"], "Alltoallv"),
        ("k_means", &["200", "50", "4"], "Bcast"),
    ] {
        let program = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples").join(example);
        for ranks in [1, 3, 4] {
            let path = folder.path().join(format!("{example}.{ranks}.mpiP"));
            let output = mpirun(ranks).arg(&program).args(arguments).env("COLLWISE_PROFILE", &path).output().unwrap();
            assert!(output.status.success(), "{example}: {}", text(&output));
            let report = collwise::qnm::Report::read(&path).unwrap();
            assert_eq!(report.ranks(), ranks);
            assert!(report.mean.app_s > 0.0 && report.mean.mpi_s > 0.0 && report.mean.mpi_s <= report.mean.app_s);
            let calls = collwise::qnm::Run::of(&report).unwrap().calls;
            let found = calls.iter().find(|c| c.name == call).unwrap_or_else(|| panic!("{example} calls no {call}: {calls:?}"));
            let wanted = match example {
                // a complex number has 16 bytes: all of a process's rows in each of four passes a round
                "fourier_2d" => (12.0, 64.0 * 64.0 * 16.0 / ranks as f64),
                "k_means" => (5.0, 50.0 * 16.0 * 8.0),
                _ => (found.count, 8.0),
            };
            assert!(found.count == wanted.0 && (found.bytes / wanted.1 - 1.0).abs() < 0.01, "{example} on {ranks}: {found:?}");
        }
        // what makes no sense is refused
        let output = mpirun(2).arg(&program).args(["1", "7"]).output().unwrap();
        assert!(!output.status.success() && text(&output).contains("Error"), "{example}: {}", text(&output));
    }
}
