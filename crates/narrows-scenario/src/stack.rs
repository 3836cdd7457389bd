//! A named profile with overrides becomes a profile that a host can run.

use narrows_core::tcp::near_source;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Bytes, Packets, Rate, Span};

use crate::error::{Judged, Problem};
use crate::experiment::host::{CustomOffload, Host, HostPort, NearSource, ReactionPoint, ReceiveOffload, Start};
use crate::experiment::located::Located;
use crate::experiment::traffic::Traffic;
use narrows_plan::{Graph, Role, Traffic as Planned};

/// What `host` says over `base`, judged.
pub(crate) fn resolve(host: &Host, base: Profile) -> Judged<Profile> {
    let base = match &host.profile {
        None => base,
        Some(name) => match Profile::NAMED.iter().find(|(known, _)| *known == name.value) {
            Some((_, profile)) => *profile,
            None => {
                let known = Profile::NAMED.iter().map(|(known, _)| known);
                return Err(Problem::unknown_name("profile", name, known).at(&name.span));
            }
        },
    };
    for (what, written) in [("ack-every", &host.ack_every), ("offload-segments", &host.offload_segments)] {
        in_range(what, written.as_ref(), |value| (1..=64).contains(&value), "1", "64")?;
    }
    if let Some(window) = &host.initial_window {
        let range = Packets::new(1)..=Packets::new(65_535);
        refuse_unless(range.contains(&window.value.0), "initial-window", window, window.value.0, "1pkt", "65535pkt")?;
    }
    for (what, written) in [("min-rto", &host.min_rto), ("initial-rto", &host.initial_rto), ("max-rto", &host.max_rto)]
    {
        if let Some(span) = written {
            let range = Span::from_us(1)..=Span::from_secs(3_600);
            refuse_unless(range.contains(&span.value.0), what, span, span.value.0, "1us", "3600s")?;
        }
    }
    if let Some(pacing) = &host.host_pacing {
        for share in [&pacing.slow_start, &pacing.avoidance] {
            refuse_unless((1..=1_000).contains(&share.value), "host-pacing", share, share.value, "1", "1000")?;
        }
    }
    if let Some(buffer) = &host.receive_buffer {
        let bytes = buffer.value.0.get();
        // The offered window has 16 bits and is scaled by 14 at most [RFC 7323 §2.3].
        refuse_unless((3_000..=1 << 30).contains(&bytes), "receive-buffer", buffer, buffer.value.0, "3KB", "1GiB")?;
    }
    if let Some(Located { value: ReceiveOffload::Custom(custom), .. }) = &host.receive_offload {
        judge_offload(custom)?;
    }
    for written in [&host.near_source, &host.nic_limiter] {
        if let Some(Located { value: NearSource::Custom(custom), .. }) = written {
            judge(custom)?;
        }
    }
    if let Some(at) = &host.initial_rtt_variance {
        refuse_unless(at.value.0 <= Span::from_secs(60), "initial-rtt-variance", at, at.value.0, "0s", "60s")?;
    }
    if let Some((at, buffers)) = host.adaptive_buffers.as_ref().and_then(|at| Some((at, at.value.resolved()?))) {
        // 3 KB hold two of Ethernet's packets; the offered window counts KiB in 16 bits.
        let range = Bytes::new(3_000)..=Bytes::new(65_535 << 10);
        refuse_unless(range.contains(&buffers.first), "first", at, buffers.first, "3KB", "67107840B")?;
        let least = buffers.first.to_string();
        let in_order = (buffers.first..=*range.end()).contains(&buffers.most);
        refuse_unless(in_order, "most", at, buffers.most, &least, "67107840B")?;
    }
    if let Some((at, cache)) = host.host_cache.as_ref().and_then(|at| Some((at, at.value.resolved()?))) {
        let least = Packets::new(1)..=cache.max_window;
        let most = cache.max_window.to_string();
        refuse_unless(least.contains(&cache.min_window), "min-window", at, cache.min_window, "1pkt", &most)?;
    }
    let profile = host.over(base);
    if let (Some(at), Some(near_source::Start::Recent(_))) =
        (&host.nic_limiter, profile.nic_limiter.map(|point| point.start))
    {
        let sentence = "an adapter's limiter begins at its first notification, and knows no recent rate";
        return Err(Problem::new(sentence, "`standard`, or `custom` with `start = \"line-rate\"`").at(&at.span));
    }
    if let (true, Some(at)) = (profile.min_rto > profile.max_rto, host.min_rto.as_ref().or(host.max_rto.as_ref())) {
        let sentence = format!("min-rto is {}, above max-rto of {}", profile.min_rto, profile.max_rto);
        return Err(Problem::new(sentence, "lower min-rto").at(&at.span));
    }
    Ok(profile)
}

/// The named profile that these hosts have, if one is named here or there.
pub(crate) fn named<'a>(host: &'a Host, topology: &'a Host) -> Option<&'a str> {
    host.profile.as_ref().or(topology.profile.as_ref()).map(|name| name.value.as_str())
}

