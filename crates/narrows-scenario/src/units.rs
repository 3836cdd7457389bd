//! Text to quantities and back: `"10Gbps"`, `"200us"`, `"1.5KB"`, `"64KiB"`, `"300pkt"`, `"5%"`.
//!
//! Decimals are read exactly, digit by digit: `"4.89ms"` is 4 890 000 000 ps and nothing near it. A number without a unit
//! is refused where a unit belongs, and so is a prefix without one (`"10G"`). Rates are decimal; sizes know `KB` (1000)
//! and `KiB` (1024). `mbps` is refused: one tool reads it as megabits, another as megabytes.

use std::fmt;

use narrows_core::units::{Bytes, Packets, Rate, Span, Time};

/// A physical dimension: its units, and how text of it looks.
pub trait Dimension: Sized {
    /// What it is, for messages: `a length of time`.
    const WHAT: &'static str;
    /// How it is written, for messages.
    const EXAMPLE: &'static str;
    /// Every spelling of every unit, and its size in the canonical unit.
    const UNITS: &'static [(&'static str, u64)];
    /// The canonical unit, for messages about what is finer than it.
    const FINEST: &'static str;
    /// From a number of canonical units.
    fn from_canonical(count: u64) -> Self;
}

macro_rules! dimensions {
    ($($dimension:ident, $from:path: $what:literal, $example:literal, $finest:literal, $units:expr;)*) => {$(
        impl Dimension for $dimension {
            const WHAT: &'static str = $what;
            const EXAMPLE: &'static str = $example;
            const UNITS: &'static [(&'static str, u64)] = $units;
            const FINEST: &'static str = $finest;
            fn from_canonical(count: u64) -> $dimension {
                $from(count)
            }
        }
    )*};
}

dimensions! {
    Span, Span::from_ps: "a length of time", "200us", "a picosecond", &[
        ("ps", 1),
        ("ns", 1_000),
        ("us", 1_000_000),
        // The micro sign and the Greek letter look the same and both are typed.
        ("\u{b5}s", 1_000_000),
        ("\u{3bc}s", 1_000_000),
        ("ms", 1_000_000_000),
        ("s", 1_000_000_000_000),
        ("min", 60_000_000_000_000),
    ];
    Time, Time::from_ps: "a time since the start of the run", "10s", "a picosecond", Span::UNITS;
    Rate, Rate::from_bps: "a rate", "10Gbps", "a bit per second", &[
        ("bps", 1),
        ("bit/s", 1),
        ("b/s", 1),
        ("kbps", 1_000),
        ("Kbps", 1_000),
        ("kbit/s", 1_000),
        ("Kbit/s", 1_000),
        ("kb/s", 1_000),
        ("Kb/s", 1_000),
        ("Mbps", 1_000_000),
        ("Mbit/s", 1_000_000),
        ("Mb/s", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Gb/s", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("Tb/s", 1_000_000_000_000),
    ];
    Bytes, Bytes::new: "a size", "64KB", "a byte", &[
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ];
    Packets, Packets::new: "a number of packets", "300pkt", "a packet",
        &[("pkt", 1), ("pkts", 1), ("packet", 1), ("packets", 1)];
    Frequency, Frequency: "a rate of events", "62/s", "one event in a million seconds", &[("/s", 1_000_000)];
    Ppm, Ppm: "a share in parts per million", "50ppm", "one part per million", &[("ppm", 1)];
}

/// Parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ppm(pub u64);

impl fmt::Display for Ppm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ppm", self.0)
    }
}

/// Events per second, in units of 10⁻⁶ per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency(u64);

impl Frequency {
    /// Mean time between two events, rounded to the nearest picosecond; `None` if there are none.
    pub fn interval(self) -> Option<Span> {
        let picos = 1_000_000_000_000_000_000_u64;
        (self.0 > 0).then(|| Span::from_ps((picos + self.0 / 2) / self.0))
    }
    /// Events per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate of arrivals, used in estimates only")]
    pub fn per_second(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// Why a text is not a quantity. `Display` is one sentence; [`help`](UnitError::help) is one more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    what: &'static str,
    example: &'static str,
    finest: &'static str,
    units: &'static [(&'static str, u64)],
    /// The unit in which one writes what is usual here, if that is known.
    usual: Option<&'static str>,
    fault: Fault,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Does not begin with a plain decimal number.
    NotANumber,
    /// Nothing follows the number.
    NoUnit,
    /// What follows the number is no unit of this dimension.
    WrongUnit,
    /// Finer than the canonical unit.
    TooFine,
    /// More than the canonical integer holds.
    TooLarge,
}

impl UnitError {
    fn new<D: Dimension>(text: &str, fault: Fault) -> UnitError {
        let text = text.chars().take(40).collect();
        UnitError { text, what: D::WHAT, example: D::EXAMPLE, finest: D::FINEST, units: D::UNITS, usual: None, fault }
    }

