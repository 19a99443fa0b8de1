//! The router: one thread, one TUN device for each node, one heap of timed deliveries.
//!
//! A packet from node s (group i) to node d (group j) passes the NIC of s, the pipe between i and j if they differ, the latency, and
//! the NIC of d. NICs and pipes serve first come, first served, each at its own rate, and are passed cut-through: a packet's head
//! leaves one when its service starts, its tail when that ends.

use crate::packet::{Pool, destination, wire_bytes};
use crate::stats::{Flow, Lateness};
use crate::sys::{self, Epoll, VNET_HDR};
use collwise::files::write_text;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Set to end the routing.
pub static STOP: AtomicBool = AtomicBool::new(false);
/// Set to have the counters written.
pub static DUMP: AtomicBool = AtomicBool::new(false);

/// Taken off short latencies, and off long ones, ns: what sockets, kernels and the router add. After a long wait they take longer.
pub static COMPENSATE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// From here on a latency is long, ns.
const LONG_NS: u64 = 1_000_000;

/// Where in [`COMPENSATE`] a latency finds what is taken off it.
pub fn compensation_of(latency_ns: u64) -> usize {
    usize::from(latency_ns >= LONG_NS)
}

/// The router spins for so long before a packet is due.
const SPIN_NS: u64 = 20_000;

/// First come, first served, at a rate.
#[derive(Clone, Copy, Default)]
pub struct Server {
    ns_per_byte: f64,
    free: u64,
}

impl Server {
    /// A server of a rate in bits per second; `None`: infinitely fast.
    pub fn new(bits_per_s: Option<f64>) -> Server {
        Server { ns_per_byte: bits_per_s.map_or(0.0, |r| 8e9 / r), free: 0 }
    }

    /// Serves `bytes` that come at `t`: start and end of the service.
    fn serve(&mut self, t: u64, bytes: usize) -> (u64, u64) {
        if self.ns_per_byte == 0.0 {
            return (t, t);
        }
        let start = t.max(self.free);
        self.free = start + (bytes as f64 * self.ns_per_byte) as u64;
        (start, self.free)
    }

    fn backlog_bytes(&self, now: u64) -> usize {
        if self.ns_per_byte == 0.0 { 0 } else { (self.free.saturating_sub(now) as f64 / self.ns_per_byte) as usize }
    }
}

/// A node of the router.
pub struct Port {
    /// Its group.
    pub group: usize,
    /// The last two bytes of its address.
    pub address: [u8; 2],
    /// Its TUN device.
    pub tun: File,
    /// Its NIC, outwards.
    pub up: Server,
    /// Its NIC, inwards.
    pub down: Server,
}

/// What lies between groups.
pub struct Wires {
    /// Latency by pair of groups, ns.
    pub latency_ns: Vec<Vec<u64>>,
    /// The pipe of each pair of groups, in one direction.
    pub pipe: Vec<Vec<usize>>,
    /// The pipes.
    pub pipes: Vec<Server>,
    /// A pipe drops what would make its queue longer than this.
    pub queue_bytes: usize,
    /// Group names, for the counters.
    pub names: Vec<String>,
}

#[derive(Clone, Copy)]
struct Parcel {
    to: u32,
    buffer: u32,
    wire: u32,
    /// When the tail arrives, as far as known when the head reaches the receiving NIC.
    tail: u64,
    /// False: the head reaches the receiving NIC; true: it is given to the node.
    last: bool,
}

/// The router's state.
pub struct Router {
    ports: Vec<Port>,
    wires: Wires,
    route: Vec<Option<u32>>,
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    parcels: Vec<Parcel>,
    free_parcels: Vec<u32>,
    sequence: u64,
    pool: Pool,
    flows: Vec<Vec<Flow>>,
    late: Lateness,
    unroutable: u64,
    write_errors: u64,
    stats: PathBuf,
    started: u64,
}

fn address(bytes: [u8; 2]) -> usize {
    usize::from(u16::from_be_bytes(bytes))
}

impl Router {
    /// A router that writes its counters to the file `stats`.
    pub fn new(ports: Vec<Port>, wires: Wires, stats: PathBuf) -> Router {
        let mut route = vec![None; 1 << 16];
        ports.iter().enumerate().for_each(|(k, p)| route[address(p.address)] = Some(k as u32));
        let groups = wires.latency_ns.len();
        Router {
            ports,
            wires,
            route,
            heap: BinaryHeap::new(),
            parcels: Vec::new(),
            free_parcels: Vec::new(),
            sequence: 0,
            pool: Pool::default(),
            flows: vec![vec![Flow::default(); groups]; groups],
            late: Lateness::default(),
            unroutable: 0,
            write_errors: 0,
            stats,
            started: sys::now_ns(),
        }
    }

