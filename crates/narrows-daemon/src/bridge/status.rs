//! How a bridge fares: for programs, and for Prometheus.

use narrows_core::units::{Span, Time};
use narrows_kernel::bridge::{self, Passed, Side};
use narrows_testbed::lateness::Histogram;
use narrows_wire::tunnel::Refusal;
use serde_json::{Map, Value, json};

use super::router::Router;
use super::state::Place;
use super::work::EventLoop;
use crate::failure::Failure;
use crate::metrics::{Metric, Metrics};
use crate::refused;

const SIDES: [&str; 2] = ["inside", "outside"];

/// What a process says of itself.
pub(super) fn of(work: &EventLoop, began: Time) -> Value {
    work.with_router(|router, now| {
        let mut state = machine(router);
        let edge = router.edge();
        let counters = &router.counters;
        let refused: Map<String, Value> = Refusal::ALL
            .iter()
            .map(|&refusal| (refusal.name().to_owned(), counters.refused[refusal as usize].into()))
            .collect();
        let [longest_v4, longest_v6] = router.longest(now);
        let ports: Map<String, Value> = (SIDES.iter().zip(work.ports()))
            .map(|(side, port)| {
                let counters = port.counters;
                let value = json!({"sent": counters.sent, "dropped": counters.dropped, "refused": counters.refused});
                ((*side).to_owned(), value)
            })
            .collect();
        state.extend([
            ("process".to_owned(), std::process::id().into()),
            ("sign".to_owned(), json!(router.sign())),
            ("far_sign".to_owned(), json!(router.far_sign())),
            ("up_s".to_owned(), json!(seconds(now.since(began)))),
            ("connected".to_owned(), json!(router.is_connected(now))),
            ("round_trip_us".to_owned(), edge.round_trip().as_us().into()),
            ("session_age_s".to_owned(), json!(router.session_age(now).map(seconds))),
            ("longest_packet_bytes".to_owned(), json!({"ipv4": longest_v4, "ipv6": longest_v6})),
            (
                "frames".to_owned(),
                json!({
                    "from_inside": counters.packets[0], "from_outside": counters.packets[1],
                    "untouched": counters.untouched, "clamped": counters.clamped, "too_long": counters.too_long,
                    "late": counters.late,
                    "disguised": counters.disguised, "plainly": counters.plainly, "congested": counters.congested,
                    "complaints": counters.complaints, "other_complaints": counters.other_complaints,
                    "unsealed": counters.unsealed, "suspected": counters.suspected,
                }),
            ),
            ("believed".to_owned(), counters.believed.into()),
            ("refused".to_owned(), refused.into()),
            ("ports".to_owned(), ports.into()),
            ("delay_us".to_owned(), delay(work.delay())),
            ("resident_bytes".to_owned(), json!(resident())),
        ]);
        Value::Object(state)
    })
}

/// What the machine counts.
fn machine(router: &Router) -> Map<String, Value> {
    let edge = router.edge();
    let (sent, received) = (edge.transmitted(), edge.received());
    let transmitted = json!({
        "data_packets": sent.data_packets, "marked_packets": sent.marked_packets, "marked_bytes": sent.marked_bytes.get(),
        "store_full": sent.store_full, "far_silent": sent.far_silent, "severe": sent.severe,
        "fast_repairs": sent.fast_repairs, "late_repairs": sent.late_repairs, "needless_repairs": sent.needless_repairs,
        "repaired": sent.repaired,
        "given_up": sent.given_up, "stray_acknowledgements": sent.stray_acknowledgements,
        "stored_bytes": edge.stored().get(), "store_max_bytes": sent.store_max.get(), "sessions": sent.sessions,
    });
    let received = json!({
        "marked_packets": received.marked_packets, "duplicates": received.duplicates, "strangers": received.strangers,
        "stale_greetings": received.stale_greetings, "cleared_marks": received.cleared_marks,
        "dropped_marks": received.dropped_marks,
        "held_packets": received.held_packets, "filled_holes": received.filled_holes, "late_holes": received.late_holes,
        "plain_holes": received.plain_holes, "overflows": received.overflows, "strays": received.strays, "held_bytes": edge.held().get(),
        "held_max_bytes": received.held_max.get(), "hushed": edge.hushed(),
    });
    [("transmitted".to_owned(), transmitted), ("received".to_owned(), received)].into_iter().collect()
}