    /// The same where so much is usual, in the canonical unit: what it suggests is of that size.
    #[must_use]
    pub fn near(self, canonical: u64) -> UnitError {
        // A minute is one's own choice: 60 s are written as such.
        let fits = self.units.iter().filter(|(name, size)| *size <= canonical && *name != "min");
        let usual = fits.reduce(|most, unit| if unit.1 > most.1 { unit } else { most }).map(|(name, _)| *name);
        UnitError { usual, ..self }
    }

    /// What to write instead.
    pub fn help(&self) -> String {
        let number = self.text.trim();
        let usual = self.example.trim_start_matches(|c: char| c.is_ascii_digit());
        // One spelling of each size, the example's if it has one.
        let is_usual = |(name, size): &(&str, u64)| {
            self.units.iter().any(|(one, its)| *one == usual && its == size && one != name)
        };
        let first = |at: usize| !self.units[..at].iter().any(|(_, size)| *size == self.units[at].1);
        let chosen = |at: &usize| self.units[*at].0 == usual || first(*at) && !is_usual(&self.units[*at]);
        let units: Vec<_> = (0..self.units.len()).filter(chosen).map(|at| self.units[at].0).collect();
        let units = units.join(", ");
        match self.fault {
            Fault::NoUnit => {
                // A number that is as large as this is not meant in thousands.
                let large = number.len() > 4 && number.bytes().all(|digit| digit.is_ascii_digit());
                let unit = self.usual.unwrap_or(if large { self.units[0].0 } else { usual });
                let all = if self.units.len() > 1 { format!("; units: {units}") } else { String::new() };
                format!("add a unit, for instance \"{number}{unit}\"{all}")
            }
            Fault::WrongUnit if self.text.trim_end().ends_with("mbps") => {
                "write `Mbps` for megabits per second; `mbps` means megabytes to some tools".to_owned()
            }
            Fault::TooLarge | Fault::TooFine | Fault::NotANumber | Fault::WrongUnit => {
                format!("write it like \"{}\"; units: {units}", self.example)
            }
        }
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnitError { text, what, finest, .. } = self;
        match self.fault {
            Fault::NotANumber => write!(f, "`{text}` is not {what}"),
            Fault::NoUnit => write!(f, "`{text}` has no unit, and {what} is meant"),
            Fault::WrongUnit => write!(f, "`{text}` has a wrong unit, and {what} is meant"),
            Fault::TooFine => write!(f, "`{text}` is finer than {finest}"),
            Fault::TooLarge => write!(f, "`{text}` is more than can be counted"),
        }
    }
}

impl std::error::Error for UnitError {}

/// A plain decimal number, exact: `digits / 10^places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    /// Reads `12`, `4.89`, `1e6`; at most 30 digits. Returns it and what follows it.
    pub fn read(text: &str) -> Option<(Decimal, &str)> {
        let whole_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        if whole_end == 0 {
            return None;
        }
        let (whole, mut rest) = text.split_at(whole_end);
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            (fraction, rest) = after.split_at(end);
        }
        let fraction = fraction.trim_end_matches('0');
        let mut exponent = 0;
        if let Some(after) = rest.strip_prefix(['e', 'E']) {
            let after = after.strip_prefix('+').unwrap_or(after);
            let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            if end > 0 {
                exponent = after[..end].parse::<u32>().ok().filter(|exponent| *exponent <= 20)?;
                rest = &after[end..];
            }
        }
        if whole.trim_start_matches('0').len() + fraction.len() > 30 {
            return None;
        }
        let mut digits: u128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits = digits.checked_mul(10)?.checked_add(u128::from(digit - b'0'))?;
        }
        let mut places = u32::try_from(fraction.len()).ok()?;
        let shift = exponent.min(places);
        places -= shift;
        digits = digits.checked_mul(10_u128.checked_pow(exponent - shift)?)?;
        Some((Decimal { digits, places }, rest))
    }

    /// `self * unit` if that is whole and fits.
    fn times(self, unit: u64) -> Result<u64, Fault> {
        let product = self.digits.checked_mul(u128::from(unit)).ok_or(Fault::TooLarge)?;
        let divisor = 10_u128.pow(self.places);
        if product % divisor != 0 {
            return Err(Fault::TooFine);
        }
        u64::try_from(product / divisor).map_err(|_| Fault::TooLarge)
    }

    /// `self + by * times`, and `None` on overflow.
    pub fn stepped(self, by: Decimal, times: u32) -> Option<Decimal> {
        let places = self.places.max(by.places);
        let base = self.digits.checked_mul(10_u128.checked_pow(places - self.places)?)?;
        let step = by.digits.checked_mul(10_u128.checked_pow(places - by.places)?)?;
        let digits = base.checked_add(step.checked_mul(u128::from(times))?)?;
        Some(Decimal { digits, places })
    }

    /// Whether `self <= other`.
    pub fn at_most(self, other: Decimal) -> bool {
        let places = self.places.max(other.places);
        let scaled = |number: Decimal| number.digits.checked_mul(10_u128.pow(places - number.places));
        match (scaled(self), scaled(other)) {
            (Some(own), Some(other)) => own <= other,
            (own, _) => own.is_some(),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divisor = 10_u128.pow(self.places);
        write!(f, "{}", self.digits / divisor)?;
        if self.places > 0 {
            let fraction = format!("{:0width$}", self.digits % divisor, width = self.places as usize);
            let fraction = fraction.trim_end_matches('0');
            if !fraction.is_empty() {
                write!(f, ".{fraction}")?;
            }
        }
        Ok(())
    }
}

