//! Who leads and where we stand, read for people while we wait.
//!
//! Never: a write; a watch; a fact for the machine, which looks for itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::fault::Fault;
use super::line;
use super::office::Office;
use super::records;
use super::session::Contact;
use crate::core::event::Place;
use crate::core::settings::Recipe;

/// Whoever waits longer for an answer is as good as out of contact.
const PATIENCE: Duration = Duration::from_secs(2);

/// Takes a survey when asked.
#[derive(Clone, Debug)]
pub struct Surveyor(Arc<Office>);

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survey {
    /// Our place in line, from 1; `None` if we are not in line, or the recipe has none.
    pub place: Option<u32>,
    /// Who holds the lease record.
    pub leader: Option<Leader>,
}

/// The holder of the lease record, by its own account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    pub id: String,
    /// When its term began, by `ZooKeeper`'s clock: milliseconds since 1970.
    pub since: i64,
}

impl Surveyor {
    pub(super) fn new(office: Arc<Office>) -> Self {
        Self(office)
    }

    /// The servers that are tried.
    pub fn servers(&self) -> &str {
        &self.0.settings.servers
    }

    /// `None` without contact. Three reads in one round.
    pub async fn look(&self) -> Option<Survey> {
        let contact = self.0.contact()?;
        let read = AssertUnwindSafe(timeout(PATIENCE, read(&contact))).catch_unwind();
        match read.await {
            Ok(Ok(Ok(survey))) => Some(survey),
            // The client library panics on replies that are too short.
            Ok(Ok(Err(_)) | Err(_)) | Err(_) => None,
        }
    }
}

async fn read(contact: &Contact) -> Result<Survey, Fault> {
    let (client, paths) = (&contact.client, &contact.office.paths);
    let children = client.get_children(&paths.election);
    let term = client.get_data(&paths.term);
    let record = client.get_data(&paths.lease);
    let (children, term, record) = tokio::join!(children, term, record);
    let ((children, _), (_, term), (record, _)) = (children?, term?, record?);
    let leader = records::holder_id(&record).map(|id| Leader { id, since: term.mtime });
    Ok(Survey { place: place(contact, &children), leader })
}

fn place(contact: &Contact, children: &[String]) -> Option<u32> {
    if contact.office.settings.recipe == Recipe::Single {
        return None;
    }
    let (own, uuid) = contact.office.own(contact.number)?;
    Some(match line::standing(children, &own, &[uuid])?.place {
        Place::First => 1,
        Place::Next => 2,
        Place::Behind(before) => before.saturating_add(1),
    })
}
