//! Experiment × arms × sweep → plans.
//!
//! Every plan is made from its own copy of the file: the file, then what `run.quick` says in a quick run, then the arm,
//! then the values of the axes, then the caller's overrides; later ones replace earlier ones at their path. An axis into a
//! controller, an AQM, a scheduler or a routing policy (`cc.gemini.beta`) is left out for arms that have another there; of an axis with several
//! paths, only such paths. What applies to no arm is refused. A named axis, whose values are named sets of values, is every
//! arm's.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path as FilePath;

use narrows_core::app::program::Schedule as Operations;
use narrows_core::cc::Spec;
use narrows_core::routing::RoutingConfig;
use narrows_core::tcp::profile::Profile;
use narrows_core::units::{Span, Time};
use toml::Spanned;
use toml::de::DeValue;

use crate::document::{Document, Path, Value, bytes};
use crate::error::{Judged, Problem, Source};
use crate::experiment::located::Located;
use crate::experiment::quantity::Quantity;
use crate::experiment::{Arm, File, Seeds};
use crate::route::Routes;
use crate::summary::{Memory, Summary};
use crate::traffic::opened::Opened;
use crate::traffic::program::Programs;
use crate::traffic::{self, Scene};
use crate::units::Decimal;
use crate::{Charts, Limits, Overrides, charts, controller, events, sampling, stack, telemetry, topology};
use narrows_plan::{Kind, Pairs, Pattern, Plan, Schedule};

/// Most plans of one experiment: arms × combinations of the axes.
pub const MAX_PLANS: u64 = 10_000;
/// Most parts of all plans together: nodes, links, operations of programs, listed flows, pairs and hosts, points of distributions.
const MAX_PARTS: u64 = 10_000_000;
/// Most keys and values of all plans together, bytes: they are read again for each.
const MAX_TEXT: u64 = 1 << 30;
/// Longest run.
const LONGEST: Span = Span::from_secs(86_400);

/// What the text is expanded with.
pub(crate) struct Settings<'a> {
    pub(crate) overrides: &'a Overrides,
    pub(crate) limits: &'a Limits,
    pub(crate) controllers: &'static [&'static Spec],
    /// The experiment's folder, if it has one.
    pub(crate) folder: Option<&'a FilePath>,
    /// The experiment's name where it states none.
    pub(crate) name: &'a str,
}

/// What comes out.
pub(crate) struct Expanded {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) plans: Vec<Plan>,
    /// One for each plan.
    pub(crate) summaries: Vec<Summary>,
    pub(crate) charts: Charts,
}

/// An axis of the sweep: one path, or several that take the same values together, and it is called as its first; or named
/// sets of values, and it has a name of its own.
struct Axis<'i> {
    paths: Vec<Path>,
    named: bool,
    /// Whether a quick run keeps one of its names only: then plans do not bear it.
    fixed: bool,
    values: Vec<AxisValue<'i>>,
}

