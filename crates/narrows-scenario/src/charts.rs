//! What a report shows of a sweep: axes are judged here, names of measures by whoever measures.

use crate::document::Path;
use crate::error::{Judged, Problem};
use crate::experiment::located::Located;
use crate::experiment::report::Report;

/// What the charts of a sweep show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charts {
    /// Path of the axis against which measures are drawn.
    pub x: Option<String>,
    /// Measures, each with its line in the file, from 1.
    pub y: Vec<(String, usize)>,
    /// Path of the axis whose values are panels.
    pub panels: Option<String>,
}

/// Finds the axes. One that the caller set to a value is no axis any more, and chooses nothing.
pub(crate) fn charts(report: &Report, sweep: &[Vec<Path>], swept: &[&[Path]], text: &str) -> Judged<Charts> {
    let axis = |asked: &Option<Located<String>>| -> Judged<Option<String>> {
        let Some(asked) = asked else { return Ok(None) };
        let names = |paths: &[Path]| paths.iter().any(|path| path.text == asked.value);
        if !sweep.iter().any(|paths| names(paths)) {
            let known = sweep.iter().flatten().map(|path| &path.text);
            return Err(Problem::unknown_name("axis", &asked.value, known).at(&asked.span));
        }
        Ok(swept.iter().find(|paths| names(paths)).map(|paths| paths[0].text.clone()))
    };
    let (x, panels) = (axis(&report.x)?, axis(&report.panels)?);
    if let (Some(panels), true) = (&report.panels, x.is_some() && x == panels) {
        let sentence = format!("`x` and `panels` are the same axis, `{}`", panels.value);
        return Err(Problem::new(sentence, "choose two axes, or leave one of them out").at(&panels.span));
    }
    let line = |measure: &Located<String>| text[..measure.span.start].matches('\n').count() + 1;
    Ok(Charts { x, y: report.y.iter().map(|measure| (measure.value.clone(), line(measure))).collect(), panels })
}
