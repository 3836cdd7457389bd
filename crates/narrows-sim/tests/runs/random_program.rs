//! Programs of chance that can end.

use std::collections::BTreeMap;
use std::fmt::Write;

use narrows_core::app::program::{Program, goal};
use narrows_core::units::Time;

/// A program in GOAL of so many ranks and messages: each operation depends on some before it alone, in an order of all ranks
/// in which a message is sent before it is received. Those of one channel start in that order. `below` draws.
pub fn text(ranks: u32, messages: u32, mut below: impl FnMut(u32) -> u32) -> String {
    let mut blocks = vec![(String::new(), 0_u32); ranks as usize];
    let mut latest: BTreeMap<(u32, u32, u32, bool), u32> = BTreeMap::new();
    let mut add = |rank: u32, what: &str, channel: Option<(u32, u32, u32, bool)>, below: &mut dyn FnMut(u32) -> u32| {
        let (block, count) = &mut blocks[rank as usize];
        *count += 1;
        let _ = writeln!(block, "o{count}: {what}");
        for _ in 0..below(3) {
            if *count > 1 {
                let on = *count - 1 - below((*count - 1).min(4));
                let word = if below(4) == 0 { "irequires" } else { "requires" };
                let _ = writeln!(block, "o{count} {word} o{on}");
            }
        }
        if let Some(before) = channel.and_then(|channel| latest.insert(channel, *count)) {
            let _ = writeln!(block, "o{count} irequires o{before}");
        }
    };
    let mut flying = Vec::new();
    for _ in 0..messages {
        let from = below(ranks);
        let to = (from + 1 + below(ranks - 1)) % ranks;
        let tag = below(2);
        let size = if below(3) == 0 { below(200_000) } else { below(3_000) };
        add(from, &format!("send {size}b to {to} tag {tag}"), Some((from, to, tag, true)), &mut below);
        flying.push((from, to, tag));
        if below(2) == 0 {
            let (rank, time, cpu) = (below(ranks), below(300_000), below(2));
            add(rank, &format!("calc {time} cpu {cpu}"), None, &mut below);
        }
        while !flying.is_empty() && below(3) > 0 {
            let (from, to, tag) = flying.remove(below(u32::try_from(flying.len()).expect("few")) as usize);
            add(to, &format!("recv 0b from {from} tag {tag}"), Some((from, to, tag, false)), &mut below);
        }
    }
    for (from, to, tag) in flying {
        add(to, &format!("recv 0b from {from} tag {tag}"), Some((from, to, tag, false)), &mut below);
    }
    let mut text = format!("num_ranks {ranks}\n");
    for (rank, (block, _)) in blocks.iter().enumerate() {
        let _ = writeln!(text, "rank {rank} {{\n{block}}}");
    }
    text
}

/// The program on hosts 0 and further, from `start` on.
pub fn planned(text: &str, start: Time, sigma: u32) -> Program {
    let schedule = goal::read(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    let hosts = (0..schedule.ranks()).collect();
    Program::new(schedule, None, hosts, start, sigma)
}