/// A value of an axis: it stands in the text, a range makes it, or it is a named set of values by path.
enum AxisValue<'i> {
    Written(Value<'i>),
    Made(String, Range<usize>),
    Set(Path, Vec<(Path, Value<'i>)>),
}

/// A value of an axis as people read it, where it stands, and what it sets.
struct Choice<'i> {
    label: String,
    span: Range<usize>,
    sets: Vec<(Path, Value<'i>)>,
}

pub(crate) fn expand(source: &Source, settings: &Settings<'_>) -> Judged<Expanded> {
    let text = &source.text[..source.overrides];
    let written = Document::parse(text)?;
    let quick = if settings.overrides.quick { quick(&written) } else { Quick::default() };
    let padded = padded_overrides(source, settings)?;
    let overrides = padded.iter().map(Override::value).collect::<Judged<Vec<_>>>()?;

    let mut base = written.clone();
    for (path, value) in &quick.sets {
        base.set(path, value)?;
    }
    if let Some((exact, span)) = &quick.exact {
        base.make_exact(span, *exact);
    }
    let mut whole = base.clone();
    for (path, value) in &overrides {
        if !whole.is_of_another_component(path) {
            whole.set(path, value)?;
        }
    }
    let file = whole.file()?;
    let name = file.name.as_ref().map_or(settings.name, |name| &name.value).to_owned();
    if let Some(stated) = &file.name {
        plain_name("an experiment", &stated.value, &stated.span)?;
    }
    check_arms(&file.arm)?;
    let arms = written.elements("arm");

    let overridden = |path: &Path| overrides.iter().any(|(over, _)| over.text == path.text);
    set_once(&written)?;
    let mut axes = vec![];
    for (path, value) in written.entries(&["sweep"]) {
        let replaced = quick.sweep.iter().find(|(quick, _)| quick.text == path.text).map(|(_, value)| value);
        if let Some(mut sets) = named_sets(&path, &value)? {
            if let Some(chosen) = replaced {
                sets = chosen_sets(sets, chosen)?;
            }
            let fixed = replaced.is_some() && sets.len() == 1;
            let none = sets.iter().all(|(_, sets)| sets.is_empty());
            sets.iter_mut().for_each(|(_, sets)| sets.retain(|(path, _)| !overridden(path)));
            if none || sets.iter().any(|(_, sets)| !sets.is_empty()) {
                let values = sets.into_iter().map(|(name, sets)| AxisValue::Set(name, sets)).collect();
                axes.push(Axis { paths: vec![path], named: true, fixed, values });
            }
            continue;
        }
        let mut paths = together(&path);
        paths.retain(|path| !overridden(path));
        if !paths.is_empty() {
            let values = axis_values(replaced.unwrap_or(&value))?;
            axes.push(Axis { paths, named: false, fixed: false, values });
        }
    }
    let swept: Vec<&[Path]> = axes.iter().filter(|axis| !axis.fixed).map(|axis| axis.paths.as_slice()).collect();
    let all: Vec<Vec<Path>> = written.entries(&["sweep"]).iter().map(|(key, _)| together(key)).collect();
    let charts = charts::charts(&file.report, &all, &swept, &source.text)?;
    let stated: BTreeSet<String> = written.entries(&["sweep"]).into_iter().map(|(path, _)| path.text).collect();
    if let Some((path, _)) = quick.sweep.iter().find(|(path, _)| !stated.contains(&path.text)) {
        return Err(Problem::unknown_name("axis", &path.text, stated).at(&path.span));
    }
    let axes: Vec<(&Axis<'_>, Vec<Choice<'_>>)> =
        axes.iter().map(|axis| Ok((axis, axis.choices(text)?))).collect::<Judged<_>>()?;
    for (axis, choices) in &axes {
        let mut seen = BTreeSet::new();
        if let Some(choice) = choices.iter().find(|choice| !seen.insert(choice.label.as_str())) {
            let sentence = format!("the axis `{}` has the value {} twice", axis.name(), choice.label);
            return Err(Problem::new(sentence, "leave one of them out").at(&choice.span));
        }
    }
    let combinations = axes.iter().try_fold(arms.len() as u64, |all, (_, own)| all.checked_mul(own.len() as u64));
    let count = combinations.unwrap_or(u64::MAX);
    if count > MAX_PLANS {
        let span = axes.first().map_or(0..0, |(axis, _)| axis.paths[0].span.clone());
        return Err(Problem::too_many("schemes times combinations of the sweep", count, MAX_PLANS).at(&span));
    }

    // What plans differ in is read for those that have it.
    base.take_away(&["arm", "sweep", "report"]);
    let points = count / (arms.len() as u64).max(1);
    let of_arms = arms.iter().map(|arm| points.saturating_mul(base.bytes() + bytes(arm)));
    let of_axes = axes.iter().map(|(_, choices)| {
        let sets = choices.iter().flat_map(|choice| &choice.sets);
        (count / choices.len() as u64).saturating_mul(sets.map(|(_, value)| bytes(value)).sum())
    });
    let read = of_arms.chain(of_axes).fold(0, u64::saturating_add);
    if read > MAX_TEXT {
        let span = axes.first().map_or(0..0, |(axis, _)| axis.paths[0].span.clone());
        return Err(Problem::too_many("bytes of keys and values of all plans", read, MAX_TEXT).at(&span));
    }

    // What is to apply to one scheme at least.
    let swept_paths: Vec<&Path> =
        axes.iter().filter(|(axis, _)| !axis.named).flat_map(|(axis, _)| &axis.paths).collect();
    let mut applied: BTreeSet<&str> = BTreeSet::new();
    let (mut plans, mut summaries, programs) = (vec![], vec![], Programs::default());
    let (mut parts, mut seen) = (0, BTreeSet::new());
    for (arm, element) in file.arm.iter().zip(&arms) {
        let mut of_arm = base.clone();
        let mut declared = vec![];
        let said = |name: &str| crate::document::entries(element).into_iter().find(|(path, _)| path.text == name);
        for name in ["cc", "ecn"] {
            if let Some((path, value)) = said(name) {
                declared.push((path.text.clone(), label(&value, text)));
                of_arm.set(&path, &value)?;
            }
        }
        for (path, value) in said("set").map(|(_, sets)| crate::document::entries(&sets)).unwrap_or_default() {
            declared.push((path.text.clone(), label(&value, text)));
            of_arm.set(&path, &value)?;
        }
        let applies = |path: &Path| !of_arm.is_of_another_component(path);
        applied.extend(swept_paths.iter().filter(|path| applies(path)).map(|path| path.text.as_str()));
        // A set of no values is a choice, too: named axes are every scheme's.
        let axes: Vec<_> = axes.iter().filter(|(axis, _)| axis.named || axis.paths.iter().any(applies)).collect();
        let points = axes.iter().map(|(_, choices)| choices.len()).product::<usize>();
        for point in 0..points {
            let mut document = of_arm.clone();
            let (mut labels, mut declared) = (vec![], declared.clone());
            // The last axis turns fastest.
            let mut rest = point;
            let mut chosen = vec![];
            for (axis, choices) in axes.iter().rev() {
                chosen.push((axis, &choices[rest % choices.len()]));
                rest /= choices.len();
            }
            for (axis, choice) in chosen.into_iter().rev() {
                if !axis.fixed {
                    labels.push((axis.name().to_owned(), choice.label.clone()));
                }
                for (path, value) in choice.sets.iter().filter(|(path, _)| applies(path)) {
                    document.set(path, value)?;
                    // What bears the axis' own name is declared by its label.
                    if path.text != axis.name() {
                        declared.push((path.text.clone(), self::label(value, text)));
                    }
                }
            }
            for (path, value) in &overrides {
                if !document.is_of_another_component(path) {
                    applied.insert(&path.text);
                    document.set(path, value)?;
                }
            }
            let file = document.file()?;
            let named = Labels { experiment: name.clone(), arm: arm.name.value.clone(), axes: labels, declared };
            let (plan, summary) = plan(&file, named, &arm.span, settings, &programs)?;
            parts += size(&plan, &mut seen);
            if parts > MAX_PARTS {
                let what = "nodes, links, operations of programs and listed flows of all plans";
                return Err(Problem::too_many(what, parts, MAX_PARTS).at(&arm.span));
            }
            plans.push(plan);
            summaries.push(summary);
        }
    }
    let mut stated = overrides.iter().map(|(path, _)| path).chain(swept_paths);
    if let Some(path) = stated.find(|path| !applied.contains(path.text.as_str())) {
        let sentence = format!("`{}` sets nothing: no scheme has that component there", path.text);
        return Err(Problem::new(sentence, "take it away, or give a scheme the component that it is of").at(&path.span));
    }
    let seeds = file.run.value.seeds.map_or_else(|| Seeds((1..=10).collect()), |seeds| seeds.value);
    Ok(Expanded { name, title: file.title, seeds: seeds.0, plans, summaries, charts })
}

/// What a quick run changes.
#[derive(Default)]
struct Quick<'i> {
    sets: Vec<(Path, Value<'i>)>,
    exact: Option<(bool, Range<usize>)>,
    sweep: Vec<(Path, Value<'i>)>,
}

/// The document's own `run.quick`. Its shape is judged with the rest of the file.
fn quick<'i>(document: &Document<'i>) -> Quick<'i> {
    let mut quick = Quick::default();
    for (path, value) in document.entries(&["run", "quick"]) {
        match (path.text.as_str(), value.get_ref()) {
            ("exact", DeValue::Boolean(exact)) => quick.exact = Some((*exact, value.span())),
            ("set", _) => quick.sets.extend(crate::document::entries(&value)),
            ("sweep", _) => quick.sweep = crate::document::entries(&value),
            (key @ ("end" | "drain" | "warmup" | "seeds"), _) => {
                quick.sets.push((Path { text: format!("run.{key}"), span: path.span }, value));
            }
            _ => {}
        }
    }
    quick
}

/// One `--set`, as text in which it stands where it stands in the source.
struct Override {
    path: Path,
    /// `v = value` after as much blank space as stands before it in the source.
    text: String,
    value: Range<usize>,
}

fn padded_overrides(source: &Source, settings: &Settings<'_>) -> Judged<Vec<Override>> {
    let mut at = source.overrides;
    let mut overrides = vec![];
    for (path, value) in &settings.overrides.sets {
        let start = at + path.len() + 1;
        let end = start + value.len();
        if value.contains('\n') || path.contains('\n') {
            let expected = "a path and a value on one line";
            return Err(Problem::bad_override(path, expected).at(&(0..0)));
        }
        let text = format!("{}v = {value}", "\n".repeat(start.saturating_sub(4)));
        overrides.push(Override {
            path: Path { text: path.clone(), span: at..at + path.len() },
            text,
            value: start..end,
        });
        at = end + 1;
    }
    Ok(overrides)
}

impl Override {
    /// The value as TOML; text that is not TOML, such as `10Gbps`, stands for itself.
    fn value(&self) -> Judged<(Path, Value<'_>)> {
        let parsed = Document::parse(&self.text).ok().and_then(|document| document.value(&["v"]).cloned());
        let value = parsed.unwrap_or_else(|| {
            let text = self.text.rsplit("\nv = ").next().unwrap_or_default();
            let text = text.strip_prefix("v = ").unwrap_or(text);
            Spanned::new(self.value.clone(), DeValue::String(text.into()))
        });
        Ok((self.path.clone(), value))
    }
}

/// The paths of an axis, which its key separates by commas.
fn together(key: &Path) -> Vec<Path> {
    key.text.split(',').map(|text| Path { text: text.trim().to_owned(), span: key.span.clone() }).collect()
}

/// Refuses paths of the sweep of which one sets what another sets: the later axis would win, and the plan's labels would
/// say otherwise.
fn set_once(document: &Document<'_>) -> Judged<()> {
    // Each with a number that is one for all that a named axis sets: that one of its sets sets a part of what another does
    // is right.
    let mut paths: Vec<(Vec<String>, usize, Path)> = vec![];
    for (key, value) in document.entries(&["sweep"]) {
        let first = paths.len();
        match named_sets(&key, &value)? {
            Some(sets) => {
                let own = sets.into_iter().flat_map(|(_, sets)| sets);
                paths.extend(own.map(|(path, _)| (document.keys_of(&path), first, path)));
            }
            None => {
                let own = together(&key).into_iter().zip(first..);
                paths.extend(own.map(|(path, number)| (document.keys_of(&path), number, path)));
            }
        }
    }
    // In this order a path stands behind those in which it lies.
    paths.sort_by(|one, other| one.0.cmp(&other.0));
    let mut around: Vec<&(Vec<String>, usize, Path)> = vec![];
    for path in &paths {
        around.retain(|outer| path.0.starts_with(&outer.0));
        if let Some(outer) = around.iter().find(|outer| outer.1 != path.1) {
            let (earlier, later) = if outer.1 < path.1 { (&outer.2, &path.2) } else { (&path.2, &outer.2) };
            let sentence = match earlier.text == later.text {
                true => format!("the sweep sets `{}` twice", later.text),
                false => {
                    format!("the sweep sets `{}` and, before it, `{}`: one holds the other", later.text, earlier.text)
                }
            };
            let help = "leave it to one axis; an axis \"a, b\" sets both to the same values";
            return Err(Problem::new(sentence, help).at(&later.span));
        }
        // Of equals one is enough.
        if around.last().is_none_or(|outer| outer.0 != path.0) {
            around.push(path);
        }
    }
    Ok(())
}

/// The sets of a named axis, `{ one = { "path" = value }, other = {} }`; `None` for an axis of paths.
fn named_sets<'i>(axis: &Path, value: &Value<'i>) -> Judged<Option<Vec<NamedSet<'i>>>> {
    let DeValue::Table(table) = value.get_ref() else { return Ok(None) };
    if table.is_empty() || !table.iter().all(|(_, set)| matches!(set.get_ref(), DeValue::Table(_))) {
        return Ok(None);
    }
    plain_name("an axis", &axis.text, &axis.span)?;
    let sets = crate::document::entries(value).into_iter().map(|(name, set)| {
        plain_name("a value of an axis", &name.text, &name.span)?;
        Ok((name, crate::document::entries(&set)))
    });
    sets.collect::<Judged<_>>().map(Some)
}

