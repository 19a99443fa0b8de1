//! Bringing a platform up and taking it down.

use crate::nodes::{Node, nodes};
use crate::router::{COMPENSATE, DUMP, Port, Router, STOP, Server, compensation_of};
use crate::{calibrate, netem, sys, ways};
use anyhow::{Context, Result, bail, ensure};
use collwise::platform::Platform;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Where the emulator that is up keeps what it knows.
pub const STATE: &str = "/run/gridemu";
/// Namespaces are named by this and the node.
pub const PREFIX: &str = "ge-";

/// A file of the state.
pub fn state(name: &str) -> PathBuf {
    Path::new(STATE).join(name)
}

/// What delays packets.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq)]
pub enum Network {
    /// netem where the kernel has it, else the router.
    Auto,
    /// netem, in the kernel.
    Netem,
    /// A router in user space.
    Router,
}

/// How the platform is played.
#[derive(clap::Args, Clone)]
pub struct Options {
    /// The platform, such as platforms/ccgrid2007.toml.
    pub platform: PathBuf,
    /// A node for each host, with latencies inside groups; without it one for each group, inside which ranks talk over loopback.
    #[arg(long)]
    pub hosts: bool,
    /// What delays packets.
    #[arg(long, value_enum, default_value = "auto")]
    pub network: Network,
    /// Rate of each node's NIC; unlimited if not given.
    #[arg(long, value_name = "MBIT_PER_S")]
    pub nic: Option<f64>,
    /// Rate between two groups whose link states none.
    #[arg(long, value_name = "MBIT_PER_S", default_value_t = 1000.0)]
    pub pair: f64,
    /// Multiply latencies by this and divide rates by it: for what the processors cannot play in real time.
    #[arg(long, default_value_t = 1.0)]
    pub scale: f64,
    /// Let TCP fall back to slow start after a pause, as kernels do unless told otherwise.
    #[arg(long)]
    pub idle_restart: bool,
    /// TCP's congestion control.
    #[arg(long, default_value = "reno")]
    pub congestion: String,
    /// The longest queue before a pipe, MB; what does not fit is dropped.
    #[arg(long, default_value_t = 256.0)]
    pub queue_mb: f64,
    /// Take the platform down after so many seconds.
    #[arg(long, default_value_t = 3600)]
    pub most_seconds: u32,
}

/// Why this machine cannot, if it cannot.
pub fn obstacle() -> Option<String> {
    if !sys::is_root() {
        return Some("network namespaces need root: run it with sudo, or in a container that has CAP_NET_ADMIN and CAP_SYS_ADMIN".into());
    }
    let probed = in_probe(|name| (sys::in_network(name, || sys::open_tun("wan", true)), netem::works_in(name)));
    let Ok(probed) = probed else { return Some("the command ip is not there: install iproute2".into()) };
    match probed {
        None => Some("network namespaces may not be created here".into()),
        Some((Err(_), false)) if !Path::new("/dev/net/tun").exists() => {
            Some("/dev/net/tun is not there: load the module tun, or start the container with --device /dev/net/tun".into())
        }
        Some((Err(e), false)) => Some(format!("a TUN device cannot be made in a namespace: {e}")),
        Some(_) => None,
    }
}

/// What something finds in a namespace made for it; nothing if none may be made.
///
/// # Errors
/// The command ip is not there.
pub fn in_probe<T>(find: impl FnOnce(&str) -> T) -> std::io::Result<Option<T>> {
    // no node is called so
    let name = format!("{PREFIX}@probe");
    let ip = |verb: &str| Command::new("ip").args(["netns", verb, &name]).stderr(Stdio::null()).status();
    let found = ip("add")?.success().then(|| find(&name));
    let _ = ip("del");
    Ok(found)
}

