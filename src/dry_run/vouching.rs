//! The rows about an outage that is lived through on promises.

use super::service::Rows;
use crate::config::Config;
use crate::core::lease::wait_for;
use crate::core::time::Timestamp;
use crate::observe::words::length;

/// None without `--vouch`.
pub fn rows(config: &Config) -> Rows {
    let Some(vouch) = config.vouch else { return Rows::new() };
    let (timing, limit) = (&config.requested_timing, vouch.limit);
    let ridden_out = timing.vouched_deadlines(Timestamp::NEVER, Timestamp::ZERO, limit).stop_at;
    let (usable, binds, reserve) = (timing.usable(), wait_for(timing.lease), timing.reserve);
    let silence = usable.saturating_sub(reserve).saturating_sub(timing.renewal_interval);
    // The impatient wait for 2ρL longer than the leader lives, and that one ends 2G before.
    let gap = reserve + 2 * binds.saturating_sub(timing.lease) + 2 * timing.slack;
    let alone = (config.session_timeout + 3 * timing.lease).saturating_sub(reserve);
    let server = config.servers.split(',').next().unwrap_or_default();
    let address = match vouch.address {
        None => format!("the address of this host towards {server}, and any port: write both down for a firewall"),
        Some(place) if place.port() == 0 => format!("{}, any port: write one for a firewall", place.ip()),
        Some(place) => place.to_string(),
    };
    vec![
        (
            "ridden out",
            format!("up to {}, from the last acknowledged renewal", length(Timestamp::ZERO.until(ridden_out))),
        ),
        ("on condition that", "every host that could take over promises to hold back, again and again".to_owned()),
        (
            "one promise",
            format!(
                "lasts for {} from the request, and holds the other host back for {}",
                length(usable),
                length(binds)
            ),
        ),
        ("a needed host is silent", format!("the command is stopped after {}", length(silence))),
        (
            "this host alone cut off",
            format!("leads for up to {}, then the next one after {}", length(alone), length(gap)),
        ),
        (
            "all asked die with us",
            format!("the next leader waits for {}, not {}", length(wait_for(limit)), length(binds)),
        ),
        ("other hosts reach us at", format!("UDP {address}")),
    ]
}
