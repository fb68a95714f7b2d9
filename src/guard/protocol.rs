//! Orders and reports as fixed-size records on a `SOCK_SEQPACKET` socket. Both ends are one program image, separated by
//! `fork(2)`, so there is no version, length or byte order. Decoding arbitrary bytes returns a possible value or
//! `None`.

use crate::core::guard_messages::{
    CandidateName, Cause, ChildStatus, Deadlines, Grant, Order, Report, RunId, Slot, Takeover,
};
use crate::core::time::Timestamp;

/// The longest order is `Start`: tag, run, two instants, token, term, session, take-over, slot, name with its length.
pub const ORDER_SIZE: usize = 1 + 8 + 2 * 8 + 8 + 4 + 8 + 1 + 2 + 1 + CandidateName::CAPACITY;
/// The longest report is `TreeEnded`: tag, run, status (kind and value), cause.
pub const REPORT_SIZE: usize = 1 + 8 + 1 + 4 + 1;

pub fn encode_order(order: &Order) -> [u8; ORDER_SIZE] {
    let mut record = Writer::<ORDER_SIZE>::new();
    match *order {
        Order::Start { run, deadlines, grant } => record.tag(1).run(run).deadlines(deadlines).grant(&grant),
        Order::Extend { run, deadlines } => record.tag(2).run(run).deadlines(deadlines),
        Order::Stop { run, by } => record.tag(3).run(run).instant(by),
        Order::Kill { run } => record.tag(4).run(run),
        Order::Signal { run, signal } => record.tag(5).run(run).put(signal.to_ne_bytes()),
        Order::Freeze { run } => record.tag(6).run(run),
        Order::Thaw { run } => record.tag(7).run(run),
        Order::Retire { run } => record.tag(8).run(run),
        Order::Pause { run } => record.tag(9).run(run),
        Order::Resume { run } => record.tag(10).run(run),
    };
    record.bytes
}

pub fn decode_order(record: &[u8]) -> Option<Order> {
    let mut record = Reader::of::<ORDER_SIZE>(record)?;
    let order = match record.byte()? {
        1 => Order::Start { run: record.run()?, deadlines: record.deadlines()?, grant: record.grant()? },
        2 => Order::Extend { run: record.run()?, deadlines: record.deadlines()? },
        3 => Order::Stop { run: record.run()?, by: record.instant()? },
        4 => Order::Kill { run: record.run()? },
        5 => Order::Signal { run: record.run()?, signal: i32::from_ne_bytes(record.take()?) },
        6 => Order::Freeze { run: record.run()? },
        7 => Order::Thaw { run: record.run()? },
        8 => Order::Retire { run: record.run()? },
        9 => Order::Pause { run: record.run()? },
        10 => Order::Resume { run: record.run()? },
        _ => return None,
    };
    record.is_spent().then_some(order)
}

pub fn encode_report(report: &Report) -> [u8; REPORT_SIZE] {
    let mut record = Writer::<REPORT_SIZE>::new();
    match *report {
        Report::Started { run, pid } => record.tag(1).run(run).put(pid.to_ne_bytes()),
        Report::Stopping { run } => record.tag(2).run(run),
        Report::CommandEnded { run, status } => record.tag(3).run(run).status(status),
        Report::TreeEnded { run, status, cause } => record.tag(4).run(run).status(status).cause(cause),
        Report::Stuck { run, survivors } => record.tag(5).run(run).put(survivors.to_ne_bytes()),
        Report::Taken { run } => record.tag(6).run(run),
    };
    record.bytes
}

pub fn decode_report(record: &[u8]) -> Option<Report> {
    let mut record = Reader::of::<REPORT_SIZE>(record)?;
    let report = match record.byte()? {
        1 => Report::Started { run: record.run()?, pid: i32::from_ne_bytes(record.take()?) },
        2 => Report::Stopping { run: record.run()? },
        3 => Report::CommandEnded { run: record.run()?, status: record.status()? },
        4 => Report::TreeEnded { run: record.run()?, status: record.status()?, cause: record.cause()? },
        5 => Report::Stuck { run: record.run()?, survivors: u32::from_ne_bytes(record.take()?) },
        6 => Report::Taken { run: record.run()? },
        _ => return None,
    };
    record.is_spent().then_some(report)
}

/// Fills a record from the front; the rest stays zero.
pub(super) struct Writer<const SIZE: usize> {
    pub(super) bytes: [u8; SIZE],
    at: usize,
}

