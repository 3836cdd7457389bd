//! What a file says of `[sample]`: how often queues, windows and goodput are sampled, at which links and of which flows.

use narrows_core::units::{Span, Time};
use narrows_plan::{Graph, Pattern, Role, SampledFlow, Sampling, Schedule, Traffic};

use crate::error::{Judged, Problem};
use crate::experiment::Sample;
use crate::experiment::located::Located;
use crate::experiment::quantity::Quantity;
use crate::experiment::selector::Scalar;
use crate::topology::Named;
use crate::{offered, select};

/// The flows with a size that are sampled. Refuses samples of flows where there are none to sample.
pub(crate) fn flows(sample: &Sample, sampling: &Sampling, traffic: &[Traffic]) -> Judged<Vec<SampledFlow>> {
    let Some(written) = &sample.flows else {
        let lasting = |traffic: &Traffic| matches!(&traffic.pattern, Pattern::List(list) if list.iter().any(|flow| flow.size.is_none()));
        let asked = [("windows", &sample.windows), ("goodput", &sample.goodput)];
        return match asked.into_iter().find_map(|(key, at)| at.as_ref().map(|at| (key, at))) {
            Some((key, at)) if !traffic.iter().any(lasting) => {
                let sentence = format!("`{key}` samples flows without a size, and there are none");
                let help = "name flows with `flows = [\"web/*\"]`, by traffic, or by their numbers in results";
                Err(Problem::new(sentence, help).at(&at.span))
            }
            _ => Ok(vec![]),
        };
    };
    let Some(first) = written.value.first() else {
        let help = "write \"web/*\", or leave `flows` out";
        return Err(Problem::new("`flows` names no flows", help).at(&written.span));
    };
    if sampling.windows.max(sampling.goodput) == Span::ZERO {
        return Err(Problem::not_here("flows", "without `windows` and `goodput`").at(&first.span));
    }
    let mut flows = vec![];
    for name in &written.value {
        let malformed = |sentence: String, help: &str| Problem::new(sentence, help).at(&name.span);
        let text = match &name.value {
            Scalar::Whole(number) => {
                let app = traffic.iter().find_map(|traffic| match &traffic.pattern {
                    Pattern::App(kind) => Some(kind.name()),
                    _ => None,
                });
                if let Some(name) = app {
                    let sentence = format!("beside `{name}` it is not known ahead which flow gets a number");
                    return Err(malformed(sentence, "name it by its traffic, such as \"web/7\""));
                }
                let number = u32::try_from(*number).map_err(|_| {
                    malformed(format!("{number} is no flow's number"), "write the number of a row of `flows`")
                })?;
                let counts = traffic.iter().map(offered::most_flows).collect::<Option<Vec<u64>>>();
                if let Some(all) = counts.map(|counts| counts.iter().sum()).filter(|all| u64::from(number) >= *all) {
                    return Err(malformed(no_such_flow(&number.to_string(), "a run", all), "the first flow is 0"));
                }
                flows.push(SampledFlow::Number(number));
                continue;
            }
            Scalar::Text(text) => text,
            _ => return Err(malformed("a flow is a text or a number".to_owned(), "write \"web/*\", \"web/7\" or 440")),
        };
        let (of, place) = text.rsplit_once('/').unwrap_or((text, ""));
        let sequence = place.parse::<u32>();
        if place != "*" && sequence.is_err() {
            let sentence = format!("`{text}` names no flows");
            return Err(malformed(sentence, "write \"web/*\" for all of the traffic `web`, or \"web/7\""));
        }
        let before = flows.len();
        // The most flows of a traffic that matches, if that is known of each.
        let mut most = Some(0);
        for (index, entry) in (0..).zip(traffic) {
            // A traffic of several directions or clients has an entry for each: `web/a`, `web/b`.
            let whole = entry.name.split('/').next().unwrap_or_default();
            if select::matches(of, &entry.name) || select::matches(of, whole) {
                let one = |sequence: &u32| SampledFlow::One { traffic: index, sequence: *sequence };
                flows.push(sequence.as_ref().map_or(SampledFlow::All(index), one));
                most = most.zip(offered::most_flows(entry)).map(|(most, own)| most.max(own));
            }
        }
        if flows.len() == before {
            let known = traffic.iter().map(|entry| &entry.name);
            return Err(Problem::unknown_name("traffic", of, known).at(&name.span));
        }
        if let (Ok(sequence), Some(all)) = (sequence, most)
            && u64::from(sequence) >= all
        {
            return Err(malformed(no_such_flow(text, "its traffic", all), "the first flow of a traffic is 0"));
        }
    }
    Ok(flows)
}

/// That `whose` flows are too few for this one.
fn no_such_flow(flow: &str, whose: &str, most: u64) -> String {
    format!("there is no flow `{flow}`: {whose} has at most {most}")
}

/// Most samples of one kind and place.
const MAX_SAMPLES: u64 = 100_000_000;

/// What is sampled and how often, but for the flows with a size; the links that are watched are told so.
pub(crate) fn of(sample: &Sample, network: &mut Graph, named: &Named, schedule: &Schedule) -> Judged<Sampling> {
    let every = |what: &'static str, at: Option<&Located<Quantity<Span>>>| -> Judged<Span> {
        let Some(at) = at else { return Ok(Span::ZERO) };
        let span = at.value.0;
        if span == Span::ZERO {
            return Err(Problem::zero(what).at(&at.span));
        }
        let samples = schedule.end.since(Time::ZERO).as_ps() / span.as_ps();
        if samples > MAX_SAMPLES {
            return Err(Problem::too_many("samples", samples, MAX_SAMPLES).at(&at.span));
        }
        Ok(span)
    };
    let sampling = Sampling {
        queues: every("the time between samples", sample.queues.as_ref())?,
        windows: every("the time between samples", sample.windows.as_ref())?,
        goodput: every("the width of a bin", sample.goodput.as_ref())?,
        throughput: every("the width of a bin", sample.throughput.as_ref())?,
        flows: vec![],
    };
    if let Some(watch) = &sample.watch {
        for pattern in &watch.value.0 {
            let span = if pattern.span.is_empty() { watch.span.clone() } else { pattern.span.clone() };
            for link in select::links(network, named, &Located { value: pattern.value.clone(), span })? {
                network.links[link].watched = true;
            }
        }
    } else if sampling.queues.max(sampling.throughput) > Span::ZERO {
        let between = |role: Role| matches!(role, Role::Fabric | Role::Wan);
        let any = network.links.iter().any(|link| between(link.role));
        for link in &mut network.links {
            link.watched = if any { between(link.role) } else { link.role == Role::Edge };
        }
    }
    Ok(sampling)
}
