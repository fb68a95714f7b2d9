//! An Ethernet frame down to the bytes of its TCP stream.

use std::net::Ipv4Addr;

/// One TCP segment over IPv4.
#[derive(Debug)]
pub struct Segment<'a> {
    pub from: (Ipv4Addr, u16),
    pub to: (Ipv4Addr, u16),
    pub seq: u32,
    pub ack: Option<u32>,
    pub is_syn: bool,
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// `None` for everything else.
    pub fn of(frame: &'a [u8]) -> Option<Self> {
        let (ethernet, packet) = frame.split_at_checked(14)?;
        let is_ipv4 = ethernet.ends_with(&[0x08, 0x00]);
        let header = usize::from(packet.first()? & 0x0f) * 4;
        let length = usize::from(short(packet, 2)?);
        if !is_ipv4 || *packet.get(9)? != 6 {
            return None;
        }
        // Short frames are padded.
        let tcp = packet.get(header..length.min(packet.len()))?;
        let offset = usize::from(tcp.get(12)? >> 4) * 4;
        let flags = *tcp.get(13)?;
        Some(Self {
            from: (address(packet, 12)?, short(tcp, 0)?),
            to: (address(packet, 16)?, short(tcp, 2)?),
            seq: long(tcp, 4)?,
            ack: (flags & 0x10 != 0).then_some(long(tcp, 8)?),
            is_syn: flags & 0x02 != 0,
            payload: tcp.get(offset..)?,
        })
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    long(bytes, at).map(Ipv4Addr::from)
}
