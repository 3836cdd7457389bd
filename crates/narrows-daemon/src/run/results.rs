//! A run's files.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow_ipc::writer::StreamWriter;
use narrows_plan::Plan;
use narrows_results::tables::TABLES;
use narrows_testbed::Outcome;
use narrows_testbed::lateness::Histogram;
use narrows_testbed::near_source::Heard;
use serde_json::{Value as Json, json};

use super::{Backend, Results};
use crate::failure::Failure;
use crate::sources;

/// The tables and the manifest.
pub(super) fn of(
    plan: &Plan,
    seed: u64,
    (backend, controllers): (Backend, &BTreeMap<String, String>),
    outcome: &Outcome,
    took: Duration,
) -> Result<Results, Failure> {
    let mut files = Vec::new();
    for name in TABLES.map(|table| table.name) {
        let table = outcome.table(name, plan).expect("each of these names has a table");
        let mut bytes = Vec::new();
        let written = StreamWriter::try_new(&mut bytes, &table.schema())
            .and_then(|mut writer| writer.write(&table).and_then(|()| writer.finish()));
        written.map_err(Failure::failed)?;
        files.push((format!("{name}.arrow"), bytes));
    }
    let manifest = manifest(plan, seed, (backend, controllers), outcome, took);
    files.push(("manifest.json".to_owned(), format!("{manifest:#}\n").into_bytes()));
    Ok(files)
}

fn manifest(
    plan: &Plan,
    seed: u64,
    (backend, controllers): (Backend, &BTreeMap<String, String>),
    outcome: &Outcome,
    took: Duration,
) -> Json {
    let results = &outcome.results;
    let wall_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let uname = rustix::system::uname();
    let counts = &outcome.counts;
    let sources = sources::of(controllers);
    json!({
        "version": sources.version(plan),
        "sources": sources.of(plan),
        "plan_hash": plan.hash(),
        "seed": seed,
        "threads": 1,
        "simulated_ns": results.ended_ns,
        "packet_hops": results.packet_hops,
        "events": results.events,
        // The processor's time is the kernel's, too: what it took in all.
        "cpu_ns": wall_ns,
        "wall_ns": wall_ns,
        "ns_per_packet_hop": real(wall_ns) / real(results.packet_hops.max(1)),
        "backend": backend,
        "kernel": uname.release().to_string_lossy(),
        "controllers": controllers,
        "valid": outcome.validity.is_ok(),
        "invalid": outcome.validity.as_ref().err().map(|reason| reason.to_string()),
        "lateness": {
            "deliveries": lateness(&outcome.record.deliveries),
            "applications": lateness(&outcome.record.agents),
            "ran_dry": outcome.record.ran_dry,
            "lost_outside_packets": outcome.record.lost_outside,
            "real_time": outcome.real_time,
        },
        "packets": {
            "read": counts.read,
            "delivered": counts.delivered,
            "dropped": counts.dropped,
            "marked": counts.marked,
        },
        "near_source": near_source(outcome),
        "connections_failed": outcome.record.failed,
        "flows_without_ecn": outcome.record.without_ecn,
    })
}

/// What hosts heard of near-source switches, all together; `null` where none listened.
fn near_source(outcome: &Outcome) -> Option<Json> {
    let mut all = Heard::default();
    for heard in outcome.heard.values() {
        all.tally.add(&heard.tally);
        all.reaction.merge(&heard.reaction);
    }
    let refused: BTreeMap<&str, u64> =
        all.tally.by_reason().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.name(), count)).collect();
    (!outcome.heard.is_empty()).then(|| {
        json!({
            "hosts": outcome.heard.len(),
            "sent": outcome.counts.notifications,
            "taken": all.tally.taken,
            "refused": refused,
            // From a notification's arrival at a host to its connection's new rate.
            "reaction": lateness(&all.reaction),
        })
    })
}

fn lateness(histogram: &Histogram) -> Json {
    let at = |thousandths| histogram.percentile(thousandths).as_ns();
    json!({
        "count": histogram.count(),
        "mean_ns": histogram.mean().as_ns(),
        "p50_ns": at(500),
        "p99_ns": at(990),
        "max_ns": histogram.most().as_ns(),
    })
}

#[allow(clippy::cast_precision_loss, reason = "counts stay below 2⁵³")]
fn real(value: u64) -> f64 {
    value as f64
}