impl<const SIZE: usize> Writer<SIZE> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; SIZE], at: 0 }
    }

    pub(super) fn put<const N: usize>(&mut self, field: [u8; N]) -> &mut Self {
        if let Some(space) = self.bytes.get_mut(self.at..self.at + N) {
            space.copy_from_slice(&field);
        }
        self.at += N;
        self
    }

    pub(super) fn tag(&mut self, tag: u8) -> &mut Self {
        self.put([tag])
    }

    pub(super) fn run(&mut self, run: RunId) -> &mut Self {
        self.put(run.0.to_ne_bytes())
    }

    fn instant(&mut self, instant: Timestamp) -> &mut Self {
        self.put(instant.as_nanos().to_ne_bytes())
    }

    pub(super) fn deadlines(&mut self, deadlines: Deadlines) -> &mut Self {
        self.instant(deadlines.stop_at).instant(deadlines.kill_at)
    }

    fn grant(&mut self, grant: &Grant) -> &mut Self {
        let takeover = match grant.takeover {
            Takeover::First => 1,
            Takeover::Clean => 2,
            Takeover::Unclean => 3,
        };
        let name = grant.candidate.as_str().as_bytes();
        self.put(grant.token.to_ne_bytes()).put(grant.term.to_ne_bytes()).put(grant.session.to_ne_bytes());
        self.put([takeover]).put(grant.slot.0.to_ne_bytes()).put([u8::try_from(name.len()).unwrap_or(0)]);
        for &byte in name {
            self.put([byte]);
        }
        self
    }

    fn status(&mut self, status: ChildStatus) -> &mut Self {
        let (kind, value) = match status {
            ChildStatus::Exited(code) => (1, i32::from(code)),
            ChildStatus::Signaled(signal) => (2, i32::from(signal)),
            ChildStatus::NotExecuted(errno) => (3, errno),
        };
        self.put([kind]).put(value.to_ne_bytes())
    }

    fn cause(&mut self, cause: Cause) -> &mut Self {
        self.put([match cause {
            Cause::ItsOwn => 1,
            Cause::Ordered => 2,
            Cause::Deadline => 3,
            Cause::SupervisorGone => 4,
        }])
    }
}

