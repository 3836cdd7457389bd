//! A training step of a pipeline of stages, each with replicas: one forward, one backward [Narayanan 2019].

use super::ring_all_reduce::around;
use super::{Script, count};
use crate::component::{Kind, Settings, Spec, Value, parameters};
use crate::units::{Bytes, Span};

pub(super) const SPEC: Spec = Spec {
    name: "pipeline",
    about: "A training step: microbatches pass forward and backward through stages, then replicas of a stage all-reduce its gradients.",
    source: "Narayanan 2019",
    parameters: parameters![
        "ranks": Kind::Count, Value::Count(64), (2, 4_096), "Ranks: stages times replicas; the replicas of a stage follow each other.";
        "stages": Kind::Count, Value::Count(8), (1, 1_024), "Stages; over two datacenters, the first half of them is in the first one.";
        "microbatches": Kind::Count, Value::Count(16), (1, 10_000), "Microbatches of a step.";
        "steps": Kind::Count, Value::Count(1), (1, 1_000), "Training steps, one after the other.";
        "activations": Kind::Bytes, Value::Bytes(Bytes::new(16_000_000)), (1, 10_000_000_000_000),
            "What a stage sends the next for a microbatch, and gets back as gradients.";
        "gradients": Kind::Bytes, Value::Bytes(Bytes::new(100_000_000)), (1, 10_000_000_000_000),
            "What the replicas of a stage all-reduce around a ring at the end of a step.";
        "compute": Kind::Span, Value::Span(Span::from_ms(5)),
            "Mean time of a microbatch forward through a stage; backward it is twice that.";
    ],
};

pub(super) fn judge(settings: &Settings<'_>) -> Result<(), &'static str> {
    match settings.count("ranks").is_multiple_of(settings.count("stages")) {
        true => Ok(()),
        false => Err("a pipeline has equally many ranks in each stage"),
    }
}

pub(super) fn write(settings: &Settings<'_>, script: &mut Script<'_>) {
    let (stages, batches) = (count(settings, "stages"), count(settings, "microbatches"));
    let replicas = script.ranks / stages;
    let (stage, replica) = (script.rank / replicas, script.rank % replicas);
    for _ in 0..count(settings, "steps") {
        // So many are on their way before the first comes back; then one forward, one backward.
        let ahead = (stages - 1 - stage).min(batches);
        (0..ahead).for_each(|_| forward(settings, script, stages, replicas));
        for batch in 0..batches {
            if batch + ahead < batches {
                forward(settings, script, stages, replicas);
            }
            backward(settings, script, stages, replicas);
        }
        if replicas > 1 {
            around(script, replica, replicas, settings.bytes("gradients"), |place| stage * replicas + place);
        }
    }
}

fn forward(settings: &Settings<'_>, script: &mut Script<'_>, stages: u32, replicas: u32) {
    pass(script, stages, replicas, settings.span("compute"), settings.bytes("activations"), true);
}

fn backward(settings: &Settings<'_>, script: &mut Script<'_>, stages: u32, replicas: u32) {
    pass(script, stages, replicas, settings.span("compute") * 2, settings.bytes("activations"), false);
}

/// One microbatch through this rank's stage, from the stage before or, backward, from the one after.
fn pass(script: &mut Script<'_>, stages: u32, replicas: u32, compute: Span, data: Bytes, is_forward: bool) {
    let before = script.rank.checked_sub(replicas);
    let after = Some(script.rank + replicas).filter(|&rank| rank < stages * replicas);
    let (from, to) = if is_forward { (before, after) } else { (after, before) };
    if let Some(from) = from {
        script.recv(from, data.get());
    }
    script.calc(compute);
    if let Some(to) = to {
        script.send(to, data.get());
    }
}