type NamedSet<'i> = (Path, Vec<(Path, Value<'i>)>);

/// Those sets of a named axis that a list names, in its order.
fn chosen_sets<'i>(sets: Vec<NamedSet<'i>>, chosen: &Value<'_>) -> Judged<Vec<NamedSet<'i>>> {
    let bad = || Problem::new("a named axis is narrowed by a list of its names", "write [\"one\"]").at(&chosen.span());
    let DeValue::Array(names) = chosen.get_ref() else { return Err(bad()) };
    let found = names.iter().map(|asked| {
        let DeValue::String(name) = asked.get_ref() else { return Err(bad()) };
        let set = sets.iter().find(|(own, _)| own.text == *name).cloned();
        let known = sets.iter().map(|(own, _)| &own.text);
        set.ok_or_else(|| Problem::unknown_name("value", name, known).at(&asked.span()))
    });
    let found: Vec<_> = found.collect::<Judged<_>>()?;
    if found.is_empty() { Err(bad()) } else { Ok(found) }
}

/// The values of an axis: a list, a range of whole numbers `"1..=40"`, or `{ from = "1ms", to = "5ms", step = "1ms" }`.
fn axis_values<'i>(value: &Value<'i>) -> Judged<Vec<AxisValue<'i>>> {
    let span = value.span();
    let made = |text: String| AxisValue::Made(text, span.clone());
    let values: Vec<AxisValue<'i>> = match value.get_ref() {
        DeValue::Array(list) => list.iter().cloned().map(AxisValue::Written).collect(),
        DeValue::String(text) => {
            // As seeds: both ends included.
            let Some(Seeds(numbers)) = text.contains("..").then(|| Seeds::parse(text)).flatten() else {
                return Err(bad_axis(&span));
            };
            numbers.iter().map(|number| made(number.to_string())).collect()
        }
        DeValue::Table(table) if table.len() == 3 => {
            let part = |name: &str| -> Option<String> {
                match table.get(name)?.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    DeValue::Integer(number) => Some(number.to_string()),
                    DeValue::Float(number) => Some(number.to_string()),
                    _ => None,
                }
            };
            let (Some(from), Some(to), Some(step)) = (part("from"), part("to"), part("step")) else {
                return Err(bad_axis(&span));
            };
            let steps = range(&from, &to, &step).ok_or_else(|| bad_axis(&span))?;
            steps.into_iter().map(made).collect()
        }
        _ => return Err(bad_axis(&span)),
    };
    if values.is_empty() { Err(bad_axis(&span)) } else { Ok(values) }
}

