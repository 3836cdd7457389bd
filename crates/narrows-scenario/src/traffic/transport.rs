//! What a traffic's flows run over, and what does not go with it.

use std::ops::Range;

use narrows_core::component::Settings;
use narrows_core::packet::Mtu;
use narrows_core::tcp::profile::Profile;
use narrows_core::transport::datagram::SendRate;
use narrows_core::transport::{SPECS, Transport};
use narrows_core::units::Rate;
use narrows_plan::{ControllerChoice, Traffic};

use super::{KEYS, Scene, apps};
use crate::controller;
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::traffic::{Connections, Traffic as Written};

/// The transport that an entry writes; TCP by default.
pub(super) fn resolve(written: &Located<Written>, profile: Profile, scene: &Scene<'_>) -> Judged<Transport> {
    let Some(at) = &written.transport else { return Ok(Transport::Tcp) };
    let choice = &at.value.0;
    let Some(spec) = SPECS.iter().find(|spec| spec.name == choice.name) else {
        let span = if choice.name_span.is_empty() { &at.span } else { &choice.name_span };
        return Err(Problem::unknown_name("transport", &choice.name, SPECS.iter().map(|spec| spec.name)).at(span));
    };
    let values = controller::values(spec.name, spec.parameters, choice, &at.span)?;
    let transport = Transport::new(spec.name, &Settings::new(spec.parameters, &values)).expect("it is in the registry");
    match transport {
        Transport::Tcp => {}
        Transport::Datagram(_) => refuse_connections(written)?,
        Transport::Rdma(_) => refuse_handshakes(written)?,
    }
    if !transport.is_tcp() && profile != scene.profile {
        let sentence = format!("`host` states what TCP does, and this traffic's transport is `{}`", spec.name);
        return Err(Problem::new(sentence, "remove it").at(&written.span));
    }
    if let (Transport::Datagram(_), Some(place)) = (transport, apps(written).position(|there| there)) {
        // Between `arrivals`, `long` and `flows` stand the applications.
        let sentence = format!(
            "`{}` needs a transport that delivers every message, and `datagram` may lose some",
            KEYS[2 + place]
        );
        let help = "take `transport` away, or let flows come by `arrivals`, `long` or `flows`";
        return Err(Problem::new(sentence, help).at(&written.span));
    }
    Ok(transport)
}

fn span<T>(key: &'static str, at: Option<&Located<T>>) -> Option<(&'static str, Range<usize>)> {
    at.map(|at| (key, at.span.clone()))
}

/// Refuses what connections of RDMA do not have: a handshake, and a near-source loop.
fn refuse_handshakes(written: &Located<Written>) -> Judged<()> {
    if let Some(near_source) = &written.host.near_source {
        let sentence = "with `transport = \"rdma\"`: adapters of RDMA do not listen to near-source switches";
        return Err(Problem::not_here("host.near-source", sentence).at(&near_source.span));
    }
    match &written.connections {
        Some(said) if matches!(said.value, Connections::Fresh) => {
            let sentence = "connections of RDMA are set up before they are used, without a handshake";
            Err(Problem::new(sentence, "take `connections` away, or set `\"fresh-established\"`").at(&said.span))
        }
        _ => Ok(()),
    }
}

/// The controller that takes notifications, in place of marks.
const NOTIFIED: &str = "dcqcn";

/// Refuses a controller that reads what TCP alone measures, or that is in a file.
pub(super) fn judge_controller(
    transport: Transport,
    controller: &ControllerChoice,
    written: &Located<Written>,
    scene: &Scene<'_>,
) -> Judged<()> {
    let Transport::Rdma(config) = transport else { return Ok(()) };
    let spec = scene.controllers.iter().find(|spec| spec.name == controller.name);
    let sentence = if controller.program.is_some() {
        "controllers in files run over TCP alone".to_owned()
    } else if spec.is_some_and(|spec| spec.needs_delivery_rate) {
        format!("`{}` reads delivery rates, which TCP alone measures", controller.name)
    } else if config.cnp_interval.is_some() && controller.name != NOTIFIED {
        let sentence =
            format!("`{}` takes no notifications, which `cnp-interval` sends in place of marks", controller.name);
        let at = written.transport.as_ref().map_or(&written.span, |at| &at.span);
        return Err(Problem::new(sentence, format!("take `cnp-interval` away: it is for `{NOTIFIED}`")).at(at));
    } else {
        return Ok(());
    };
    let at = written.transport.as_ref().map_or(&written.span, |at| &at.span);
    Err(Problem::new(sentence, "take `transport` away, or choose another controller, such as `dcqcn`").at(at))
}

/// Refuses what datagrams do not have: a controller and a connection.
fn refuse_connections(written: &Located<Written>) -> Judged<()> {
    let tcp = [
        span("cc", written.cc.as_ref()),
        span("ecn", written.ecn.as_ref()),
        span("connections", written.connections.as_ref()),
        span("request", written.request.as_ref()),
        span("host.near-source", written.host.near_source.as_ref()),
    ];
    if let Some((key, at)) = tcp.into_iter().flatten().next() {
        return Err(Problem::not_here(key, "with `transport = { datagram = … }`: it is TCP's").at(&at));
    }
    Ok(())
}

/// Refuses a rate that a sender's link does not have, or that sends nothing.
pub(super) fn fits(traffic: &[Traffic], written: &Located<Written>, scene: &Scene<'_>) -> Judged<()> {
    let Some(at) = &written.transport else { return Ok(()) };
    let line_rate = |host: u32| scene.graph.links.iter().find(|link| link.from == host).map(|link| link.rate);
    for entry in traffic {
        let Transport::Datagram(config) = entry.transport else { continue };
        let mut senders = entry.pattern.sources();
        senders.sort_unstable();
        senders.dedup();
        for host in senders {
            let line = line_rate(host).unwrap_or_default();
            let rate = config.rate(line);
            let name = scene.name(host);
            if rate > line {
                let sentence = format!("flows of `{name}` send at {rate}, and its link has {line}");
                return Err(Problem::new(sentence, "lower `rate`, or state a share such as \"50 %\"").at(&at.span));
            }
            if rate == Rate::default() {
                return Err(Problem::new(format!("flows of `{name}` send nothing"), "raise `rate`").at(&at.span));
            }
        }
    }
    Ok(())
}

/// The rate at which each flow of an entry sends from `host`, if it is its transport's to say, bit/s.
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53 bit/s")]
pub(crate) fn own_rate(traffic: &Traffic, graph: &narrows_plan::Graph, host: u32) -> Option<f64> {
    let Transport::Datagram(config) = traffic.transport else { return None };
    if let SendRate::Fixed(rate) = config.rate {
        return Some(rate.as_bps() as f64);
    }
    let link = graph.links.iter().find(|link| link.from == host)?;
    Some(config.rate(link.rate).as_bps() as f64)
}

/// Payload and bytes on the wire of a full packet of this traffic.
pub(crate) fn full_packet(traffic: &Traffic, mtu: Mtu) -> (f64, f64) {
    #[expect(clippy::cast_precision_loss, reason = "packets are below 2^53 bytes")]
    (f64::from(traffic.transport.payload(mtu)), mtu.frame().get() as f64)
}
