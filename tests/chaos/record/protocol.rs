//! Requests and replies, as far as they are about the znodes that are judged.

use serde::{Deserialize, Serialize};

/// One operation, or one part of a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Op {
    Read { path: String },
    Create { path: String, data: String },
    Set { path: String, data: String, version: i32 },
    Check { path: String, version: i32 },
    Delete { path: String, version: i32 },
}

/// What was asked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Request {
    pub ops: Vec<Op>,
    pub is_multi: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Stat {
    pub czxid: i64,
    pub mzxid: i64,
    pub version: i32,
}

/// What became of one operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    Done,
    /// Of a write, or of a read without content.
    Stat(Stat),
    Data(Stat, String),
    /// `ZooKeeper`'s code; 0 for what failed only because another part did.
    Failed(i32),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// Of this write, or of the last one that the server had applied.
    pub zxid: i64,
    pub outcomes: Vec<Outcome>,
}

impl Op {
    pub fn path(&self) -> &str {
        match self {
            Self::Read { path }
            | Self::Create { path, .. }
            | Self::Set { path, .. }
            | Self::Check { path, .. }
            | Self::Delete { path, .. } => path,
        }
    }
}

pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    fn take(&mut self, length: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        // -1 is null.
        let length = usize::try_from(self.int()?).unwrap_or(0);
        Some(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn skip_acl(&mut self) -> Option<()> {
        for _ in 0..self.int()? {
            self.int()?;
            self.text()?;
            self.text()?;
        }
        Some(())
    }

    fn stat(&mut self) -> Option<Stat> {
        let (czxid, mzxid) = (self.long()?, self.long()?);
        self.take(16)?;
        let version = self.int()?;
        self.take(4 + 4 + 8 + 4 + 4 + 8)?;
        Some(Stat { czxid, mzxid, version })
    }

    fn op(&mut self, kind: i32) -> Option<Op> {
        let path = self.text()?;
        Some(match kind {
            1 | 15 => {
                let data = self.text()?;
                self.skip_acl()?;
                self.int()?;
                Op::Create { path, data }
            }
            2 => Op::Delete { path, version: self.int()? },
            3 | 4 => {
                self.take(1)?;
                Op::Read { path }
            }
            5 => Op::Set { path, data: self.text()?, version: self.int()? },
            13 => Op::Check { path, version: self.int()? },
            _ => return None,
        })
    }

    /// After the xid and the type; `None` for a type that is not judged.
    pub fn request(&mut self, kind: i32) -> Option<Request> {
        if kind != 14 {
            return Some(Request { ops: vec![self.op(kind)?], is_multi: false });
        }
        let mut ops = Vec::new();
        loop {
            let (kind, is_last) = (self.int()?, self.take(1)?[0] != 0);
            self.int()?;
            if is_last {
                return Some(Request { ops, is_multi: true });
            }
            ops.push(self.op(kind)?);
        }
    }

    /// After the xid.
    pub fn reply(&mut self, request: &Request) -> Option<Reply> {
        let (zxid, error) = (self.long()?, self.int()?);
        let outcomes = match (error, request.ops.first()) {
            (_, _) if request.is_multi && !self.0.is_empty() => self.parts()?,
            (0, Some(op)) => vec![self.outcome(op)?],
            _ => vec![Outcome::Failed(error)],
        };
        Some(Reply { zxid, outcomes })
    }

    fn outcome(&mut self, op: &Op) -> Option<Outcome> {
        Some(match op {
            Op::Read { .. } if self.0.len() > STAT => {
                let data = self.text()?;
                Outcome::Data(self.stat()?, data)
            }
            Op::Read { .. } | Op::Set { .. } => Outcome::Stat(self.stat()?),
            Op::Create { .. } | Op::Check { .. } | Op::Delete { .. } => Outcome::Done,
        })
    }

    fn parts(&mut self) -> Option<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        loop {
            let (kind, is_last) = (self.int()?, self.take(1)?[0] != 0);
            self.int()?;
            if is_last {
                return Some(outcomes);
            }
            outcomes.push(match kind {
                1 => self.text().map(|_| Outcome::Done)?,
                15 => {
                    self.text()?;
                    Outcome::Stat(self.stat()?)
                }
                2 | 13 => Outcome::Done,
                5 => Outcome::Stat(self.stat()?),
                _ => Outcome::Failed(self.int()?),
            });
        }
    }
}

/// So long is a stat on the wire.
const STAT: usize = 68;
