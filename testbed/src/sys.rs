//! The few system calls that std does not wrap.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Length of the header that a TUN device puts before each packet (`struct virtio_net_hdr`).
pub const VNET_HDR: usize = 10;

const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUN_F_CSUM: libc::c_ulong = 1;
const TUN_F_TSO4: libc::c_ulong = 2;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Nanoseconds of the monotonic clock.
pub fn now_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: an out-parameter of the right type
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Moves this thread into a network namespace.
pub fn enter_network(name: &str) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{name}"))?;
    // SAFETY: a descriptor that is open during the call
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Runs `f` with this thread inside a network namespace, then comes back.
pub fn in_network<T>(name: &str, f: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let home = File::open("/proc/thread-self/ns/net")?;
    enter_network(name)?;
    let result = f();
    // SAFETY: as above
    check(unsafe { libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET) })?;
    result
}

/// Gives this process a host name, an `/etc/hosts` and a `/sys` of its own (UCX looks for its devices in `/sys/class/net`).
pub fn own_host(name: &str, hosts: &str) -> io::Result<()> {
    let none = std::ptr::null::<libc::c_char>();
    let hosts = std::ffi::CString::new(hosts)?;
    // SAFETY: C strings that live through the calls
    unsafe {
        check(libc::unshare(libc::CLONE_NEWUTS | libc::CLONE_NEWNS))?;
        check(libc::sethostname(name.as_ptr().cast(), name.len()))?;
        check(libc::mount(none, c"/".as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()))?;
        check(libc::mount(hosts.as_ptr(), c"/etc/hosts".as_ptr(), none, libc::MS_BIND, none.cast()))?;
        check(libc::mount(c"sysfs".as_ptr(), c"/sys".as_ptr(), c"sysfs".as_ptr(), 0, none.cast()))?;
    }
    Ok(())
}

/// Makes a TUN device in the current network namespace. With `offload`, it hands out and takes TCP super-packets of up to 64 KiB.
pub fn open_tun(name: &str, offload: bool) -> io::Result<File> {
    let file = File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    // SAFETY: a structure of plain data, whose name is shorter than its field
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        check(libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &request))?;
        let offloads = if offload { TUN_F_CSUM | TUN_F_TSO4 } else { 0 };
        check(libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, offloads))?;
    }
    Ok(file)
}

/// Waiting for several descriptors.
pub struct Epoll(File);

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: a new descriptor, owned by nobody else
        unsafe { Ok(Epoll(File::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?))) }
    }

    /// Adds a descriptor to wait for input on.
    pub fn add(&self, fd: RawFd, tag: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: tag };
        // SAFETY: an in-parameter of the right type
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) }).map(drop)
    }

    /// Waits at most `ns` (`None`: for ever); an interrupted wait gives 0 events.
    pub fn wait(&self, events: &mut [libc::epoll_event], ns: Option<u64>) -> usize {
        let limit = ns.map(|n| libc::timespec { tv_sec: (n / 1_000_000_000) as i64, tv_nsec: (n % 1_000_000_000) as i64 });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (fd, most, none) = (self.0.as_raw_fd(), events.len() as libc::c_int, std::ptr::null::<libc::sigset_t>());
        // SAFETY: an array of the length that is passed
        let n = unsafe { libc::syscall(libc::SYS_epoll_pwait2, fd, events.as_mut_ptr(), most, limit, none, 8usize) };
        n.max(0) as usize
    }
}

/// Real-time priority of ranks, below the router's.
pub const RANK_PRIORITY: i32 = 2;

/// Puts this thread into a scheduling class.
pub fn set_scheduler(policy: libc::c_int, priority: i32) -> io::Result<()> {
    let p = libc::sched_param { sched_priority: priority };
    // SAFETY: an in-parameter of the right type
    check(unsafe { libc::sched_setscheduler(0, policy, &p) }).map(drop)
}

fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: a structure of plain data
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        check(libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set)).map(drop)
    }
}

/// Keeps every processor from halting with a spinning thread of the idle class: waking a halted virtual processor costs tens of
/// microseconds, preempting such a thread few.
pub fn keep_awake(stop: &'static AtomicBool) {
    for cpu in 0..std::thread::available_parallelism().map_or(1, usize::from) {
        std::thread::spawn(move || {
            if set_scheduler(libc::SCHED_IDLE, 0).is_err() || pin(cpu).is_err() {
                return;
            }
            while !stop.load(Ordering::Relaxed) {
                (0..1000).for_each(|_| std::hint::spin_loop());
            }
        });
    }
}

/// Exact timers and no page faults from here on.
pub fn be_exact() {
    // SAFETY: no pointers are passed
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE);
    }
}

/// Processor time (user, system) of this thread, s.
pub fn cpu_s() -> (f64, f64) {
    // SAFETY: an out-parameter of plain data
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}

/// Signals end waits, and set what they mean.
pub fn on_signals(stop: &'static AtomicBool, dump: &'static AtomicBool) -> io::Result<()> {
    static FLAGS: std::sync::OnceLock<(&AtomicBool, &AtomicBool)> = std::sync::OnceLock::new();
    extern "C" fn note(signal: libc::c_int) {
        if let Some((stop, dump)) = FLAGS.get() {
            if signal == libc::SIGUSR1 { dump } else { stop }.store(true, Ordering::Relaxed);
        }
    }
    FLAGS.get_or_init(|| (stop, dump));
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGALRM] {
        // SAFETY: a handler that only stores to atomics; no SA_RESTART, so that a signal ends the wait
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as extern "C" fn(libc::c_int) as usize;
            check(libc::sigaction(signal, &action, std::ptr::null_mut()))?;
        }
    }
    Ok(())
}

/// Sends a signal; false if there is no such process.
pub fn signal(pid: i32, signal: libc::c_int) -> bool {
    // SAFETY: no pointers are passed
    unsafe { libc::kill(pid, signal) == 0 }
}

/// Asks for SIGALRM after some seconds.
pub fn alarm(seconds: u32) {
    // SAFETY: no pointers are passed
    unsafe { libc::alarm(seconds) };
}

/// True for root.
pub fn is_root() -> bool {
    // SAFETY: no pointers are passed
    unsafe { libc::geteuid() == 0 }
}
