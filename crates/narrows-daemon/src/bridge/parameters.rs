//! The edge pair's parameters as options of the command: one for each of its [`SPEC`], with that one's kind and text.

use std::sync::LazyLock;

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use narrows_core::component::{Kind, Parameter, Settings, Value};
use narrows_core::edge::dcib::{Config, SPEC};
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
        "marks" => Value::Choice(1),
        _ => parameter.default,
    };
    let range = match parameter.name {
        "rate" => Some((Rate::from_mbps(1).as_bps(), Rate::from_gbps(400).as_bps())),
        "round-trip" | "hold" => Some((Span::from_us(10).as_ps(), Span::from_secs(10).as_ps())),
        // Fewer hold no packet.
        "store" | "held" => parameter.range.map(|(_, most)| (Bytes::new(10_000).get(), most)),
        _ => parameter.range,
    };
    let about = match parameter.name {
        "rate" => "R, nothing beyond it may be lost: that of the path between the edges",
        "round-trip" => "the RTT between the two edges until it is measured; times and memory follow from it",
        _ => parameter.about,
    };
    Parameter { default, range, about, ..*parameter }
}

fn option(parameter: &'static Parameter) -> Arg {
    let name = parameter.name;
    // Where a symbol of the slides comes first, it keeps its case.
    let (first, rest) = parameter.about.split_at(1);
    let mut help = if rest.starts_with(',') { first.to_owned() } else { first.to_uppercase() } + rest;
    if let Some((least, most)) = parameter.range {
        help += &format!(" ({} to {})", shown(parameter.kind, least), shown(parameter.kind, most));
    }
    let parse = move |text: &str| {
        component_value(SPEC.name, &PARAMETERS, name, text).map_err(|problem| match problem.help() {
            Some(help) => format!("{problem}: {help}"),
            None => problem.to_string(),
        })
    };
    // `chooser`: as it was called.
    let arg = Arg::new(name).long(name).aliases((name == "choose").then_some("chooser")).help(help).value_name(
        match parameter.kind {
            Kind::Real { .. } => "SHARE",
            Kind::Rate | Kind::LinkRate => "RATE",
            Kind::Span => "TIME",
            Kind::Bytes | Kind::Size | Kind::Packets => "SIZE",
            Kind::Choice(_) => "CHOICE",
            Kind::Switch | Kind::Count | Kind::Counts(..) => "N",
        },
    );
    let arg = match parameter.kind {
        Kind::Choice(names) => {
            arg.value_parser(ValueParser::new(PossibleValuesParser::new(names).try_map(move |text| parse(&text))))
        }
        _ => arg.value_parser(ValueParser::new(parse)),
    };
    match parameter.default {
        Value::Required => arg.required(true),
        default => arg.default_value(describe_value(parameter, default)),
    }
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
    use narrows_core::edge::dcib::{Hiding, Marks, Share};

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

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        for (wrong, said) in [
            ("--rate 1kbps", "outside 1Mbps to 400Gbps"),
            ("--rate 1Gbps --share 0", "choose a value from"),
            ("--rate 1Gbps --share 101%", "to 1"),
            ("--rate 1Gbps --share -1%", "unexpected argument"),
            ("--rate 1Gbps --round-trip auto", "auto"),
            ("--rate 1Gbps --round-trip 11s", "outside 10us to 10s"),
            ("--rate 1Gbps --store 9KB", "outside 10KB"),
            ("--rate 1Gbps --repairs 15", "outside 0 to 14"),
            ("--rate 1Gbps --hiding all", "possible values: resequence"),
            ("--share 10%", "--rate <RATE>"),
        ] {
            let error = parsed(&format!("bridge {wrong}")).unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
