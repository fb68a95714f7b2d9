//! `--priority spread`: a rank for each host in each election, so that the leaders of many elections spread over the
//! hosts. Every host computes its own rank from two names; nobody has to be asked.
//!
//! The highest rank leads first, as in highest random weight (rendezvous) hashing: when a host goes, its elections
//! spread over those that stay, and no other election moves.
//!
//! Never: another result in another version. Hosts of several versions take part in one election.

/// Ranks are from 1 to this. So a host with a rank comes before all without a priority.
pub const RANKS: u16 = 999;

/// FNV-1a with 64 bits.
const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The rank of a host in the election with this znode: FNV-1a of the path (with its chroot), a zero byte and the host
/// name, mixed by `fmix64` of `MurmurHash3`, modulo 999, plus 1.
pub fn rank(path: &str, host: &str) -> u16 {
    let text = path.bytes().chain([0]).chain(host.bytes());
    let hash = text.fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    let rank = mixed(hash) % u64::from(RANKS) + 1;
    u16::try_from(rank).unwrap_or(RANKS)
}

/// Without it, the ranks of hosts whose names differ in the last letter only would lie at fixed distances, and one of
/// these hosts would lead most elections.
const fn mixed(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by another program.
    #[test]
    fn ranks_never_change() {
        let known = [
            ("/zk-leader-run/nightly", "node1", 548),
            ("/zk-leader-run/nightly", "node2", 988),
            ("/zk-leader-run/nightly", "node3", 307),
            ("/chroot/zk-leader-run/größe", "db1.example.org", 475),
            ("", "", 820),
        ];
        for (path, host, expected) in known {
            assert_eq!(rank(path, host), expected, "{path} {host}");
        }
    }

    /// A thousand elections: each of three hosts leads a third, and of ten a tenth, within a third of that.
    #[test]
    fn leaders_spread_evenly_over_hosts_whose_names_are_alike() {
        for hosts in [3_usize, 10] {
            let mut led = vec![0_usize; hosts];
            for election in 0..1000 {
                let path = format!("/zk-leader-run/job-{election}");
                let first = (0..hosts).max_by_key(|host| rank(&path, &format!("node{host}"))).unwrap();
                led[first] += 1;
            }
            let fair = 1000 / hosts;
            assert!(led.iter().all(|count| count.abs_diff(fair) <= fair / 3), "{led:?}");
        }
    }
}