fn bad_axis(span: &Range<usize>) -> Box<crate::error::Fault> {
    let sentence = "an axis is a list of values, or a range of at most 10000 values in one unit";
    let help = "write [\"20pkt\", \"40pkt\"], \"1..=40\", or { from = \"1ms\", to = \"5ms\", step = \"1ms\" }; sets of values with \
                names are { one = { \"path\" = value }, two = {} }";
    Problem::new(sentence, help).at(span)
}

/// `from`, `from + step`, … up to `to`, exactly; all in the same unit, or all without one.
fn range(from: &str, to: &str, step: &str) -> Option<Vec<String>> {
    let ((from, unit), (to, unit_of_to), (step, unit_of_step)) =
        (Decimal::read(from.trim())?, Decimal::read(to.trim())?, Decimal::read(step.trim())?);
    if unit != unit_of_to || unit != unit_of_step {
        return None;
    }
    let mut values = vec![];
    for index in 0..=u32::try_from(MAX_PLANS).ok()? {
        let value = from.stepped(step, index)?;
        if !value.at_most(to) {
            return Some(values);
        }
        // A number must be TOML, a quantity is text.
        values.push(if unit.is_empty() { value.to_string() } else { format!("\"{value}{unit}\"") });
    }
    None
}

impl<'i> Axis<'i> {
    fn name(&self) -> &str {
        &self.paths[0].text
    }