/// Takes fields from the front of a record.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn of<const SIZE: usize>(record: &'a [u8]) -> Option<Self> {
        (record.len() == SIZE).then_some(Self(record))
    }

    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    pub(super) fn run(&mut self) -> Option<RunId> {
        self.take().map(u64::from_ne_bytes).map(RunId)
    }

    fn instant(&mut self) -> Option<Timestamp> {
        self.take().map(u64::from_ne_bytes).map(Timestamp::from_nanos)
    }

    pub(super) fn deadlines(&mut self) -> Option<Deadlines> {
        Some(Deadlines { stop_at: self.instant()?, kill_at: self.instant()? })
    }

    fn grant(&mut self) -> Option<Grant> {
        Some(Grant {
            token: i64::from_ne_bytes(self.take()?),
            term: i32::from_ne_bytes(self.take()?),
            session: i64::from_ne_bytes(self.take()?),
            takeover: match self.byte()? {
                1 => Takeover::First,
                2 => Takeover::Clean,
                3 => Takeover::Unclean,
                _ => return None,
            },
            slot: Slot(u16::from_ne_bytes(self.take()?)),
            candidate: self.candidate()?,
        })
    }

    fn candidate(&mut self) -> Option<CandidateName> {
        let length = usize::from(self.byte()?);
        let (name, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        CandidateName::new(std::str::from_utf8(name).ok()?)
    }

    fn status(&mut self) -> Option<ChildStatus> {
        let (kind, value) = (self.byte()?, i32::from_ne_bytes(self.take()?));
        match kind {
            1 => u8::try_from(value).ok().map(ChildStatus::Exited),
            2 => u8::try_from(value).ok().map(ChildStatus::Signaled),
            3 => Some(ChildStatus::NotExecuted(value)),
            _ => None,
        }
    }

    fn cause(&mut self) -> Option<Cause> {
        Some(match self.byte()? {
            1 => Cause::ItsOwn,
            2 => Cause::Ordered,
            3 => Cause::Deadline,
            4 => Cause::SupervisorGone,
            _ => return None,
        })
    }

    /// Whether only zeros are left.
    fn is_spent(&self) -> bool {
        self.0.iter().all(|&byte| byte == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn deadlines() -> impl Strategy<Value = Deadlines> {
        (any::<u64>(), any::<u64>()).prop_map(|(stop, kill)| Deadlines {
            stop_at: Timestamp::from_nanos(stop),
            kill_at: Timestamp::from_nanos(kill),
        })
    }

    fn grants() -> impl Strategy<Value = Grant> {
        let takeover = prop_oneof![Just(Takeover::First), Just(Takeover::Clean), Just(Takeover::Unclean)];
        let name = proptest::collection::vec(b'!'..=b'~', 0..=CandidateName::CAPACITY);
        let numbers = (any::<i64>(), any::<i32>(), any::<i64>(), any::<u16>());
        (numbers, takeover, name).prop_map(|((token, term, session, slot), takeover, name)| Grant {
            token,
            term,
            session,
            takeover,
            slot: Slot(slot),
            candidate: CandidateName::new(&String::from_utf8(name).unwrap()).unwrap(),
        })
    }

    fn orders() -> impl Strategy<Value = Order> {
        let run = || any::<u64>().prop_map(RunId);
        prop_oneof![
            (run(), deadlines(), grants()).prop_map(|(run, deadlines, grant)| Order::Start { run, deadlines, grant }),
            (run(), deadlines()).prop_map(|(run, deadlines)| Order::Extend { run, deadlines }),
            (run(), any::<u64>()).prop_map(|(run, by)| Order::Stop { run, by: Timestamp::from_nanos(by) }),
            run().prop_map(|run| Order::Kill { run }),
            (run(), any::<i32>()).prop_map(|(run, signal)| Order::Signal { run, signal }),
            run().prop_map(|run| Order::Freeze { run }),
            run().prop_map(|run| Order::Thaw { run }),
            run().prop_map(|run| Order::Retire { run }),
            run().prop_map(|run| Order::Pause { run }),
            run().prop_map(|run| Order::Resume { run }),
        ]
    }

    fn reports() -> impl Strategy<Value = Report> {
        let run = || any::<u64>().prop_map(RunId);
        let status = || {
            prop_oneof![
                any::<u8>().prop_map(ChildStatus::Exited),
                any::<u8>().prop_map(ChildStatus::Signaled),
                any::<i32>().prop_map(ChildStatus::NotExecuted),
            ]
        };
        let cause =
            prop_oneof![Just(Cause::ItsOwn), Just(Cause::Ordered), Just(Cause::Deadline), Just(Cause::SupervisorGone)];
        prop_oneof![
            run().prop_map(|run| Report::Taken { run }),
            (run(), any::<i32>()).prop_map(|(run, pid)| Report::Started { run, pid }),
            run().prop_map(|run| Report::Stopping { run }),
            (run(), status()).prop_map(|(run, status)| Report::CommandEnded { run, status }),
            (run(), status(), cause).prop_map(|(run, status, cause)| Report::TreeEnded { run, status, cause }),
            (run(), any::<u32>()).prop_map(|(run, survivors)| Report::Stuck { run, survivors }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_sent_is_what_arrives(order in orders(), report in reports()) {
            prop_assert_eq!(decode_order(&encode_order(&order)), Some(order));
            prop_assert_eq!(decode_report(&encode_report(&report)), Some(report));
        }

        #[test]
        fn garbage_is_refused_or_is_a_value_that_could_have_been_sent(
            tag in 0_u8..11,
            noise in proptest::collection::vec(any::<u8>(), 0..=ORDER_SIZE + 1),
            zeros in 0_usize..=ORDER_SIZE,
        ) {
            let record: Vec<u8> = [vec![tag], noise, vec![0; zeros]].concat();
            for size in [record.len(), ORDER_SIZE, REPORT_SIZE] {
                let record = record.get(..size).unwrap_or(&record);
                if let Some(order) = decode_order(record) {
                    let again = encode_order(&order);
                    prop_assert_eq!(&again[..], record);
                }
                if let Some(report) = decode_report(record) {
                    let again = encode_report(&report);
                    prop_assert_eq!(&again[..], record);
                }
            }
        }

        #[test]
        fn a_record_of_another_size_is_refused(order in orders(), report in reports(), cut in 0_usize..REPORT_SIZE) {
            prop_assert_eq!(decode_order(encode_order(&order).get(..cut).unwrap()), None);
            prop_assert_eq!(decode_report(encode_report(&report).get(..cut).unwrap()), None);
        }
    }
}
