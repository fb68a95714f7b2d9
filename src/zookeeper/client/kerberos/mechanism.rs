//! The client's side of SASL GSSAPI (RFC 4752) with mutual authentication and nothing else: `ZooKeeper` neither signs
//! nor encrypts what follows.
//!
//! The SASL library's own mechanism requests every feature, so it delegates a forwardable ticket to the server (and
//! asks the key distribution centre for it at every login). Ours takes its place (see [`GSSAPI`]), and does not
//! delegate.

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

/// The security context with which a login to this server begins.
pub(crate) fn context(service: &str, host: &str) -> Result<ClientCtx, Gss> {
    let (server, credentials) = (super::name_of(service, host)?, crate::zookeeper::client::kerberos::credentials()?);
    Ok(ClientCtx::new(Some(credentials), server, WANTED, Some(&GSS_MECH_KRB5)))
}

#[derive(Default)]
enum Exchange {
    #[default]
    Start,
    /// Both sides authenticate.
    Proofs(ClientCtx),
    /// Both sides negotiate signing and encryption.
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

/// Answers the server's offer: one octet of layers, three octets of a size.
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

/// The SASL library's own mechanism has 300; the highest priority is chosen.
const PRIORITY: usize = 1000;

/// Whether our mechanism is registered with the SASL library.
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
