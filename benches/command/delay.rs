//! A delay line between two network namespaces: every packet arrives so much later, and none is lost.
//!
//! `delay MICROSECONDS NAMESPACE NAMESPACE`: in each namespace (a file as in `/proc/PID/ns/net`) it makes the TUN device `line`,
//! writes one line when both exist, and passes on what is sent to them until it is killed. Not `netem`, which many kernels lack.

use std::ffi::{c_int, c_ulong};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const CLONE_NEWNET: c_int = 0x4000_0000;
const TUNSETIFF: c_ulong = 0x4004_54ca;
const IFF_TUN: i16 = 1;
const IFF_NO_PI: i16 = 0x1000;
const LARGEST_PACKET: usize = 65_536;

/// `struct ifreq`.
#[repr(C)]
struct Interface {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

unsafe extern "C" {
    fn setns(namespace: c_int, kind: c_int) -> c_int;
    fn ioctl(file: c_int, request: c_ulong, interface: *mut Interface) -> c_int;
}

fn done(status: c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn device_in(namespace: &str) -> io::Result<File> {
    let namespace = File::open(namespace)?;
    // SAFETY: two numbers.
    done(unsafe { setns(namespace.as_raw_fd(), CLONE_NEWNET) })?;
    let device = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut interface = Interface { name: [0; 16], flags: IFF_TUN | IFF_NO_PI, rest: [0; 22] };
    interface.name[..4].copy_from_slice(b"line");
    // SAFETY: a whole `ifreq`.
    done(unsafe { ioctl(device.as_raw_fd(), TUNSETIFF, &raw mut interface) })?;
    Ok(device)
}

type Packet = (Instant, Vec<u8>);

fn take(mut from: File, by: Duration, packets: &Sender<Packet>) -> io::Result<()> {
    let mut buffer = [0; LARGEST_PACKET];
    loop {
        let length = from.read(&mut buffer)?;
        if packets.send((Instant::now() + by, buffer[..length].to_vec())).is_err() {
            return Ok(());
        }
    }
}

fn give(packets: &Receiver<Packet>, mut to: File) {
    for (due, packet) in packets {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // A device that is down takes nothing.
        to.write_all(&packet).ok();
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [micros, near, far] = arguments.as_slice() else {
        return Err(io::Error::other("usage: delay MICROSECONDS NAMESPACE NAMESPACE"));
    };
    let by = Duration::from_micros(micros.parse().map_err(io::Error::other)?);
    let (near, far) = (device_in(near)?, device_in(far)?);
    for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        let (sender, receiver) = channel();
        thread::spawn(move || give(&receiver, to));
        thread::spawn(move || take(from, by, &sender));
    }
    println!("ready");
    loop {
        thread::park();
    }
}