    /// Each value with its label, and what it sets.
    fn choices<'a>(&'a self, text: &str) -> Judged<Vec<Choice<'a>>>
    where
        'i: 'a,
    {
        let all = |label: String, value: Value<'a>| Choice {
            label,
            span: value.span(),
            sets: self.paths.iter().map(|path| (path.clone(), value.clone())).collect(),
        };
        let choice = |value: &'a AxisValue<'i>| match value {
            AxisValue::Written(value) => Ok(all(label(value, text), value.clone())),
            AxisValue::Made(made, span) => {
                let parsed = DeValue::parse(made).map_err(|_| bad_axis(span))?;
                let value = Spanned::new(span.clone(), parsed.into_inner());
                Ok(all(made.trim_matches('"').to_owned(), value))
            }
            AxisValue::Set(name, sets) => {
                Ok(Choice { label: name.text.clone(), span: name.span.clone(), sets: sets.clone() })
            }
        };
        self.values.iter().map(choice).collect()
    }
}

/// A value as people read it.
fn label(value: &Value<'_>, text: &str) -> String {
    match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        _ => text.get(value.span()).unwrap_or("…").to_owned(),
    }
}

fn check_arms(arms: &[Located<Arm>]) -> Judged<()> {
    if arms.is_empty() {
        let help = "add one: [[arm]] with `name = \"DCTCP\"` and `cc = \"dctcp\"`";
        return Err(Problem::new("there is no [[arm]]", help).at(&(0..0)));
    }
    let mut names = BTreeSet::new();
    for arm in arms {
        let name = &arm.name;
        if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
            return Err(Problem::malformed("a scheme's name has 1 to 64 characters").at(&name.span));
        }
        if !names.insert(name.as_str()) {
            return Err(Problem::duplicate("schemes", &name.value).at(&name.span));
        }
    }
    Ok(())
}

