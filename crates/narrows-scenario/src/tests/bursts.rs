//! ON and OFF periods as people write them.

use super::*;
use crate::offered::offered_load;
use crate::summary::Summary;
use narrows_plan::{OnOff, Open, Pattern, Plan, Role};

/// Two senders with ON and OFF periods.
const BURSTS: &str = r#"[topology.star]
hosts = 4

[[traffic]]
name = "background"
arrivals = { on-off = { on = "5ms", off = "20ms", gap = "0.5ms", sigma = 1.5 } }
size = { fixed = "1MB" }
from = ["h1", "h2"]
to = "h4"

[[arm]]
name = "cubic"
cc = "cubic"

[run]
end = "100s"
"#;

fn opens(plan: &Plan) -> Vec<(&str, &Open)> {
    let opens = plan.traffic.iter().map(|traffic| match &traffic.pattern {
        Pattern::Open(open) => (traffic.name.as_str(), open),
        other => panic!("{other:?}"),
    });
    opens.collect()
}

#[test]
fn each_sender_has_periods_of_its_own_at_the_rate_that_follows() {
    let plan = &plans(BURSTS)[0];
    let all = OnOff { on: Span::from_ms(5), off: Span::from_ms(20), gap: Span::from_us(500), sigma: 1.5 };
    let opens = opens(plan);
    assert_eq!(opens.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["background/h1", "background/h2"]);
    assert!(opens.iter().all(|(_, open)| (open.on_off, open.sigma, open.exact) == (Some(all), None, false)));
    // A fifth of the time, by a mean gap of 0.5 ms · exp(sigma²/2).
    let rate = 0.2 / (0.5e-3 * libm::exp(1.125));
    let summary = Summary::of(plan);
    assert!((summary.traffic[0].flows_per_second.unwrap() / rate - 1.0).abs() < 1e-9);
    assert!((summary.traffic[0].flows / (100.0 * rate) - 1.0).abs() < 1e-9);
    let load = offered_load(plan).unwrap();
    let at_receiver = plan.network.links.iter().zip(load).filter(|(link, _)| link.role == Role::Edge);
    let most = at_receiver.map(|(link, load)| load * link.rate.as_bps() as f64).fold(0.0, f64::max);
    assert!((most / (2.0 * rate * 8e6 * 1_538.0 / 1_448.0) - 1.0).abs() < 1e-9, "{most}");
    let back: Plan = serde_json::from_str(&serde_json::to_string(plan).unwrap()).unwrap();
    assert_eq!((&back, back.hash()), (plan, plan.hash()));
}

#[test]
fn a_sender_with_several_directions_has_longer_gaps_in_each() {
    let sites = r#"[topology.graph]
        switches = [{ name = "s1", site = 1 }, { name = "s2", site = 2 }, { name = "s3", site = 3 }]
        hosts = [{ name = "x", switch = "s1" }, { name = "y", switch = "s2" }, { name = "z", count = 3, switch = "s3" }]
        links = [{ ends = ["s1", "s2"] }, { ends = ["s1", "s3"] }]
    "#;
    let text = BURSTS.replace("[topology.star]\nhosts = 4\n", sites);
    let text = text.replace("from = [\"h1\", \"h2\"]\nto = \"h4\"", "from = \"x\"\nbetween = \"datacenters\"");
    let plan = &plans(&text)[0];
    let gaps: Vec<Span> = opens(plan).iter().map(|(_, open)| open.on_off.unwrap().gap).collect();
    assert_eq!(gaps, [Span::from_ms(2), Span::from_ps(666_666_667)]);
    let rate: f64 = Summary::of(plan).traffic.iter().map(|traffic| traffic.flows_per_second.unwrap()).sum();
    assert!((rate * 0.5e-3 * libm::exp(1.125) / 0.2 - 1.0).abs() < 1e-8, "{rate}");
}

#[test]
fn periods_can_be_swept_and_set_and_carry_datagrams() {
    let path = "traffic.background.arrivals.on-off";
    let swept = format!("{BURSTS}[sweep]\n\"{path}.off\" = [\"10ms\", \"45ms\"]\n");
    let on_offs: Vec<OnOff> = plans(&swept).iter().map(|plan| opens(plan)[0].1.on_off.unwrap()).collect();
    assert_eq!(on_offs.iter().map(|on_off| on_off.off).collect::<Vec<_>>(), [10, 45].map(Span::from_ms));
    let set = |key: &str, value: &str| {
        let sets = vec![(format!("{path}.{key}"), value.to_owned())];
        expand(BURSTS, &Overrides { sets, ..Overrides::default() }).unwrap().plans.remove(0)
    };
    assert_eq!(opens(&set("sigma", "0.5"))[0].1.on_off.unwrap().sigma, 0.5);
    assert_eq!(opens(&set("gap", "2ms"))[0].1.on_off.unwrap().gap, Span::from_ms(2));
    for more in [
        "transport = { datagram = { rate = \"50%\" } }",
        "connections = { persistent = { pool = 2 } }",
        "connections = \"fresh-established\"",
        "request = \"300B\"",
    ] {
        assert_eq!(plans(&BURSTS.replace("to = \"h4\"", &format!("to = \"h4\"\n{more}"))).len(), 1, "{more}");
    }
}

#[test]
fn schemes_differ_in_periods_as_they_are_written() {
    let other = BURSTS.replace("20ms", "45ms");
    let (one, other) = (plans(BURSTS), plans(&other));
    let told = crate::differences::differences(&[&one[0], &other[0]]);
    insta::assert_snapshot!(told[0].values.join("\n"));
}

#[test]
fn periods_that_cannot_be() {
    let arrivals = r#"{ on-off = { on = "5ms", off = "20ms", gap = "0.5ms", sigma = 1.5 } }"#;
    let whole = format!("arrivals = {arrivals}\nsize = {{ fixed = \"1MB\" }}\nfrom = [\"h1\", \"h2\"]\nto = \"h4\"");
    let incast =
        format!("incast = {{ clients = \"h1\", servers = \"h*\", response = \"2KB\", arrivals = {arrivals} }}");
    let two_tier = format!("two-tier = {{ arrivals = {arrivals} }}");
    insta::assert_snapshot!(all_refused(
        BURSTS,
        &[
            ("\"5ms\"", "\"0s\""),
            ("\"20ms\"", "\"0ms\""),
            ("\"0.5ms\"", "\"0us\""),
            ("\"5ms\"", "\"-5ms\""),
            ("\"20ms\"", "20"),
            ("sigma = 1.5", "sigma = 0"),
            ("sigma = 1.5", "sigma = -1"),
            ("sigma = 1.5", "sigma = 4.1"),
            ("sigma = 1.5", "sigmas = 1.5"),
            (", sigma = 1.5", ""),
            ("on = \"5ms\", ", ""),
            ("off = \"20ms\", ", ""),
            ("gap = \"0.5ms\", ", ""),
            ("on-off", "onoff"),
            ("\"0.5ms\", sigma = 1.5", "\"1ns\", sigma = 0.1"),
            ("on = \"5ms\", off = \"20ms\"", "on = \"1ns\", off = \"1ns\""),
            ("size = { fixed = \"1MB\" }\n", ""),
            ("size =", "exact = true\nsize ="),
            (&whole, &incast),
            (&whole, &two_tier),
        ]
    ));
}
