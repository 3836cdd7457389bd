//! The edge pair's parameters as options of the command: one for each of its [`SPEC`], with that one's kind and text.

use std::sync::LazyLock;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use narrows_core::component::{Kind, Parameter, Settings, Value};
use narrows_core::edge::dcib::{CHOICES, Config, Marks, SPEC};
use narrows_core::units::{Bytes, Rate, Span};
use narrows_scenario::{component_value, describe_value, shown};

/// The value of each parameter, in the order of the [`SPEC`].
#[derive(Clone, Debug)]
pub(super) struct Parameters(Vec<Value>);

impl Parameters {
    pub(super) fn config(&self) -> Config {
        // Neither is `auto` here: no link is described from which it could follow.
        Config::of(&Settings::new(&PARAMETERS, &self.0), Rate::from_bps(0), Span::ZERO)
    }
}

/// Those of the [`SPEC`]; what is asked of a machine's memory, and cannot follow from a link that a file describes, has other
/// defaults and ranges.
static PARAMETERS: LazyLock<Vec<Parameter>> = LazyLock::new(|| SPEC.parameters.iter().map(here).collect());

fn here(parameter: &Parameter) -> Parameter {
    let default = match parameter.name {
        "rate" => Value::Required,
        "round-trip" => Value::Span(Span::from_ms(20)),
        // The slides do not speak of these marks; a host without ECN learns of the congestion by the loss [RFC 6040 §4.2].
        "marks" => Value::Choice(Marks::Drop as u8),
        _ => parameter.default,
    };
    let range = match parameter.name {
        "rate" => Some((Rate::from_mbps(1).as_bps(), Rate::from_gbps(400).as_bps())),
        "round-trip" | "hold" => Some((Span::from_us(10).as_ps(), Span::from_secs(10).as_ps())),
        // Fewer hold no packet.
        "store" | "held" => parameter.range.map(|(_, most)| (Bytes::new(10_000).get(), most)),
        _ => parameter.range,
    };
    // In words of those who run a router; the symbols of the slides are in `narrows show dcib`.
    let about = match parameter.name {
        "share" => "Part of the packets with data that may be lost",
        "choose" => "Which packets may be lost",
        "rate" => "Rate of the path between the edges, beyond which nothing may be lost",
        "round-trip" => "RTT between the edges until it is measured; times and memory follow from it",
        "repairs" => "How often a packet is retransmitted at most",
        "store" => "Memory for copies; auto: four RTTs of share times rate",
        "hiding" => "How hosts are kept from noticing a loss that may be repaired",
        "hold" => "How long a hole is hidden at most; auto: one and a half RTTs and 2 ms",
        "held" => "Memory for packets that wait behind holes; auto: one and a half RTTs of rate",
        "marks" => "What becomes of a congestion mark on a packet of a host without ECN",
        _ => parameter.about,
    };
    Parameter { default, range, about, ..*parameter }
}

/// A value as it is written on this command line: shares are percent, so that nobody takes 1 for 1 %.
fn parse(parameter: &'static Parameter, text: &str) -> Result<Value, String> {
    if matches!(parameter.kind, Kind::Real { .. }) && !text.ends_with('%') {
        return Err("it is percent, such as 10% or 2.5%".to_owned());
    }
    component_value(SPEC.name, &PARAMETERS, parameter.name, text).map_err(|problem| {
        // Some speak of the programs for experiments, which a router need not have.
        let help = problem.help().filter(|help| !help.contains("narrows "));
        help.map_or_else(|| problem.to_string(), |help| format!("{problem}: {help}"))
    })
}

fn option(parameter: &'static Parameter) -> Arg {
    let name = parameter.name;
    // `chooser`: as it was called.
    let arg = Arg::new(name).long(name).aliases((name == "choose").then_some("chooser")).help(help(parameter));
    let arg = arg.value_name(match parameter.kind {
        Kind::Real { .. } => "PERCENT",
        Kind::Rate | Kind::LinkRate => "RATE",
        Kind::Span => "TIME",
        Kind::Bytes | Kind::Size | Kind::Packets => "SIZE",
        Kind::Choice(_) => "CHOICE",
        Kind::Switch | Kind::Count | Kind::Counts(..) => "N",
    });
    let arg = match parameter.kind {
        Kind::Choice(names) => {
            let about = |name: &str| CHOICES.iter().find(|(known, _)| *known == name).map_or("", |(_, about)| about);
            let choices = names.iter().map(|&name| PossibleValue::new(name).help(about(name)));
            let names = PossibleValuesParser::new(choices.collect::<Vec<_>>());
            arg.value_parser(ValueParser::new(names.try_map(move |text| parse(parameter, &text))))
        }
        _ => arg.value_parser(ValueParser::new(move |text: &str| parse(parameter, text))),
    };
    match parameter.default {
        Value::Required => arg.required(true),
        Value::Real(share) => arg.default_value(percent(parameter.kind, share)),
        default => arg.default_value(describe_value(parameter, default)),
    }
}