/// Brings a platform up in a process of its own, and returns when it is ready.
pub fn up(options: &[String]) -> Result<()> {
    if let Some(why) = obstacle() {
        bail!("{why}");
    }
    if let Some(pid) = running() {
        bail!("a platform is up (process {pid}): take it down with `gridemu down`");
    }
    fs::create_dir_all(STATE)?;
    let _ = fs::remove_file(state("ready"));
    let log = fs::File::create(state("log"))?;
    let mut router = Command::new(std::env::current_exe()?);
    router.arg("route").args(options).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    let mut child = router.spawn()?;
    let start = Instant::now();
    while !state("ready").exists() {
        if child.try_wait()?.is_some() || start.elapsed() > Duration::from_secs(60) {
            bail!("{}", fs::read_to_string(state("log"))?.trim().trim_start_matches("gridemu: "));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The process that routes, if one does.
pub fn running() -> Option<i32> {
    router_of(&fs::read_to_string(state("pid")).ok()?)
}

/// The router that a pid file names: the process's number and the time at which it started. The number alone may be another process's
/// by now.
fn router_of(noted: &str) -> Option<i32> {
    let (pid, started) = noted.trim().split_once(' ')?;
    let (pid, started) = (pid.parse().ok()?, started.parse::<u64>().ok()?);
    let (process, own) = (Process::of(pid)?, Process::of(std::process::id() as i32)?);
    (process.started == started && process.program == own.program && !process.is_dead).then_some(pid)
}

/// Takes everything down, also what a killed emulator left; programs that still run on the nodes are killed.
pub fn down() -> Result<()> {
    for name in namespaces() {
        let pids = Command::new("ip").args(["netns", "pids", &name]).output()?;
        for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace().filter_map(|p| p.parse().ok()) {
            sys::signal(pid, libc::SIGKILL);
        }
    }
    if let Some(pid) = running() {
        sys::signal(pid, libc::SIGTERM);
        let start = Instant::now();
        while running() == Some(pid) && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    for name in namespaces() {
        Command::new("ip").args(["netns", "del", &name]).status()?;
    }
    for name in ["ready", "pid"] {
        let _ = fs::remove_file(state(name));
    }
    Ok(())
}

/// The nodes' namespaces.
fn namespaces() -> Vec<String> {
    let names = fs::read_dir("/run/netns").into_iter().flatten().flatten().map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|n| n.starts_with(PREFIX)).collect()
}

/// What the kernel says of a process.
struct Process {
    /// The program's name, cut by the kernel.
    program: String,
    /// Ticks from the kernel's start to the process's.
    started: u64,
    /// Dead, and not yet noticed by its parent.
    is_dead: bool,
}

impl Process {
    /// Nothing if there is no such process.
    fn of(pid: i32) -> Option<Process> {
        // "PID (PROGRAM) STATE ...": the program's name may hold anything; the start is the 22nd word, see proc(5)
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, rest) = text.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split(' ').collect();
        Some(Process {
            program: head.split_once(" (")?.1.into(),
            started: words.get(19)?.parse().ok()?,
            is_dead: ["Z", "X"].contains(words.first()?),
        })
    }
}

/// The router's counters since the last call.
pub fn stats() -> Result<String> {
    let pid = running().context("no platform is up")?;
    let _ = fs::remove_file(state("stats"));
    sys::signal(pid, libc::SIGUSR1);
    let start = Instant::now();
    while !state("stats").exists() {
        ensure!(start.elapsed() < Duration::from_secs(5), "the router does not answer");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(fs::read_to_string(state("stats"))?)
}

/// The nodes that are up.
pub fn nodes_up() -> Result<Vec<Node>> {
    running().context("no platform is up: `gridemu up PLATFORM` brings one up")?;
    let platform = Platform::read(&state("platform.toml"))?;
    nodes(&platform, state("by-host").exists())
}

/// Makes the nodes and routes until told to stop; then takes them down.
pub fn route(options: &Options) -> Result<()> {
    let platform = Platform::read(&options.platform)?;
    let nodes = nodes(&platform, options.hosts)?;
    sys::on_signals(&STOP, &DUMP)?;
    sys::alarm(options.most_seconds);
    let (pid, process) = (std::process::id(), Process::of(std::process::id() as i32).context("find this process in /proc")?);
    fs::write(state("pid"), format!("{pid} {}\n", process.started))?;
    // what was read: the file may be another one by now
    fs::write(state("platform.toml"), platform.to_toml()?)?;
    let _ = fs::remove_file(state("by-host"));
    if options.hosts {
        fs::write(state("by-host"), "")?;
    }
    let hosts: String = nodes.iter().map(|n| format!("{} {}\n", n.address(), n.name)).collect();
    fs::write(state("hosts"), format!("127.0.0.1 localhost\n{hosts}"))?;
    let routed = serve(&platform, &nodes, options);
    for name in namespaces() {
        let _ = Command::new("ip").args(["netns", "del", &name]).stderr(Stdio::null()).status();
    }
    for name in ["ready", "pid"] {
        let _ = fs::remove_file(state(name));
    }
    routed
}

fn serve(platform: &Platform, nodes: &[Node], options: &Options) -> Result<()> {
    for node in nodes {
        make(node, options).with_context(|| format!("make the node {}", node.name))?;
    }
    sys::be_exact();
    sys::keep_awake(&STOP);
    if uses_netem(platform, options)? {
        netem::join(platform, nodes, options)?;
        fs::write(state("network"), "netem delays packets")?;
        fs::write(state("ready"), "")?;
        while !STOP.load(Ordering::Relaxed) {
            if DUMP.swap(false, Ordering::Relaxed) {
                collwise::files::write_text(&state("stats"), &netem::counters(platform))?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        return Ok(());
    }
    let wires = ways::wires(platform, options);
    let manager = wires.latency_ns.len() - 1;
    let mut ports = Vec::new();
    for node in nodes {
        let tun = open_wan(node).with_context(|| format!("make the node {}", node.name))?;
        let nic = Server::new(ways::nic(options).filter(|_| node.group.is_some()));
        ports.push(Port { group: node.group.unwrap_or(manager), address: [node.ip[2], node.ip[3]], tun, up: nic, down: nic });
    }
    let mut router = Router::new(ports, wires, state("stats"));
    if let Err(e) = sys::set_scheduler(libc::SCHED_FIFO, 10) {
        eprintln!("no real-time priority, delays will be less exact: {e}");
    }
    std::thread::scope(|scope| {
        let calibrated = scope.spawn(|| {
            let calibrated = std::panic::catch_unwind(|| calibrate(platform, nodes, options));
            let calibrated = calibrated.unwrap_or_else(|_| bail!("the calibrating thread panicked"));
            if calibrated.is_err() {
                sys::signal(std::process::id() as i32, libc::SIGTERM); // ends the routing
            }
            calibrated
        });
        router.run()?;
        calibrated.join().unwrap_or_else(|_| bail!("the calibrating thread died"))
    })
}

/// Measures what the router is to take off latencies, and says that all is ready.
fn calibrate(platform: &Platform, nodes: &[Node], options: &Options) -> Result<()> {
    let pairs = || nodes.iter().enumerate().flat_map(|(k, a)| nodes[..k].iter().filter_map(move |b| Some((a, b, a.group?, b.group?))));
    let mut said = Vec::new();
    let latency = |&(_, _, i, j): &(&Node, &Node, usize, usize)| Duration::from_secs_f64(ways::latency_s(platform, options, i, j));
    for (class, words) in ["short", "long"].into_iter().enumerate() {
        // the longest of each class
        let of_class = pairs().filter(|p| compensation_of(latency(p).as_nanos() as u64) == class);
        let Some(pair) = of_class.max_by_key(latency) else { continue };
        let names = [pair.0, pair.1].map(|n| format!("{PREFIX}{}", n.name));
        let excess = calibrate::excess((&names[0], pair.0.ip), (&names[1], pair.1.ip), latency(&pair))?;
        COMPENSATE[class].store(excess.as_nanos() as u64, Ordering::Relaxed);
        said.push(format!("{} us off {words} latencies", excess.as_micros()));
    }
    let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
    fs::write(state("network"), format!("the router delays packets{said}"))?;
    fs::write(state("ready"), "")?;
    Ok(())
}

/// Which of both delays packets.
fn uses_netem(platform: &Platform, options: &Options) -> Result<bool> {
    match (options.network, netem::obstacle(platform)) {
        (Network::Router, _) | (Network::Auto, Some(_)) => Ok(false),
        (Network::Auto | Network::Netem, None) => Ok(true),
        (Network::Netem, Some(why)) => bail!("{why}; or leave out --network netem"),
    }
}

/// Makes a node: its namespace, its TCP settings.
fn make(node: &Node, options: &Options) -> Result<()> {
    let name = format!("{PREFIX}{}", node.name);
    let _ = Command::new("ip").args(["netns", "del", &name]).stderr(Stdio::null()).status();
    ensure!(Command::new("ip").args(["netns", "add", &name]).status()?.success(), "ip netns add {name} failed");
    sys::in_network(&name, || {
        // a machine without IPv6 has nothing to turn off
        let _ = sysctl("ipv6/conf/all/disable_ipv6", "1");
        sysctl("ipv4/tcp_congestion_control", &options.congestion)?;
        sysctl("ipv4/tcp_no_metrics_save", "1")?;
        sysctl("ipv4/tcp_slow_start_after_idle", if options.idle_restart { "1" } else { "0" })
    })?;
    Ok(())
}

/// Sets a value of the current network namespace.
pub fn sysctl(key: &str, value: &str) -> std::io::Result<()> {
    let refused = |e| std::io::Error::other(format!("set net/{key} to {value}: {e}"));
    fs::write(format!("/proc/sys/net/{key}"), value).map_err(refused)
}

/// A node's TUN device.
fn open_wan(node: &Node) -> Result<fs::File> {
    let name = format!("{PREFIX}{}", node.name);
    let tun = sys::in_network(&name, || sys::open_tun("wan", true))?;
    let script = format!("link set lo up\naddr add {}/16 dev wan\nlink set wan mtu 1500 txqueuelen 20000 up\n", node.address());
    run_batch("ip", Some(&name), &script)?;
    Ok(tun)
}

/// Runs commands of ip or tc, in a namespace if one is given. Whatever is put into a script must be a name or a number: each line is a
/// command.
pub fn run_batch(program: &str, namespace: Option<&str>, script: &str) -> Result<()> {
    let mut command = Command::new(program);
    command.args(namespace.iter().flat_map(|n| ["-n", n])).args(["-batch", "-"]).stdin(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("run {program} (of iproute2)"))?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(script.as_bytes())?;
    }
    ensure!(child.wait()?.success(), "{program} failed on:\n{script}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_router_that_was_noted_is_found() {
        let own = std::process::id() as i32;
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let started = |pid: i32| Process::of(pid).unwrap().started;
        let sleep = other.id() as i32;
        assert_eq!(router_of(&format!("{own} {}\n", started(own))), Some(own));
        assert_eq!(router_of(&format!("{own} {}\n", started(own) + 1)), None, "its number was another process's");
        assert_eq!(router_of(&format!("{own}\n")), None, "a note without a start names nobody");
        assert_eq!(router_of(&format!("{sleep} {}\n", started(sleep))), None, "another program");
        other.kill().unwrap();
        while !Process::of(sleep).unwrap().is_dead {}
        other.wait().unwrap();
        assert!(Process::of(sleep).is_none() && router_of("x y").is_none() && router_of("").is_none());
    }
}