/// Letters, digits and a few signs: names stand in paths, streams and folders.
fn plain_name(what: &'static str, name: &str, span: &Range<usize>) -> Judged<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+');
    if !name.is_empty() && name.len() <= 64 && name.chars().all(plain) {
        return Ok(());
    }
    let sentence = format!("`{}` cannot name {what}", name.chars().take(64).collect::<String>());
    Err(Problem::new(sentence, "use letters, digits, `-`, `_` and `+`, at most 64").at(span))
}

/// Names of a plan.
struct Labels {
    experiment: String,
    arm: String,
    axes: Vec<(String, String)>,
    declared: Vec<(String, String)>,
}

/// One copy of the file, judged and resolved; and in numbers.
fn plan(
    file: &File,
    labels: Labels,
    arm: &Range<usize>,
    settings: &Settings<'_>,
    programs: &Programs,
) -> Judged<(Plan, Summary)> {
    let schedule = schedule(file)?;
    let (mut network, named) = topology::resolve(&file.topology)?;
    if let Some(routing) = &file.routing {
        network.routing = controller::routing_policy(&routing.value.0, &routing.span)?;
        if let (Some(RoutingConfig::Rehash(_)), Some(link)) =
            (network.routing, network.links.iter().find(|link| link.bridge.is_some()))
        {
            let sentence = format!(
                "hosts change the labels of flows (`routing = \"rehash\"`), and the edge pair (`bridge`) of `{}` needs them to stay",
                link.name
            );
            return Err(Problem::new(sentence, "take `routing` away, or set `bridge = \"none\"`").at(&routing.span));
        }
    }
    events::place(&file.event, &mut network, &named)?;
    let mut sampling = sampling::of(&file.sample, &mut network, &named, &schedule)?;
    let host = file.topology.network().host();
    let profile = stack::resolve(host, Profile::LINUX_4_9)?;
    stack::fits(host, &network)?;
    if file.traffic.is_empty() {
        return Err(Problem::missing("traffic", "[[traffic]]").at(&(0..0)));
    }
    let routes = Routes::new(&network);
    let scene = Scene {
        graph: &network,
        named: &named,
        routes: &routes,
        host,
        profile,
        cc: file.cc.as_ref(),
        ecn: file.ecn.as_ref(),
        controllers: settings.controllers,
        folder: settings.folder,
        programs,
        end: schedule.end,
        arm,
    };
    let mut traffic = vec![];
    let mut opened = Opened::of(&network);
    let mut names = BTreeSet::new();
    for (index, written) in file.traffic.iter().enumerate() {
        let name = match &written.name {
            Some(name) => {
                plain_name("a traffic", &name.value, &name.span)?;
                name.value.clone()
            }
            None => format!("traffic-{}", index + 1),
        };
        if !names.insert(name.clone()) {
            let span = written.name.as_ref().map_or(&written.span, |name| &name.span);
            return Err(Problem::duplicate("kinds of traffic", name).at(span));
        }
        let resolved = traffic::resolve(&name, written, &scene)?;
        stack::shares_adapters(resolved.iter().chain(&traffic), written)?;
        opened.add(&resolved, schedule.end, written.connections.as_ref().map_or(&written.span, |said| &said.span))?;
        traffic.extend(resolved);
    }
    sampling.flows = sampling::flows(&file.sample, &sampling, &traffic)?;
    telemetry::place(&mut network, &traffic, settings.controllers).map_err(|problem| problem.at(arm))?;
    let Labels { experiment, arm: arm_name, axes, declared } = labels;
    let plan = Plan { experiment, arm: arm_name, axes, declared, network, traffic, schedule, sampling };
    let summary = Summary::of(&plan);
    if summary.memory > settings.limits.memory {
        let (name, needed, allowed) = (plan.arm, rounded(summary.memory), rounded(settings.limits.memory));
        let Memory { largest, largest_bytes, .. } = summary.largest_use;
        let sentence = format!(
            "a run of scheme `{name}` would need about {needed} of memory, {} of it for {largest}; {allowed} are allowed",
            rounded(largest_bytes)
        );
        return Err(Problem::new(sentence, largest.help()).at(arm));
    }
    Ok((plan, summary))
}

