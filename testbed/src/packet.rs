//! Packets as a TUN device gives them: what they weigh on a wire, where they go, and the buffers that hold them.

use crate::sys::VNET_HDR;

/// Ethernet framing of one frame: preamble, addresses, checksum, gap between frames.
const FRAMING: usize = 38;

/// Bytes on the wire: a super-packet is charged the headers of each of its segments, and every frame its framing.
pub fn wire_bytes(packet: &[u8]) -> usize {
    let ip = &packet[VNET_HDR..];
    let header_hint = u16::from_ne_bytes([packet[2], packet[3]]) as usize;
    let segment = u16::from_ne_bytes([packet[4], packet[5]]) as usize;
    let kind = packet[1] & 0x7f;
    if kind == 0 || segment == 0 {
        return ip.len() + FRAMING;
    }
    // the hint may be wrong: the headers tell, where they are IPv4 and TCP
    let ip_header = usize::from(ip[0] & 15) * 4;
    let tcp = ip.len() > ip_header + 13 && ip[9] == 6;
    let headers = if tcp { ip_header + usize::from(ip[ip_header + 12] >> 4) * 4 } else { header_hint };
    let payload = ip.len().saturating_sub(headers);
    payload + payload.div_ceil(segment).max(1) * (headers + FRAMING)
}

/// The last two bytes of the destination of an IPv4 packet.
pub fn destination(packet: &[u8]) -> Option<[u8; 2]> {
    let ip = &packet[VNET_HDR..];
    (ip.len() >= 20 && ip[0] >> 4 == 4).then(|| [ip[18], ip[19]])
}

/// Large enough for a super-packet of 64 KiB.
const LARGE: usize = 65536 + 64;
const SMALL: usize = 2048;

/// Buffers that are used again: small ones, and ones that hold a super-packet.
#[derive(Default)]
pub struct Pool {
    buffers: Vec<Box<[u8]>>,
    lengths: Vec<usize>,
    large: Vec<u32>,
    small: Vec<u32>,
}

impl Pool {
    /// Reads one packet into a buffer of the pool.
    pub fn read(&mut self, mut from: impl std::io::Read) -> std::io::Result<u32> {
        let buffer = self.take(LARGE);
        let n = match from.read(&mut self.buffers[buffer as usize]) {
            Ok(n) => n,
            Err(e) => {
                self.give(buffer);
                return Err(e);
            }
        };
        self.lengths[buffer as usize] = n;
        if n > SMALL {
            return Ok(buffer);
        }
        let small = self.take(SMALL);
        if let Ok([large, small]) = self.buffers.get_disjoint_mut([buffer as usize, small as usize]) {
            small[..n].copy_from_slice(&large[..n]);
        }
        self.lengths[small as usize] = n;
        self.give(buffer);
        Ok(small)
    }

    fn take(&mut self, size: usize) -> u32 {
        let list = if size > SMALL { &mut self.large } else { &mut self.small };
        list.pop().unwrap_or_else(|| {
            self.buffers.push(vec![0; size].into());
            self.lengths.push(0);
            (self.buffers.len() - 1) as u32
        })
    }

    /// The packet in a buffer.
    pub fn packet(&self, buffer: u32) -> &[u8] {
        &self.buffers[buffer as usize][..self.lengths[buffer as usize]]
    }

    /// Gives a buffer back.
    pub fn give(&mut self, buffer: u32) {
        if self.buffers[buffer as usize].len() >= LARGE { self.large.push(buffer) } else { self.small.push(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_super_packet_pays_for_each_segment() {
        let mut p = vec![0u8; VNET_HDR + 40 + 3000];
        p[1] = 1;
        p[4..6].copy_from_slice(&1460u16.to_ne_bytes());
        p[VNET_HDR] = 0x45;
        p[VNET_HDR + 9] = 6;
        p[VNET_HDR + 32] = 0x50;
        assert_eq!(wire_bytes(&p), 3000 + 3 * 78);
        p[1] = 0;
        assert_eq!(wire_bytes(&p), 3040 + 38);
        p[VNET_HDR + 18] = 7;
        assert_eq!(destination(&p), Some([7, 0]));
    }

    #[test]
    fn packets_keep_their_bytes_and_buffers_are_used_again() {
        let mut pool = Pool::default();
        for round in 0..3u8 {
            for n in [1usize, SMALL, SMALL + 1, 60_000] {
                let packet = vec![round; n];
                let buffer = pool.read(&packet[..]).unwrap();
                assert_eq!(pool.packet(buffer), packet);
                pool.give(buffer);
            }
        }
        assert_eq!(pool.buffers.len(), 2);
    }
}
