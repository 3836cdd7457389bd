//! The nearest known name to one that is not known.

/// The known name that takes fewest edits to reach, if that is few for its length; the first of equals.
pub(crate) fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    /// Names beyond these are not compared: the text is not ours, and the work grows with both.
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let allowed = (name.chars().count() / 3).max(1);
    let candidates = known.iter().filter(|candidate| candidate.len() <= LONGEST);
    let (distance, best) =
        candidates.map(|candidate| (distance(name, candidate), candidate)).min_by_key(|(distance, _)| *distance)?;
    (distance <= allowed).then_some(best)
}

/// Edits between two texts: insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) =
        (from.to_lowercase().chars().collect(), to.to_lowercase().chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        assert_eq!(distance("gemini", "gemini"), 0);
        assert_eq!(distance("gmeini", "gemini"), 1);
        assert_eq!(distance("gemni", "gemini"), 1);
        assert_eq!(distance("", "bbr"), 3);
    }

    #[test]
    fn only_what_is_near_is_offered() {
        let known: Vec<String> = ["dctcp", "gemini", "bbr"].map(str::to_owned).to_vec();
        assert_eq!(nearest("dctpc", &known), Some("dctcp"));
        assert_eq!(nearest("cubic", &known), None);
        assert_eq!(nearest("GEMINI", &known), Some("gemini"));
    }
}
