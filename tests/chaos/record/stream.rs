//! One direction of a connection, put together again: frames of `ZooKeeper`'s protocol, with the times of their first and last
//! bytes.

use std::collections::{BTreeMap, VecDeque};

/// Nanoseconds of the kernel's clock.
pub type Nanos = i64;

#[derive(Debug, Default)]
pub struct Stream {
    /// The number of the first byte, once known.
    first: Option<u32>,
    /// So many bytes are whole, from the first on.
    whole: u64,
    /// The other side has confirmed so many.
    confirmed: u64,
    /// What came early.
    early: BTreeMap<u64, (Nanos, Vec<u8>)>,
    bytes: VecDeque<u8>,
    /// Where a segment ended, and when it had passed with all before it: what was lost before is sent again after it.
    passed: VecDeque<(u64, Nanos)>,
    /// So many bytes were taken.
    taken: u64,
}

/// A frame without its length.
#[derive(Debug)]
pub struct Frame {
    pub first: Nanos,
    pub last: Nanos,
    pub bytes: Vec<u8>,
}

impl Stream {
    pub fn from_syn(seq: u32) -> Self {
        Self { first: Some(seq.wrapping_add(1)), ..Self::default() }
    }

    pub fn begins_after(&self, syn: u32) -> bool {
        self.first == Some(syn.wrapping_add(1))
    }

    pub fn add(&mut self, seq: u32, at: Nanos, payload: &[u8]) {
        let Some(first) = self.first else { return };
        let Some(place) = self.place_of(seq.wrapping_sub(first)) else { return };
        if payload.is_empty() || place + payload.len() as u64 <= self.whole {
            return;
        }
        let is_longer = self.early.get(&place).is_none_or(|(_, known)| known.len() < payload.len());
        if is_longer {
            self.early.insert(place, (at, payload.to_vec()));
        }
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.whole) {
            let (place, (at, bytes)) = entry.remove_entry();
            let known = usize::try_from(self.whole - place).unwrap().min(bytes.len());
            self.whole += (bytes.len() - known) as u64;
            self.bytes.extend(&bytes[known..]);
            let since = self.passed.back().map_or(at, |(_, before)| at.max(*before));
            self.passed.push_back((self.whole, since));
        }
    }

    pub fn confirm(&mut self, ack: u32) {
        let Some(first) = self.first else { return };
        if let Some(place) = self.place_of(ack.wrapping_sub(first)) {
            self.confirmed = self.confirmed.max(place);
        }
    }

    /// Bytes that reached the other side, and were not seen here. A byte more is confirmed when the connection ends.
    pub fn missed(&self) -> bool {
        self.confirmed > self.whole + 1
    }

    /// The next one that is there as a whole.
    pub fn frame(&mut self) -> Option<Frame> {
        let length: Vec<u8> = self.bytes.iter().take(4).copied().collect();
        let length = usize::try_from(i32::from_be_bytes(length.try_into().ok()?)).ok()?;
        if self.bytes.len() < length + 4 {
            return None;
        }
        let (begin, end) = (self.taken, self.taken + length as u64 + 4);
        let bytes = self.bytes.drain(..length + 4).skip(4).collect();
        let (first, last) = (self.passed_at(begin), self.passed_at(end - 1));
        self.taken = end;
        self.passed.retain(|(ended, _)| *ended > end);
        Some(Frame { first, last, bytes })
    }

    fn passed_at(&self, place: u64) -> Nanos {
        self.passed.iter().find(|(end, _)| *end > place).unwrap().1
    }

    /// Near what is whole; a number that is far away belongs to an earlier connection.
    fn place_of(&self, offset: u32) -> Option<u64> {
        (u64::from(offset) < self.whole + (1 << 30)).then_some(offset.into())
    }
}

/// Nothing of the second one can be read before the first one has come.
#[test]
fn a_frame_that_came_before_the_one_before_it_came_with_it() {
    let frame = |text: &[u8]| [&u32::try_from(text.len()).unwrap().to_be_bytes(), text].concat();
    let (one, other) = (frame(b"one"), frame(b"other"));
    let mut stream = Stream::from_syn(9);
    stream.add(10 + 7, 100, &other);
    stream.add(10, 200, &one);
    let frames: Vec<_> = std::iter::from_fn(|| stream.frame()).collect();
    let told: Vec<_> = frames.iter().map(|frame| (frame.bytes.as_slice(), frame.first, frame.last)).collect();
    assert_eq!(told, [(&b"one"[..], 200, 200), (b"other", 200, 200)]);
}