fn delay(delay: &Histogram) -> Value {
    if delay.count() == 0 {
        return Value::Null;
    }
    let at = |thousandths| delay.percentile(thousandths).as_us();
    json!({"p50": at(500), "p99": at(990), "most": delay.most().as_us(), "frames": delay.count()})
}

/// Bytes of this process that are in memory.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1_024)
}

/// Everything that is known of a bridge, its process living or not.
///
/// # Errors
/// If counters cannot be read.
pub(super) fn read(place: &Place) -> Result<Value, Failure> {
    let alive = place.is_alive()?;
    let kernel = bridge::passed(&place.pins()).map_err(refused::by_kernel)?;
    let mut state = match place.told() {
        Some(Value::Object(state)) if alive => state,
        _ => Map::new(),
    };
    state.insert("namespace".to_owned(), place.inode.into());
    state.insert("netns".to_owned(), place.label.clone().into());
    state.insert("inside".to_owned(), place.inside.clone().into());
    state.insert("outside".to_owned(), place.outside.clone().into());
    state.insert("alive".to_owned(), alive.into());
    state.insert("kernel".to_owned(), kernel.map_or(Value::Null, |passed| in_kernel(&passed)));
    Ok(state.into())
}

fn in_kernel(passed: &[Passed; 2]) -> Value {
    let sides = Side::BOTH.map(|side| {
        let counts: Map<String, Value> = passed[side as usize]
            .named()
            .into_iter()
            .map(|(name, count)| (name.replace('-', "_"), count.into()))
            .collect();
        (SIDES[side as usize].to_owned(), Value::Object(counts))
    });
    Value::Object(sides.into_iter().collect())
}

const UP: Metric =
    Metric("narrows_bridge_alive", "gauge", "Whether the bridge has a process; the kernel forwards without it.");
const CONNECTED: Metric =
    Metric("narrows_bridge_connected", "gauge", "Whether the far edge answers; absent until it was asked.");
const SAME_SIGN: Metric = Metric(
    "narrows_bridge_same_sign",
    "gauge",
    "Whether both edges have the same --sign, once the far edge has said its.",
);
const ROUND_TRIP: Metric = Metric("narrows_bridge_round_trip_seconds", "gauge", "RTT to the far edge, smoothed.");
const DELAY: Metric = Metric(
    "narrows_bridge_delay_seconds",
    "gauge",
    "From a frame's arrival at this machine to its departure, over all so far, what was held back among them.",
);
const KERNEL: Metric =
    Metric("narrows_bridge_kernel_frames_total", "counter", "Frames by what the kernel did with them.");
const FRAMES: Metric = Metric("narrows_bridge_frames_total", "counter", "Frames by what the process did with them.");
const PORTS: Metric =
    Metric("narrows_bridge_sent_frames_total", "counter", "Frames that the process sent, or could not.");
const REFUSED: Metric = Metric(
    "narrows_bridge_refused_total",
    "counter",
    "What came as if from the far edge and was not believed, by reason.",
);
const SENT: Metric = Metric(
    "narrows_bridge_transmitted",
    "untyped",
    "What the machine counts of packets from inside, bytes and packets.",
);
const RECEIVED: Metric =
    Metric("narrows_bridge_received", "untyped", "What the machine counts of packets from outside, bytes and packets.");

