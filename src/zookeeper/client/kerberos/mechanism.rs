//! The client's side of SASL GSSAPI (RFC 4752), with what we want of it and nothing else: both sides prove who they are, and
//! what follows is neither signed nor encrypted (`ZooKeeper` has no such thing).
//!
//! The library of SASL has one, too, which asks for everything, so that a ticket that can be handed on *is* handed on to the
//! server (and the key distribution centre is asked for it at every login). Ours is chosen in its place: see [`GSSAPI`].
//!
//! Never: a login to a server that has not proved who it is; delegation.

use std::fmt;
use std::io::Write;
use std::mem;

use libgssapi::context::{ClientCtx, CtxFlags, SecurityContext as _};
use libgssapi::error::Error as Gss;
use libgssapi::oid::GSS_MECH_KRB5;
use rsasl::mechanism::{Authentication, EmptyProvider, MechanismData, MechanismError, MechanismErrorKind, State};
use rsasl::mechanisms::gssapi::properties::GssService;
use rsasl::prelude::{Mechname, MessageSent, SessionError};
use rsasl::property::Hostname;
use rsasl::registry::{MECHANISMS, Matches, Mechanism, Named, Side, distributed_slice};

/// The first octet of the last message.
const NO_LAYER: u8 = 1;
const WANTED: CtxFlags = CtxFlags::GSS_C_MUTUAL_FLAG.union(CtxFlags::GSS_C_INTEG_FLAG);

/// What a login to this server begins with.
pub(crate) fn context(service: &str, host: &str) -> Result<ClientCtx, Gss> {
    let (server, credentials) = (super::name_of(service, host)?, crate::zookeeper::client::kerberos::credentials()?);
    Ok(ClientCtx::new(Some(credentials), server, WANTED, Some(&GSS_MECH_KRB5)))
}

#[derive(Default)]
enum Exchange {
    #[default]
    Start,
    /// Who is who.
    Proofs(ClientCtx),
    /// What is signed and encrypted from now on.
    Layers(ClientCtx),
    Over,
}

impl Authentication for Exchange {
    fn step(
        &mut self,
        session: &mut MechanismData,
        input: Option<&[u8]>,
        writer: &mut dyn Write,
    ) -> Result<State, SessionError> {
        match mem::replace(self, Self::Over) {
            Self::Start => {
                let text = |text: &str| Ok(text.to_owned());
                let service = session.need_with::<GssService, _, _>(&EmptyProvider, text)?;
                let host = session.need_with::<Hostname, _, _>(&EmptyProvider, text)?;
                self.prove(context(&service, &host).map_err(Flaw::Gss)?, None, writer)
            }
            Self::Proofs(context) => self.prove(context, input, writer),
            Self::Layers(context) => choose(context, input, writer),
            Self::Over => Err(SessionError::MechanismDone),
        }
    }
}

impl Exchange {
    fn prove(
        &mut self,
        mut context: ClientCtx,
        input: Option<&[u8]>,
        writer: &mut dyn Write,
    ) -> Result<State, SessionError> {
        if let Some(token) = context.step(input, None).map_err(Flaw::Gss)? {
            writer.write_all(&token)?;
        }
        if !context.is_complete() {
            *self = Self::Proofs(context);
        } else if context.flags().map_err(Flaw::Gss)?.contains(CtxFlags::GSS_C_MUTUAL_FLAG) {
            *self = Self::Layers(context);
        } else {
            return Err(Flaw::Unproved.into());
        }
        Ok(State::Running)
    }
}

/// Answers the server's offer: one octet of layers, three of a size.
fn choose(mut context: ClientCtx, input: Option<&[u8]>, writer: &mut dyn Write) -> Result<State, SessionError> {
    let offer = context.unwrap(input.ok_or(SessionError::InputDataRequired)?).map_err(Flaw::Gss)?;
    match *offer {
        [layers, _, _, _] if layers & NO_LAYER != 0 => {
            let answer = context.wrap(false, &[NO_LAYER, 0, 0, 0]).map_err(Flaw::Gss)?;
            writer.write_all(&answer)?;
            Ok(State::Finished(MessageSent::Yes))
        }
        [_, _, _, _] => Err(Flaw::Layers.into()),
        _ => Err(Flaw::Offer.into()),
    }
}

#[derive(Debug)]
enum Flaw {
    Gss(Gss),
    Unproved,
    Layers,
    Offer,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gss(error) => f.write_str(&crate::zookeeper::client::kerberos::words(*error)),
            Self::Unproved => f.write_str("the server has not proved who it is"),
            Self::Layers => f.write_str("the server wants every message signed or encrypted, which is for TLS to do"),
            Self::Offer => f.write_str("the server's last message makes no sense"),
        }
    }
}

impl std::error::Error for Flaw {}

impl MechanismError for Flaw {
    fn kind(&self) -> MechanismErrorKind {
        MechanismErrorKind::Protocol
    }
}

struct Ours;

impl Named for Ours {
    fn mech() -> &'static Mechanism {
        &GSSAPI
    }
}

/// The library's own has 300, and the greater is chosen.
const PRIORITY: usize = 1000;

/// Whether the library of SASL has heard of ours.
pub(crate) fn is_known() -> bool {
    MECHANISMS.iter().any(|known| std::ptr::eq(known, &raw const GSSAPI))
}

#[distributed_slice(MECHANISMS)]
pub static GSSAPI: Mechanism = Mechanism::build(
    Mechname::const_new_unchecked(b"GSSAPI"),
    PRIORITY,
    Some(|| Ok(Box::<Exchange>::default())),
    None,
    Side::Client,
    |_| Some(Matches::<Ours>::name()),
    |_| true,
);
