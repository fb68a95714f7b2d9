//! Who may do what: `PrepRequestProcessor.fixupACL` and `ZooKeeperServer.checkACL`.

use super::protocol::{ADMIN, Acl, Code, Id};

/// Whether one of these identities has one of these permissions.
pub fn check(acl: &[Acl], permissions: i32, who: &[Id]) -> Result<(), Code> {
    let is_super = who.iter().any(|id| id.scheme == "super");
    let granted = |entry: &Acl| entry.permissions & permissions != 0 && matches(&entry.id, who);
    if acl.is_empty() || is_super || acl.iter().any(granted) { Ok(()) } else { Err(Code::NoAuth) }
}

fn matches(wanted: &Id, who: &[Id]) -> bool {
    let same = |id: &Id| match wanted.scheme.as_str() {
        "ip" => id.scheme == "ip" && is_in(&id.id, &wanted.id),
        _ => id == wanted,
    };
    (wanted.scheme == "world" && wanted.id == "anyone") || who.iter().any(same)
}

/// The ACL as a znode keeps it: `auth` stands for who the client is.
pub fn fix_up(acl: &[Acl], who: &[Id]) -> Result<Vec<Acl>, Code> {
    let mut fixed = Vec::new();
    let mut seen = Vec::new();
    for entry in acl {
        if seen.contains(&entry) {
            continue;
        }
        seen.push(entry);
        match entry.id.scheme.as_str() {
            "auth" => {
                let proven: Vec<&Id> = who.iter().filter(|id| id.scheme != "ip").collect();
                if proven.is_empty() {
                    return Err(Code::InvalidAcl);
                }
                fixed.extend(proven.into_iter().map(|id| Acl { permissions: entry.permissions, id: id.clone() }));
            }
            _ if is_valid(&entry.id) => fixed.push(entry.clone()),
            _ => return Err(Code::InvalidAcl),
        }
    }
    if fixed.is_empty() { Err(Code::InvalidAcl) } else { Ok(fixed) }
}

/// What a client without the right to administer sees of an ACL.
pub fn as_seen_by(acl: &[Acl], who: &[Id]) -> Vec<Acl> {
    if check(acl, ADMIN, who).is_ok() {
        return acl.to_vec();
    }
    let masked = |entry: &Acl| match (entry.id.scheme.as_str(), entry.id.id.split_once(':')) {
        ("digest", Some((user, _))) => Acl::new(entry.permissions, "digest", &format!("{user}:x")),
        _ => entry.clone(),
    };
    acl.iter().map(masked).collect()
}

fn is_valid(id: &Id) -> bool {
    match id.scheme.as_str() {
        "world" => id.id == "anyone",
        "digest" => id.id.trim_end_matches(':').split(':').count() == 2,
        "ip" => network(&id.id).is_some(),
        "sasl" | "x509" => true,
        _ => false,
    }
}

fn is_in(address: &str, net: &str) -> bool {
    let (Some((address, _)), Some((net, bits))) = (network(address), network(net)) else { return false };
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    address & mask == net & mask
}

/// `10.1.2.3` or `10.0.0.0/8`.
fn network(text: &str) -> Option<(u32, u32)> {
    let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
    let bits = bits.parse().ok().filter(|bits| *bits <= 32)?;
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    Some((address.into(), bits))
}
