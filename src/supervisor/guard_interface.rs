//! A guard as the supervisor sees it: a forked process, or a part of a simulation.

use std::fmt;
use std::future::{pending, ready};
use std::io;
use std::os::fd::BorrowedFd;

use futures_util::future::LocalBoxFuture;

use crate::core::guard_messages::{Order, Report};
use crate::guard::briefing::AuxiliaryCommand;
use crate::guard::contain::Process;
use crate::guard::handle::Handle;
use crate::guard::handle::upgrade::HandedOver;
use crate::guard::probe::Prober;

/// A guard that is no process. Each method does what [`Handle`]'s does; by itself, what an idle guard without orphans would do.
pub trait Simulated: fmt::Debug {
    fn send(&self, order: &Order) -> io::Result<()>;

    fn send_auxiliary(&self, _: &AuxiliaryCommand) -> io::Result<()> {
        Ok(())
    }

    fn hand_over(&mut self) -> Option<HandedOver> {
        None
    }

    fn kill(&self) {}

    fn recv(&mut self) -> LocalBoxFuture<'_, Option<Report>> {
        Box::pin(pending())
    }

    fn end_orphans(&mut self) -> LocalBoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    fn dismiss(self: Box<Self>) -> LocalBoxFuture<'static, ()> {
        Box::pin(ready(()))
    }
}

#[derive(Debug)]
pub enum Guard {
    Forked(Handle),
    Simulated(Box<dyn Simulated>),
}

impl Guard {
    /// The guard and the sentinel; none in a simulation.
    pub(super) fn pids(&self) -> Vec<i32> {
        match self {
            Self::Forked(handle) => handle.pids().to_vec(),
            Self::Simulated(_) => Vec::new(),
        }
    }

    pub(super) fn prober(&self) -> Option<Prober> {
        match self {
            Self::Forked(handle) => Some(handle.prober()),
            Self::Simulated(_) => None,
        }
    }

    /// See [`Handle::hand_over`].
    pub(super) fn hand_over(&mut self) -> Option<(HandedOver, Vec<BorrowedFd<'_>>)> {
        match self {
            Self::Forked(handle) => handle.hand_over(),
            Self::Simulated(guard) => guard.hand_over().map(|state| (state, Vec::new())),
        }
    }

    /// See [`Handle::send`].
    pub(super) fn send(&self, order: &Order) -> io::Result<()> {
        match self {
            Self::Forked(handle) => handle.send(order),
            Self::Simulated(guard) => guard.send(order),
        }
    }

    /// See [`Handle::has_room`].
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Forked(handle) => handle.has_room(),
            Self::Simulated(_) => true,
        }
    }

    /// See [`Handle::send_auxiliary`].
    pub(super) fn send_auxiliary(&self, command: &AuxiliaryCommand) -> io::Result<()> {
        match self {
            Self::Forked(handle) => handle.send_auxiliary(command),
            Self::Simulated(guard) => guard.send_auxiliary(command),
        }
    }

    /// See [`Handle::kill`].
    pub(super) fn kill(&self) {
        match self {
            Self::Forked(handle) => handle.kill(),
            Self::Simulated(guard) => guard.kill(),
        }
    }

    /// See [`Handle::recv`]. Cancel-safe.
    pub(super) async fn recv(&mut self) -> Option<Report> {
        match self {
            Self::Forked(handle) => handle.recv().await,
            Self::Simulated(guard) => guard.recv().await,
        }
    }

    /// See [`Handle::end_orphans`].
    pub(super) async fn end_orphans(&mut self, spared: &[Process], complain: impl FnOnce(io::Error)) {
        match self {
            Self::Forked(handle) => handle.end_orphans(spared, complain).await,
            Self::Simulated(guard) => guard.end_orphans().await,
        }
    }

    /// See [`Handle::dismiss`].
    pub(super) async fn dismiss(self) {
        match self {
            Self::Forked(handle) => handle.dismiss().await,
            Self::Simulated(guard) => guard.dismiss().await,
        }
    }
}