/// Reads a quantity exactly; blanks around it and before its unit are allowed.
pub fn parse<D: Dimension>(text: &str) -> Result<D, UnitError> {
    let fail = |fault| UnitError::new::<D>(text, fault);
    let (number, unit) = Decimal::read(text.trim()).ok_or_else(|| fail(Fault::NotANumber))?;
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Err(fail(Fault::NoUnit));
    }
    let (_, size) = D::UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(|| fail(Fault::WrongUnit))?;
    number.times(*size).map(D::from_canonical).map_err(fail)
}

/// The refusal of a number without a unit, as TOML hands it over.
pub fn bare<D: Dimension>(number: impl fmt::Display) -> UnitError {
    UnitError::new::<D>(&number.to_string(), Fault::NoUnit)
}

/// Reads `"5%"` or `"0.05"` as the nearest `f64` to the decimal that is written.
pub fn parse_fraction(text: &str) -> Option<f64> {
    let text = text.trim();
    let (body, exponent) = match text.strip_suffix('%') {
        Some(body) => (body.trim_end(), "e-2"),
        None => (text, ""),
    };
    let plain = !body.is_empty() && body.len() <= 40 && body.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value = plain.then(|| format!("{body}{exponent}").parse::<f64>().ok()).flatten();
    value.filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_spellings_are_understood() {
        for text in ["10Gbps", "10Gbit/s", "10Gb/s", "10000 Mbps", "1e4Mbps"] {
            assert_eq!(parse::<Rate>(text), Ok(Rate::from_gbps(10)), "{text}");
        }
        for text in ["200us", "200\u{b5}s", "200\u{3bc}s", "0.2ms", " 200 us "] {
            assert_eq!(parse::<Span>(text), Ok(Span::from_us(200)), "{text}");
        }
        assert_eq!(parse::<Bytes>("1.5KB"), Ok(Bytes::new(1_500)));
        assert_eq!(parse::<Bytes>("64KiB"), Ok(Bytes::new(65_536)));
        assert_eq!(parse::<Packets>("300packets"), Ok(Packets::new(300)));
        assert_eq!(parse::<Packets>("1e6 packets"), Ok(Packets::new(1_000_000)));
        assert_eq!(parse::<Frequency>("62.5/s").unwrap().interval(), Some(Span::from_ms(16)));
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(parse::<Span>("4.89ms"), Ok(Span::from_us(4_890)));
        assert_eq!(parse::<Span>("0.000000000001s"), Ok(Span::from_ps(1)));
        assert_eq!(parse_fraction("5%"), Some(0.05));
        assert_eq!(parse_fraction("0.1%"), Some(0.001));
        assert_eq!(parse_fraction("-5%"), None);
        assert_eq!(parse_fraction("inf"), None);
    }

    #[test]
    fn what_is_not_a_quantity_is_refused_with_a_way_out() {
        let say = |error: UnitError| format!("{error}. {}", error.help());
        let mut lines = vec![];
        for text in ["10", "10G", "10Gb", "10mbps", "fast", "-1Gbps", "0.5bps", "1e20Gbps", ".5Gbps", "1.Gbps"] {
            lines.push(say(parse::<Rate>(text).unwrap_err()));
        }
        lines.push(say(bare::<Span>(5)));
        insta::assert_snapshot!(lines.join("\n"));
    }

    proptest! {
        #[test]
        fn what_core_prints_is_read_back(count: u64, small in 0u64..10_000, power in 0u32..15) {
            for count in [count, small * 10_u64.pow(power)] {
                prop_assert_eq!(parse::<Span>(&Span::from_ps(count).to_string()), Ok(Span::from_ps(count)));
                prop_assert_eq!(parse::<Time>(&Time::from_ps(count).to_string()), Ok(Time::from_ps(count)));
                prop_assert_eq!(parse::<Rate>(&Rate::from_bps(count).to_string()), Ok(Rate::from_bps(count)));
                prop_assert_eq!(parse::<Bytes>(&Bytes::new(count).to_string()), Ok(Bytes::new(count)));
                prop_assert_eq!(parse::<Packets>(&Packets::new(count).to_string()), Ok(Packets::new(count)));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
            let _ = (parse::<Rate>(&text), parse::<Span>(&text), parse::<Bytes>(&text), parse_fraction(&text));
        }

        #[test]
        fn a_decimal_prints_as_the_number_it_is(whole in 0u64..1_000_000, fraction in 0u32..1000) {
            let text = format!("{whole}.{fraction:03}");
            let (number, rest) = Decimal::read(&text).unwrap();
            prop_assert_eq!(rest, "");
            prop_assert_eq!(number.to_string().parse::<f64>().unwrap(), text.parse::<f64>().unwrap());
        }
    }
}
