//! What happens on links beside carrying packets, in sentences.

use std::collections::BTreeMap;

use narrows_plan::{Change, FunctionConfig, Graph, Link};

use crate::warnings::listed;

/// Functions of links: what each comes to in the mean.
pub(super) fn functions(graph: &Graph) -> Vec<String> {
    let functions =
        graph.links.iter().flat_map(|link| link.all_functions().into_iter().map(move |it| (told(&it), link)));
    grouped(functions)
}

/// Share of data packets that a link loses at random, in the long run, before events.
pub(super) fn mean_loss(link: &Link) -> f64 {
    let kept = link.all_functions().into_iter().fold(1.0, |kept, function| match function {
        FunctionConfig::Bernoulli(config) => kept * (1.0 - real(config.loss.into())),
        FunctionConfig::GilbertElliott(config) => kept * (1.0 - real(config.mean_loss())),
        FunctionConfig::Reorder(_) => kept,
    });
    1.0 - kept
}

/// Changes of links, in the order of time.
pub(super) fn events(graph: &Graph) -> Vec<String> {
    let mut events: Vec<_> = graph.links.iter().flat_map(|link| link.events.iter().map(move |it| (it, link))).collect();
    events.sort_by_key(|(event, _)| event.at);
    grouped(events.into_iter().map(|(event, link)| {
        let what = match event.change {
            Change::Rate(rate) => format!("rate {rate}"),
            Change::Delay(delay) => format!("delay {}", delay.saturating_sub(link.stack)),
            Change::Loss(loss) => format!("loss {}", share(loss.into())),
            Change::Down => "down".to_owned(),
            Change::Up => "up".to_owned(),
        };
        (format!("at {}: {what}", event.at), link)
    }))
}

/// Each text once, with the links that it is about.
fn grouped<'a>(told: impl Iterator<Item = (String, &'a Link)>) -> Vec<String> {
    let (mut order, mut links) = (vec![], BTreeMap::<String, Vec<&str>>::new());
    for (text, link) in told {
        if !links.contains_key(&text) {
            order.push(text.clone());
        }
        links.entry(text).or_default().push(&link.name);
    }
    order.into_iter().map(|text| format!("{text}: {}", listed(&links[&text]))).collect()
}

fn told(function: &FunctionConfig) -> String {
    match function {
        FunctionConfig::Bernoulli(config) => format!("loss {}, independent", share(config.loss.into())),
        FunctionConfig::GilbertElliott(config) => format!(
            "loss {}, gilbert-elliott, in bursts of {:.3} packets (means)",
            share(config.mean_loss()),
            real(config.mean_burst())
        ),
        FunctionConfig::Reorder(config) => {
            let range = if config.delay == config.delay_max {
                config.delay.to_string()
            } else {
                format!("{} to {}", config.delay, config.delay_max)
            };
            format!("reorder {}, later by {range}", share(config.share))
        }
    }
}

/// In percent.
fn share(scaled: u64) -> String {
    format!("{:.4} %", 100.0 * real(scaled))
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn real(scaled: u64) -> f64 {
    scaled as f64 / 4_294_967_296.0
}
