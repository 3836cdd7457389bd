//! Paths that flows take: where there are equal ways, what [`Routes`] says is asked once for each flow and switch.
//!
//! One line of memory holds a flow's links in their order, as far as they are known. Two flows may want the same line: the later
//! one takes it, and the other asks again. What is read here is always what the routes would have said.
//!
//! [`Routes`]: crate::route::Routes

/// Links of a flow that a line has room for: those of a fat-tree, from host to host.
const LINKS: usize = 6;
const LINE_BITS: u32 = 14;
const NONE: u32 = u32::MAX;
/// 2⁶⁴ divided by the golden ratio: it spreads keys that follow each other [Knuth, vol. 3, §6.4].
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    lines: Box<[Line; 1 << LINE_BITS]>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Line {
    /// Of the flow; see [`Payload::flow_key`](crate::Payload::flow_key).
    key: u64,
    links: [u32; LINKS],
}

impl Paths {
    /// Nothing is known.
    pub(crate) fn new() -> Paths {
        let lines = vec![Line { key: u64::MAX, links: [NONE; LINKS] }; 1 << LINE_BITS];
        Paths { lines: lines.into_boxed_slice().try_into().expect("as many as that") }
    }

    /// The link that the flow with this key takes after `link`, which `ask` tells if it is not known.
    #[inline(always)]
    pub(crate) fn after(&mut self, link: u32, key: u64, ask: impl FnOnce() -> u32) -> u32 {
        let line = &mut self.lines[(key.wrapping_mul(SPREAD) >> (64 - LINE_BITS)) as usize];
        let mut next = NONE;
        // Which one it is differs from packet to packet: looked at all, and not branched.
        for place in 0..LINKS - 1 {
            next = if line.links[place] == link { line.links[place + 1] } else { next };
        }
        if line.key != key || next == NONE {
            next = ask();
            line.learn(link, key, next);
        }
        next
    }
}

impl Line {
    #[inline(never)]
    fn learn(&mut self, link: u32, key: u64, next: u32) {
        if self.key != key {
            *self = Line { key, links: [NONE; LINKS] };
            self.links[0] = link;
        }
        if let Some(last) = self.links.iter().rposition(|&known| known != NONE)
            && self.links[last] == link
            && last + 1 < LINKS
        {
            self.links[last + 1] = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever was asked before, in whatever order, and however many flows share a line.
        #[test]
        fn what_is_known_is_what_would_be_said(asked in prop::collection::vec((0u64..40, 0u32..10), 1..2_000)) {
            let mut paths = Paths::new();
            // A flow's path has nine links of its own; keys of eight flows fall into each of five lines.
            let inverse = (0..6).fold(1_u64, |inverse, _| {
                inverse.wrapping_mul(2_u64.wrapping_sub(SPREAD.wrapping_mul(inverse)))
            });
            for (flow, place) in asked {
                let key = inverse.wrapping_mul(((flow % 5) << (64 - LINE_BITS)) | (flow / 5));
                let link = u32::try_from(flow).unwrap() * 10 + place;
                prop_assert_eq!(paths.after(link, key, || link + 1), link + 1);
            }
        }

        #[test]
        fn each_link_of_a_short_path_is_asked_for_once(key in any::<u64>(), rounds in 1usize..5) {
            let (mut paths, mut asked) = (Paths::new(), 0);
            for _ in 0..rounds {
                for link in 0..5 {
                    let next = paths.after(link, key, || {
                        asked += 1;
                        link + 1
                    });
                    prop_assert_eq!(next, link + 1);
                }
            }
            prop_assert_eq!(asked, 5);
        }
    }
}
