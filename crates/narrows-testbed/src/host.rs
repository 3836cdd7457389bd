//! A host of the plan: a namespace with one device, and a kernel told to behave alike in every run.

use std::io;

use narrows_core::tcp::profile::Profile;
use narrows_core::units::Bytes;
use rustix::io::Errno;

use crate::namespace::{Claim, Namespace, set_parameter};
use crate::tun::Tun;

/// What of a host's kernel a plan decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Room for what was received and what was not yet sent, each connection's, bytes. Buffers are as large from the start on, so
    /// that neither a window nor a program that had to wait for a processor holds a connection back.
    pub buffer: Bytes,
    /// Whether a window shrinks after idling longer than the timeout [RFC 5681 §4.1].
    pub restart_after_idle: bool,
    /// Whether connections ask for classic ECN; all agree to it where they are asked.
    pub ecn: bool,
}

impl Default for Parameters {
    /// As [`Profile::LINUX_6`].
    fn default() -> Parameters {
        Parameters::of(&Profile::LINUX_6)
    }
}

impl Parameters {
    /// Those of a profile. The rest of a profile is the kernel's own.
    pub const fn of(profile: &Profile) -> Parameters {
        Parameters {
            buffer: Bytes::new(profile.receive_buffer),
            restart_after_idle: profile.restart_after_idle,
            ecn: false,
        }
    }
}

/// Makes a host, by its node's index and name.
///
/// # Errors
/// What the kernel says.
pub fn make(
    claim: &Claim,
    (host, name): (u32, &str),
    mtu: u16,
    parameters: &Parameters,
) -> Result<(Namespace, Tun), Errno> {
    let namespace = Namespace::create(claim, name)?;
    let tun = namespace.enter(|| {
        prepare(parameters).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Tun::open(host, mtu)
    })?;
    Ok((namespace, tun))
}

/// Parameters of the namespace that the calling thread is in.
fn prepare(parameters: &Parameters) -> io::Result<()> {
    // The kernel's own counters are signed 32-bit.
    let buffer = parameters.buffer.get().clamp(1 << 16, 1 << 30);
    let buffers = format!("4096 {buffer} {buffer}");
    let flag = |value: bool| if value { "1" } else { "0" };
    for (path, value) in [
        ("net/ipv4/tcp_rmem", buffers.as_str()),
        ("net/ipv4/tcp_wmem", &buffers),
        ("net/ipv4/tcp_slow_start_after_idle", flag(parameters.restart_after_idle)),
        // 2: agree to ECN where the other end asks.
        ("net/ipv4/tcp_ecn", if parameters.ecn { "1" } else { "2" }),
        // A SYN that was lost is retransmitted as it was: the kernel would leave ECN out, and with it what is compared.
        ("net/ipv4/tcp_ecn_fallback", "0"),
        // What one connection learned is not to change the next.
        ("net/ipv4/tcp_no_metrics_save", "1"),
        ("net/ipv4/ip_local_port_range", "20000 65535"),
    ] {
        set_parameter(path, value)?;
    }
    // A kernel without IPv6 has none of these: nothing is to be told, then. They keep it from talking by itself.
    for (path, value) in [
        ("net/ipv6/conf/default/addr_gen_mode", "1"),
        ("net/ipv6/conf/default/router_solicitations", "0"),
        ("net/ipv6/conf/default/accept_dad", "0"),
    ] {
        match set_parameter(path, value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