/// How many parts a plan has that no earlier one has. `programs` are those of earlier plans.
fn size(plan: &Plan, programs: &mut BTreeSet<*const Operations>) -> u64 {
    let mut of_pattern = |pattern: &Pattern| match pattern {
        Pattern::Open(open) => {
            open.sizes.points.len()
                + match &open.pairs {
                    Pairs::Listed(listed) => listed.len(),
                    Pairs::Between { sources, destinations } => sources.len() + destinations.len(),
                }
        }
        Pattern::List(list) => list.len(),
        // Plans share a program's operations.
        Pattern::App(Kind::Program(program)) => match programs.insert(std::ptr::from_ref(program.schedule())) {
            true => program.schedule().operations() as usize,
            false => program.hosts.len(),
        },
        Pattern::App(kind) => kind.rounds().pairs().len(),
    };
    let traffic: usize = plan.traffic.iter().map(|traffic| of_pattern(&traffic.pattern)).sum();
    let events: usize = plan.network.links.iter().map(|link| link.events.len()).sum();
    (plan.network.nodes.len() + plan.network.links.len() + events + traffic) as u64
}

/// A size as people read it: whole megabytes, rounded up.
fn rounded(bytes: narrows_core::units::Bytes) -> String {
    format!("{} MB", bytes.get().div_ceil(1_000_000))
}

fn schedule(file: &File) -> Judged<Schedule> {
    let run = &file.run;
    let end = run.end.value.0;
    if end == Time::ZERO {
        return Err(Problem::zero("the run's end").at(&run.end.span));
    }
    let within = |what: &str, at: &Located<Quantity<Span>>, most: Span| {
        if at.value.0 <= most {
            return Ok(at.value.0);
        }
        Err(Problem::out_of_range(what, at.value.0, "0s", most).at(&at.span))
    };
    if end.since(Time::ZERO) > LONGEST {
        return Err(Problem::out_of_range("the run's end", end, "1ps", LONGEST).at(&run.end.span));
    }
    let drain = run.drain.as_ref().map_or(Ok(Span::from_secs(10)), |drain| within("drain", drain, LONGEST))?;
    let warmup = run.warmup.as_ref().map_or(Span::ZERO, |warmup| warmup.value.0);
    if let (true, Some(at)) = (Time::ZERO + warmup >= end, &run.warmup) {
        return Err(Problem::warmup_too_long(warmup, end).at(&at.span));
    }
    Ok(Schedule { end, drain, warmup })
}
