//! Vouching: whether the command lives on promises while `ZooKeeper` is away, how long, and where other hosts ask this one.
//! Opens no socket.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::config::error::ConfigError;
use crate::config::source::layers::Layers;
use crate::config::source::setting::Setting;
use crate::config::value::duration::{self, Zero};
use crate::core::settings::{Guarantee, Recipe};
use crate::core::vouching::{LIMIT_LEASES, LIMIT_LONGEST};
use crate::observe::words;

/// `--vouch` and what belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vouch {
    /// Where this host is asked; port 0: any. `None`: the address towards the first server, and any port.
    pub address: Option<SocketAddr>,
    /// F, from two leases to 24 hours.
    pub limit: Duration,
}

/// What it must agree with.
pub struct Others {
    /// L as requested.
    pub lease: Duration,
    pub guarantee: Guarantee,
    pub recipe: Recipe,
    pub leaders: u16,
    pub is_shared: bool,
}

/// # Errors
///
/// A value that is none, one without `--vouch`, or a combination that is not safe.
pub fn read(layers: &Layers, others: &Others) -> Result<Option<Vouch>, ConfigError> {
    let (address, limit) = (layers.given("vouch-address")?, layers.required("vouch-limit")?);
    let length = duration::parse(&limit, Zero::Meaningful)?;
    let place = address.as_ref().map(place).transpose()?;
    if !layers.flag("vouch")? {
        let limit = Some(limit).filter(Setting::is_given);
        return match address.or(limit) {
            Some(setting) => Err(setting.refused("requires --vouch; add that, or leave this out")),
            None => Ok(None),
        };
    }
    agree(others).map_err(|complaint| ConfigError::usage(layers.name_of("vouch"), complaint))?;
    let shortest = LIMIT_LEASES * others.lease;
    if (shortest..=LIMIT_LONGEST).contains(&length) {
        return Ok(Some(Vouch { address: place, limit: length }));
    }
    Err(limit.unworkable(format_args!(
        "does not fit: the limit is at least {} = {LIMIT_LEASES} x {} lease, and at most {}; write one between them",
        words::least(shortest),
        words::length(others.lease),
        words::length(LIMIT_LONGEST)
    )))
}

/// Who takes over without our lease cannot promise to hold back from it.
fn agree(others: &Others) -> Result<(), &'static str> {
    if others.guarantee == Guarantee::AtLeastOne {
        return Err(
            "cannot be combined with --guarantee at-least-one, under which others start the command although it may \
                    still run here; leave one of them out",
        );
    }
    if others.is_shared {
        return Err(
            "cannot be combined with --election-path, because other libraries promise nothing; leave one of them \
                    out",
        );
    }
    if others.recipe == Recipe::Single {
        return Err(
            "cannot be combined with --recipe single, which has no queue of those who could take over; leave one \
                    of them out",
        );
    }
    if others.leaders > 1 {
        return Err(
            "cannot be combined with several --leaders, because a promise is for one leader; leave one of them out",
        );
    }
    Ok(())
}

/// `ADDRESS` or `ADDRESS:PORT`: one that other hosts can send to.
fn place(setting: &Setting) -> Result<SocketAddr, ConfigError> {
    const EXAMPLES: &str = "write an address of this host that the others reach, like 10.0.0.7, 10.0.0.7:4711 or \
                            [2001:db8::7]:4711";
    let text = setting.text.as_str();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let place = text.parse().or_else(|_| bare.parse().map(|address: IpAddr| SocketAddr::new(address, 0)));
    let place: SocketAddr = place.map_err(|_| setting.refused(format_args!("is not an address; {EXAMPLES}")))?;
    match place.ip() {
        address if address.is_unspecified() => Err(setting
            .refused(format_args!("is every address of this host, and no other host can send to that; {EXAMPLES}"))),
        address if address.is_multicast() || is_broadcast(address) => {
            Err(setting.refused(format_args!("is the address of many hosts; {EXAMPLES}")))
        }
        _ => Ok(place),
    }
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.is_broadcast())
}
