//! The log: a line for each event, of text or JSON, on the error stream.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::json;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    /// `bridge.paris: warning: …`, without a time: the journal has it.
    #[default]
    Text,
    /// An object with `time` [RFC 3339], `level`, `message`, and `unit` where it is one's.
    Json,
}

/// How grave it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Info,
    Warning,
    Error,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// Where lines go; all that have a copy follow when the format changes.
#[derive(Clone, Debug)]
pub(super) struct Log {
    is_json: Arc<AtomicBool>,
}

impl Log {
    pub(super) fn new(format: Format) -> Log {
        Log { is_json: Arc::new(AtomicBool::new(format == Format::Json)) }
    }

    pub(super) fn set(&self, format: Format) {
        self.is_json.store(format == Format::Json, Ordering::Relaxed);
    }

    /// What happened, of a unit or of the whole.
    pub(super) fn write(&self, unit: Option<&str>, level: Level, message: &str) {
        // Nobody may be reading.
        let _ = std::io::stderr().write_all(self.line(SystemTime::now(), unit, level, message).as_bytes());
    }

    /// What a unit has printed; it says itself how grave it is.
    pub(super) fn write_of_unit(&self, unit: &str, line: &str) {
        let (level, message) = match line.split_once(": ") {
            Some(("error", message)) => (Level::Error, message),
            Some(("warning", message)) => (Level::Warning, message),
            _ => (Level::Info, line),
        };
        self.write(Some(unit), level, message);
    }

    fn line(&self, time: SystemTime, unit: Option<&str>, level: Level, message: &str) -> String {
        if !self.is_json.load(Ordering::Relaxed) {
            let unit = unit.map(|unit| format!("{unit}: ")).unwrap_or_default();
            let level = if level == Level::Info { String::new() } else { format!("{}: ", level.name()) };
            return format!("{unit}{level}{message}\n");
        }
        let time = humantime::format_rfc3339_micros(time).to_string();
        let mut line = json!({ "time": time, "level": level.name(), "message": message });
        if let Some(unit) = unit {
            line["unit"] = unit.into();
        }
        format!("{line}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn a_line_is_text_or_an_object() {
        let time = UNIX_EPOCH + Duration::from_millis(1_764_250_000_125);
        let text = Log::new(Format::Text).line(time, Some("bridge.paris"), Level::Warning, "eth1 is down");
        assert_eq!(text, "bridge.paris: warning: eth1 is down\n");
        let json = Log::new(Format::Json).line(time, None, Level::Info, "says \"ready\"\nand more");
        assert_eq!(json.lines().count(), 1);
        let json: serde_json::Value = serde_json::from_str(&json).expect("a line is an object");
        assert_eq!(
            json,
            json!({ "time": "2025-11-27T13:26:40.125000Z", "level": "info", "message": "says \"ready\"\nand more" })
        );
    }
}