/// The same for Prometheus.
pub(super) fn metrics(all: &[Value]) -> String {
    let mut metrics = Metrics::default();
    for state in all {
        let name = |key: &str| state[key].as_str().unwrap_or_default().to_owned();
        // Bridges of several namespaces may have interfaces of the same names.
        let bridge = [("netns", name("netns")), ("inside", name("inside")), ("outside", name("outside"))];
        let with = |more: &[(&'static str, &str)]| {
            let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
            bridge.iter().cloned().chain(more).collect::<Vec<_>>()
        };
        let flag = |value: &Value| if value == true { 1.0 } else { 0.0 };
        metrics.add(&UP, &with(&[]), flag(&state["alive"]));
        // An idle edge router has not asked yet.
        if state["alive"] != true || !state["connected"].is_null() {
            metrics.add(&CONNECTED, &with(&[]), flag(&state["connected"]));
        }
        if let Some(far) = state["far_sign"].as_u64() {
            metrics.add(&SAME_SIGN, &with(&[]), flag(&(state["sign"].as_u64().unwrap_or_default() == far).into()));
        }
        let micros = |value: &Value| value.as_f64().map(|us| us / 1e6);
        if let Some(seconds) = micros(&state["round_trip_us"]) {
            metrics.add(&ROUND_TRIP, &with(&[]), seconds);
        }
        for (quantile, key) in [("0.5", "p50"), ("0.99", "p99"), ("1", "most")] {
            if let Some(seconds) = micros(&state["delay_us"][key]) {
                metrics.add(&DELAY, &with(&[("quantile", quantile)]), seconds);
            }
        }
        for side in SIDES {
            for (what, metric) in [("kernel", &KERNEL), ("ports", &PORTS)] {
                for (outcome, count) in entries(&state[what][side]) {
                    metrics.add(metric, &with(&[("side", side), ("outcome", outcome)]), count);
                }
            }
        }
        for (what, label, metric) in [
            ("frames", "outcome", &FRAMES),
            ("refused", "reason", &REFUSED),
            ("transmitted", "what", &SENT),
            ("received", "what", &RECEIVED),
        ] {
            for (name, count) in entries(&state[what]) {
                metrics.add(metric, &with(&[(label, name)]), count);
            }
        }
    }
    metrics.text()
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, f64)> {
    value.as_object().into_iter().flatten().filter_map(|(name, count)| Some((name.as_str(), count.as_f64()?)))
}

#[allow(clippy::cast_precision_loss, reason = "for reading")]
fn seconds(span: Span) -> f64 {
    span.as_ns() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(netns: &str) -> Value {
        json!({
            "netns": netns, "inside": "eth1", "outside": "eth0", "alive": true, "connected": true,
            "round_trip_us": 10, "delay_us": {"p50": 1, "p99": 2, "most": 3}, "kernel": {"inside": {"diverted": 1}},
            "frames": {"late": 0}, "refused": {"replayed": 0}, "transmitted": {"repaired": 1}, "received": {"strays": 0},
        })
    }

    #[test]
    fn signs_are_the_same_or_not_or_not_known() {
        for (near, far, same) in [
            (json!(44), json!(44), Some(1)),
            (json!(44), json!(0), Some(0)),
            (Value::Null, json!(44), Some(0)),
            (Value::Null, json!(0), Some(1)),
            (json!(44), Value::Null, None),
        ] {
            let mut state = state("d");
            (state["sign"], state["far_sign"]) = (near, far);
            let text = metrics(&[state]);
            let series = "narrows_bridge_same_sign{netns=\"d\",inside=\"eth1\",outside=\"eth0\"} ";
            let said = text.lines().find_map(|line| line.strip_prefix(series)?.parse().ok());
            assert_eq!((said, text.contains("same_sign")), (same, same.is_some()), "{text}");
        }
    }

    #[test]
    fn alert_rules_name_metrics_that_there_are() {
        let mut state = state("a");
        state["far_sign"] = 44.into();
        let text = metrics(&[state]);
        let rules = include_str!("../../packaging/monitoring/alerts.yml");
        let words = rules.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let named: std::collections::BTreeSet<&str> =
            words.filter(|word| word.starts_with("narrows_bridge_")).collect();
        assert!(named.contains("narrows_bridge_same_sign"), "{named:?}");
        for name in named {
            assert!(text.contains(&format!("\n{name}{{")), "{name}: {text}");
        }
    }

    #[test]
    fn bridges_of_two_namespaces_have_series_of_their_own() {
        let mut idle = state("c");
        idle["connected"] = Value::Null;
        let without = metrics(&[idle.clone()]);
        assert!(without.contains("narrows_bridge_alive") && !without.contains("narrows_bridge_connected"), "{without}");
        idle["alive"] = false.into();
        assert!(
            metrics(&[idle]).contains("narrows_bridge_connected{netns=\"c\",inside=\"eth1\",outside=\"eth0\"} 0\n")
        );
        let text = metrics(&[state("a"), state("b")]);
        let series: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once("} "))
            .map(|it| it.0)
            .collect();
        let once: std::collections::BTreeSet<&str> = series.iter().copied().collect();
        assert_eq!((series.len(), once.len()), (22, 22), "{text}");
        assert!(text.contains("narrows_bridge_alive{netns=\"b\",inside=\"eth1\",outside=\"eth0\"} 1\n"), "{text}");
    }
}