/// Refuses a floor of a limiter above the rate of a host's own link: what falls to it never bites. And queues for each
/// connection at hosts that may be paused.
pub(crate) fn fits(host: &Host, network: &Graph) -> Judged<()> {
    if let Some(port) = host.port.as_ref().filter(|port| port.value == HostPort::Fq) {
        let mut own = network.links.iter().zip(network.can_be_paused()).filter(|(link, _)| link.role == Role::Host);
        if own.any(|(_, can_be_paused)| can_be_paused) {
            let sentence = "a host's port that switches may pause has one queue";
            return Err(Problem::new(sentence, "`port = \"fifo\"`, or no `flow-control`").at(&port.span));
        }
    }
    for written in [&host.near_source, &host.nic_limiter] {
        let Some(Located { value: NearSource::Custom(custom), .. }) = written else { continue };
        let Some(floor) = &custom.floor else { continue };
        let slowest = network.links.iter().filter(|link| link.role == Role::Host).map(|link| link.rate).min();
        let most = slowest.unwrap_or(floor.value.0);
        refuse_unless(floor.value.0 <= most, "floor", floor, floor.value.0, "8Kbps", &most.to_string())?;
    }
    Ok(())
}

/// Refuses kinds of traffic whose hosts' adapters would differ: all that a host sends to another has one limiter, and all
/// that it receives one queue.
pub(crate) fn shares_adapters<'a>(
    mut traffic: impl Iterator<Item = &'a Planned>,
    written: &Located<Traffic>,
) -> Judged<()> {
    let Some(first) = traffic.next() else { return Ok(()) };
    for other in traffic {
        let same = [
            ("nic-limiter", other.profile.nic_limiter == first.profile.nic_limiter),
            ("receive-offload", other.profile.receive_offload == first.profile.receive_offload),
        ];
        if let Some((key, _)) = same.iter().find(|(_, same)| !same) {
            let sentence = format!("traffic of one network has different values of {key}");
            let help = "a host has one adapter: state it in the topology's `host`, or the same for all traffic";
            return Err(Problem::new(sentence, help).at(&written.span));
        }
    }
    Ok(())
}

/// Refuses polls that would merge or take nothing, and waits that no adapter can be told.
fn judge_offload(custom: &CustomOffload) -> Judged<()> {
    for (what, written) in [("segments", &custom.segments), ("flows", &custom.flows)] {
        in_range(what, written.as_ref(), |value| (1..=64).contains(&value), "1", "64")?;
    }
    if let Some(budget) = &custom.budget {
        refuse_unless(budget.value >= 1, "budget", budget, budget.value, "1", "65535")?;
    }
    for (what, written) in [("interrupt-gap", &custom.interrupt_gap), ("interrupt-delay", &custom.interrupt_delay)] {
        if let Some(span) = written {
            refuse_unless(span.value.0 <= Span::from_ms(10), what, span, span.value.0, "0s", "10ms")?;
        }
    }
    Ok(())
}

/// Refuses cycles that would never or always be over, and rates that are none.
fn judge(custom: &ReactionPoint) -> Judged<()> {
    if let Some(cycle) = &custom.byte_cycle {
        let range = Bytes::new(1_500)..=Bytes::new(1 << 40);
        refuse_unless(range.contains(&cycle.value.0), "byte-cycle", cycle, cycle.value.0, "1.5KB", "1TB")?;
    }
    let recent = match &custom.start {
        Some(Start::Recent(span)) => Some(span),
        _ => None,
    };
    for (what, written) in
        [("timer", custom.timer.as_ref()), ("forget", custom.forget.as_ref()), ("start's recent", recent)]
    {
        if let Some(span) = written {
            let range = Span::from_us(1)..=Span::from_secs(60);
            refuse_unless(range.contains(&span.value.0), what, span, span.value.0, "1us", "60s")?;
        }
    }
    for (what, written) in
        [("active", &custom.active), ("hyper-active", &custom.hyper_active), ("floor", &custom.floor)]
    {
        if let Some(rate) = written {
            let range = Rate::from_bps(8_000)..=Rate::from_gbps(100_000);
            refuse_unless(range.contains(&rate.value.0), what, rate, rate.value.0, "8Kbps", "100Tbps")?;
        }
    }
    Ok(())
}

fn in_range(
    what: &str,
    written: Option<&Located<u8>>,
    holds: impl Fn(u8) -> bool,
    least: &str,
    most: &str,
) -> Judged<()> {
    written.map_or(Ok(()), |at| refuse_unless(holds(at.value), what, at, at.value, least, most))
}

fn refuse_unless<T>(
    holds: bool,
    what: &str,
    at: &Located<T>,
    value: impl std::fmt::Display,
    least: &str,
    most: &str,
) -> Judged<()> {
    if holds {
        return Ok(());
    }
    Err(Problem::out_of_range(what, value, least, most).at(&at.span))
}