    /// Routes until [`STOP`] is set.
    pub fn run(&mut self) -> std::io::Result<()> {
        let epoll = Epoll::new()?;
        for (k, port) in self.ports.iter().enumerate() {
            epoll.add(port.tun.as_raw_fd(), k as u64)?;
        }
        let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 128];
        while !STOP.load(Ordering::Relaxed) {
            if DUMP.swap(false, Ordering::Relaxed) {
                self.dump();
            }
            let wait = self.deliver_due().map(|due| due.saturating_sub(sys::now_ns()).saturating_sub(SPIN_NS));
            let n = epoll.wait(&mut events, wait);
            events[..n].iter().map(|e| e.u64 as usize).for_each(|port| self.drain(port));
        }
        self.dump();
        Ok(())
    }

    /// Reads what a node has sent, a bounded number of packets.
    fn drain(&mut self, from: usize) {
        for _ in 0..16 {
            let Ok(buffer) = self.pool.read(&self.ports[from].tun) else { return };
            self.accept(from, buffer);
        }
    }

    fn accept(&mut self, from: usize, buffer: u32) {
        let packet = self.pool.packet(buffer);
        let to = if packet.len() < VNET_HDR + 20 { None } else { destination(packet).and_then(|a| self.route[address(a)]) };
        let Some(to) = to else {
            self.unroutable += 1;
            return self.pool.give(buffer);
        };
        let (wire, now) = (wire_bytes(packet), sys::now_ns());
        let (i, j) = (self.ports[from].group, self.ports[to as usize].group);
        let pipe = &mut self.wires.pipes[self.wires.pipe[i][j]];
        let flow = &mut self.flows[i][j];
        if pipe.backlog_bytes(now) + wire > self.wires.queue_bytes {
            flow.drops += 1;
            return self.pool.give(buffer);
        }
        flow.packets += 1;
        flow.bytes += wire as u64;
        let (head, nic_end) = self.ports[from].up.serve(now, wire);
        let (head, pipe_end) = pipe.serve(head, wire);
        let latency = self.wires.latency_ns[i][j];
        let latency = latency.saturating_sub(COMPENSATE[compensation_of(latency)].load(Ordering::Relaxed));
        let tail = nic_end.max(pipe_end) + latency;
        let limited = self.ports[to as usize].down.ns_per_byte > 0.0;
        let parcel = Parcel { to, buffer, wire: wire as u32, tail, last: !limited };
        self.push(if limited { head + latency } else { tail }, parcel);
    }

    fn push(&mut self, at: u64, parcel: Parcel) {
        let k = self.free_parcels.pop().unwrap_or(self.parcels.len() as u32);
        if k as usize == self.parcels.len() {
            self.parcels.push(parcel)
        } else {
            self.parcels[k as usize] = parcel
        }
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, k)));
    }

    /// Gives out what is due, a bounded number; the time of what comes next.
    fn deliver_due(&mut self) -> Option<u64> {
        for _ in 0..32 {
            let &Reverse((at, _, k)) = self.heap.peek()?;
            let now = sys::now_ns();
            if at > now {
                return Some(at);
            }
            self.heap.pop();
            let mut parcel = self.parcels[k as usize];
            self.free_parcels.push(k);
            let port = &mut self.ports[parcel.to as usize];
            if !parcel.last {
                let (_, end) = port.down.serve(at, parcel.wire as usize);
                parcel.last = true;
                self.push(end.max(parcel.tail), parcel);
                continue;
            }
            self.late.add(now - at);
            let packet = self.pool.packet(parcel.buffer);
            let whole = port.tun.write(packet).is_ok_and(|n| n == packet.len());
            self.write_errors += u64::from(!whole);
            self.pool.give(parcel.buffer);
        }
        Some(0)
    }

    /// Writes the counters since the last time, and starts afresh.
    fn dump(&mut self) {
        let (user, system) = sys::cpu_s();
        let up = (sys::now_ns() - self.started) as f64 / 1e9;
        let mut out = format!("up {up:.1} s, processor {user:.2} s user, {system:.2} s system\n{}\n", self.late.text());
        let _ = writeln!(out, "unroutable {}, write errors {}", self.unroutable, self.write_errors);
        for (i, row) in self.flows.iter().enumerate() {
            for (j, f) in row.iter().enumerate().filter(|(_, f)| f.packets + f.drops > 0) {
                let (from, to) = (&self.wires.names[i], &self.wires.names[j]);
                let _ = writeln!(out, "{from} -> {to}: {} packets, {} bytes, {} dropped", f.packets, f.bytes, f.drops);
            }
        }
        self.late = Lateness::default();
        self.flows.iter_mut().flatten().for_each(|f| *f = Flow::default());
        let _ = write_text(&self.stats, &out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_works_without_pause_in_order() {
        let mut s = Server::new(Some(8e9)); // one byte per ns
        assert_eq!(s.serve(100, 50), (100, 150));
        assert_eq!(s.serve(120, 50), (150, 200));
        assert_eq!(s.serve(500, 10), (500, 510));
        assert_eq!(s.backlog_bytes(505), 5);
        assert_eq!(Server::new(None).serve(7, 1000), (7, 7));
    }
}