/// What it is, and what can be written.
fn help(parameter: &Parameter) -> String {
    let Some((least, most)) = parameter.range else { return parameter.about.to_owned() };
    let (least, most) = (shown(parameter.kind, least), shown(parameter.kind, most));
    let allowed = match parameter.kind {
        Kind::Real { .. } => "above 0% to 100%".to_owned(),
        // There is more memory than anyone has.
        Kind::Bytes => format!("from {least}"),
        _ => format!("{least} to {most}"),
    };
    format!("{} ({allowed})", parameter.about)
}

/// `10%` of a tenth.
fn percent(kind: Kind, share: u64) -> String {
    let share: f64 = shown(kind, share).parse().expect("a real number is told as one");
    format!("{}%", 100.0 * share)
}

impl Args for Parameters {
    fn augment_args(command: Command) -> Command {
        command.args(PARAMETERS.iter().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Parameters::augment_args(command)
    }
}

impl FromArgMatches for Parameters {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Parameters, clap::Error> {
        let of = |parameter: &Parameter| {
            let value = matches.get_one::<Value>(parameter.name).copied();
            value.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingRequiredArgument))
        };
        Ok(Parameters(PARAMETERS.iter().map(of).collect::<Result<_, _>>()?))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Parameters::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_core::edge::dcib::{Chooser, Hiding, Share};

    #[derive(Debug, clap::Parser)]
    struct Only {
        #[command(flatten)]
        parameters: Parameters,
    }

    fn parsed(options: &str) -> Result<Config, String> {
        let only: Result<Only, _> = clap::Parser::try_parse_from(options.split(' '));
        only.map(|only| only.parameters.config()).map_err(|error| error.to_string())
    }

    /// By default an edge router does what the simulated one does, but for marks on packets of hosts without ECN.
    #[test]
    fn defaults_are_the_simulators() {
        let simulated = Config::new(Rate::from_gbps(1), Share::TENTH, Span::from_ms(20));
        let config = parsed("bridge --rate 1Gbps");
        assert_eq!(config, Ok(Config { marks: Marks::Drop, ..simulated }));
        assert_eq!(simulated.hiding, Hiding::ResequenceRepairable);
    }

    #[test]
    fn every_parameter_of_the_pair_is_an_option() {
        let options = "bridge --rate 2Gbps --share 2.5% --choose band --round-trip 8ms --repairs 5 --store 2MB \
                       --hiding snoop --hold 9ms --held 3MB --marks clear";
        let config = parsed(options).expect("all are good");
        let written: Vec<String> =
            SPEC.parameters.iter().zip(config.values()).map(|(p, v)| describe_value(p, v)).collect();
        assert_eq!(written, ["0.025", "band", "2Gbps", "8ms", "5", "2MB", "snoop", "9ms", "3MB", "clear"]);
    }

    /// A configuration of an earlier version.
    #[test]
    fn the_former_name_of_a_choice_is_understood() {
        let config = parsed("bridge --rate 1Gbps --chooser bernoulli").expect("it is an alias");
        assert_eq!(config.chooser, Chooser::Bernoulli);
    }

    #[test]
    fn a_refusal_says_what_can_be_written() {
        for (wrong, said) in [
            ("--rate 1kbps", "outside 1Mbps to 400Gbps"),
            ("--rate 5", "has no unit"),
            ("--rate 1Gbps --share 0%", "outside"),
            ("--rate 1Gbps --share 1", "percent, such as 10%"),
            ("--rate 1Gbps --share abc%", "is a number"),
            ("--rate 1Gbps --share 101%", "outside"),
            ("--rate 1Gbps --round-trip auto", "not a length of time"),
            ("--rate 1Gbps --round-trip 11s", "outside 10us to 10s"),
            ("--rate 1Gbps --store 9KB", "outside 10KB"),
            ("--rate 1Gbps --repairs 15", "outside 0 to 14"),
            ("--rate 1Gbps --repairs x", "a whole number"),
            ("--rate 1Gbps --hiding all", "possible values: resequence"),
            ("--share 10%", "--rate <RATE>"),
        ] {
            let error = parsed(&format!("bridge {wrong}")).unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
            assert!(!error.contains("narrows show"), "{wrong}: {error}");
        }
    }
}
