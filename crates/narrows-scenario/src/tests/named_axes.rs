//! Axes of the sweep whose values are named sets of values.

use narrows_plan::Plan;

use super::*;

const FILE: &str = r#"[topology.dumbbell]
pairs = 2
fabric = { rate = "1Gbps", delay = "5ms", limit = "100pkt" }
[[traffic]]
name = "bulk"
from = "left-*"
to = "right-*"
long = { flows = 2, spread = "1ms" }
[[arm]]
name = "CUBIC"
cc = "cubic"
[[arm]]
name = "GEMINI"
cc = "gemini"
[run]
end = "1s"
quick = { sweep = { reading = ["half"] } }
[sweep]
"fabric.delay" = ["5ms", "10ms"]
[sweep.reading]
product = {}
half = { "cc.gemini.beta" = 0.5, "fabric.limit" = "50pkt" }
"#;

/// The line that narrows quick runs.
const QUICK: &str = "quick = { sweep = { reading = [\"half\"] } }\n";

fn plans(text: &str, sets: &[(&str, &str)], quick: bool) -> Vec<Plan> {
    let sets = sets.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    expand(text, &Overrides { sets, quick }).expect("the experiment is right").plans
}

fn refusal(old: &str, new: &str) -> String {
    let error = expand(&FILE.replace(old, new), &Overrides::default()).expect_err("it is refused");
    error.to_string()
}

#[test]
fn a_named_axis_is_every_schemes_and_combines_with_the_others() {
    let plans = plans(FILE, &[], false);
    let labels: Vec<String> = plans
        .iter()
        .map(|plan| {
            format!("{} {}", plan.arm, plan.axes.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" "))
        })
        .collect();
    let of =
        |scheme: &str| ["5ms product", "5ms half", "10ms product", "10ms half"].map(|rest| format!("{scheme} {rest}"));
    assert_eq!(labels, [of("CUBIC"), of("GEMINI")].concat());
    assert!(plans.iter().all(|plan| plan.axes[1].0 == "reading"));
}

#[test]
fn a_set_without_values_is_the_file_as_it_is_and_each_value_is_declared() {
    let (file, _) = FILE
        .replace(QUICK, "")
        .split_once("[sweep.reading]")
        .map(|(file, rest)| (file.to_owned(), rest.len()))
        .unwrap();
    let plain = plans(&file, &[], false);
    let named = plans(FILE, &[], false);
    assert_eq!(plain[0].hash(), named[0].hash(), "the labels are no part of what is run");
    assert_ne!(named[0].hash(), named[1].hash());
    let declared = |plan: &Plan| plan.declared.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(declared(&named[1]), ["cc", "fabric.limit"], "CUBIC has no beta");
    assert_eq!(declared(&named[5]), ["cc", "cc.gemini.beta", "fabric.limit"]);
}

#[test]
fn quick_runs_that_keep_one_value_do_not_bear_the_axis() {
    let quick = plans(FILE, &[], true);
    let whole = plans(FILE, &[], false);
    assert!(quick.iter().all(|plan| plan.axes.len() == 1), "only the delay is an axis");
    assert_eq!(
        quick.iter().map(Plan::hash).collect::<Vec<_>>(),
        whole.iter().filter(|plan| plan.axes[1].1 == "half").map(Plan::hash).collect::<Vec<_>>()
    );
    let both = plans(&FILE.replace("[\"half\"]", "[\"half\", \"product\"]"), &[], true);
    assert_eq!((both.len(), both[0].axes[1].1.as_str()), (8, "half"));
}

#[test]
fn what_the_caller_fixes_is_no_longer_the_axis() {
    let fixed = plans(FILE, &[("fabric.limit", "70pkt")], false);
    assert_eq!(fixed.len(), 8, "beta is still the axis'");
    let all = plans(FILE, &[("fabric.limit", "70pkt"), ("cc.gemini.beta", "0.1")], false);
    assert_eq!(all.len(), 4);
}

#[test]
fn what_is_no_set_of_values_is_refused() {
    insta::assert_snapshot!(
        [
            refusal("half = {", "\"a half\" = {"),
            refusal("product = {}", "product = 3"),
            refusal("\"fabric.limit\" = \"50pkt\"", "\"fabric.delay\" = \"50us\""),
            refusal("\"fabric.limit\" = \"50pkt\"", "\"fabric.limmit\" = \"50pkt\""),
        ]
        .join("\n\n")
    );
    let error = expand(&FILE.replace("[\"half\"]", "[\"hal\"]"), &Overrides { quick: true, ..Overrides::default() });
    insta::assert_snapshot!(error.expect_err("it is refused").to_string());
}
