//! HPCC: the window follows from what each port on the way says it holds and has sent [HPCC §3].
//!
//! Ports write into each packet how many bytes wait, how many they have sent, and when. Two packets' stamps give a link's
//! utilisation, and with it the inflight bytes of all flows there, as a share of its bandwidth-delay product:
//!
//! ```text
//! U_i = min(q, q')/(B·T) + (sent − sent')/(B·(t − t'))
//! ```
//!
//! The window aims at U = η on the busiest link: `W = W_c·η/U + W_AI` from there, or `W = W_c + W_AI` below it, up to
//! `max-stage` times in a row. The reference `W_c` follows `W` once per RTT, so that a window answers each acknowledgement, and none
//! twice.
//!
//! HPCC is made for RDMA over networks that lose nothing. Here losses are the transport's, and change no window.

use super::parts::fractional::{MOST, ONE, bandwidth_delay, ratio, spacing};
use super::{
    Ack, Cause, CongestionControl, Context, EcnUse, Kernel, Kind, Owner, Path, Sent, Settings, Spec, Value, parameters,
};
use crate::packet::{SYN_BYTES, Seq};
use crate::telemetry::Hop;
use crate::units::{Bytes, Packets, Rate, Span, Time};
use alloc::vec::Vec;

/// What an experiment may know and set.
pub const SPEC: Spec = Spec {
    name: "hpcc",
    title: "HPCC",
    about: "Sets the window from what switches write into packets: bytes waiting and sent at each port of the path.",
    source: "HPCC §3",
    ecn: EcnUse::Optional,
    kernel: Kernel::None,
    needs_delivery_rate: false,
    needs_every_ack: true,
    needs_telemetry: true,
    draws: false,
    ordered: &[],
    parameters: parameters! {
        "eta": Kind::Real { bits: 20 }, Value::Real(996_147), (ONE / 2, ONE),
            "η: the utilisation of the busiest link that the window aims at; 0.95 [HPCC §3].";
        "max-stage": Kind::Count, Value::Count(5), (0, 1_000),
            "How many times in a row the window only grows by the additive step while the path is below `eta`; 5 [HPCC §3].";
        "flows": Kind::Count, Value::Count(100), (1, 1_000_000),
            "N: the flows that may share a link; the additive step is W_AI = W_init·(1 − `eta`)/N [HPCC §3].";
        "base-rtt": Kind::Span, Value::Auto, (Span::from_us(1).as_ps(), Span::from_secs(1).as_ps()),
            "T: the RTT of a full packet on the empty path; by default the least RTT measured, the handshake's included, plus \
            the additional serialisation time of a full packet over a SYN at each line.";
    },
};

/// The largest utilisation that is told apart, 2^-20: queues of 64 bandwidth-delay products.
const MAX_UTILISATION: u64 = ONE << 6;

/// What does not change in a connection's life. Shares in 2^-20.
#[derive(Clone, Copy, Debug)]
struct Constants {
    eta: u64,
    max_stage: u64,
    flows: u64,
    base_rtt: Option<Span>,
}

impl Constants {
    fn new(settings: &Settings<'_>) -> Constants {
        Constants {
            eta: settings.real("eta"),
            max_stage: settings.count("max-stage"),
            flows: settings.count("flows"),
            base_rtt: settings.span_or_auto("base-rtt"),
        }
    }
}

/// The state of one HPCC sender.
#[derive(Clone, Debug)]
pub struct Hpcc {
    constants: Constants,
    /// W, 2^-20 packets.
    window: u64,
    /// After a timeout one packet goes, until something is acknowledged.
    is_probing: bool,
    /// `W_c`, 2^-20 packets.
    reference: u64,
    /// How often in a row the reference grew by the additive step alone.
    stage: u64,
    /// The acknowledgement of what was sent after this sets the reference.
    last_update: Seq,
    /// The window was set to its first value.
    has_begun: bool,
    /// T, once it is known.
    base: Option<Span>,
    /// What the last telemetry said.
    hops: Vec<Hop>,
    /// U of the path, smoothed over T: 2^-20.
    utilisation: u64,
    /// Whether U has changed since the window was set.
    is_fresh: bool,
    /// Whether the acknowledgement to come is the first with telemetry: what is under way then is of the first window.
    is_first: bool,
    pacing: Option<Rate>,
}

impl Hpcc {
    /// A sender that knows no RTT yet, unless it is told.
    pub fn new(context: &Context<'_>) -> Hpcc {
        let window = context.path.initial_window.get().saturating_mul(ONE).clamp(ONE, MOST);
        let constants = Constants::new(&context.settings);
        let mut hpcc = Hpcc {
            constants,
            window,
            is_probing: false,
            reference: window,
            stage: 0,
            last_update: Seq::FIRST,
            has_begun: false,
            base: constants.base_rtt,
            hops: Vec::new(),
            utilisation: ONE,
            is_fresh: false,
            is_first: false,
            pacing: None,
        };
        hpcc.begin(context.path);
        hpcc
    }

    /// U, 2^-20.
    pub fn utilisation(&self) -> u64 {
        self.utilisation
    }

    /// T as it is known now. The transport's minimum is usually that of the handshake, which may have met no queue where data meet
    /// one from the start; a full packet takes longer than that at each line, and telemetry tells which lines there are.
    fn learn_base(&mut self, path: &Path) {
        let longer = path.packet.saturating_sub(Bytes::new(SYN_BYTES));
        let measured = || {
            let lines = self.hops.iter().map(|hop| hop.rate).chain([path.line_rate]);
            let on_the_lines = lines.map(|rate| rate.time_for(longer)).fold(Span::ZERO, |sum, time| sum + time);
            Some(path.min_rtt.filter(|rtt| !rtt.is_zero())? + on_the_lines)
        };
        self.base = self.constants.base_rtt.or_else(measured);
    }

    /// `W_init`: what the host's line sends in T, 2^-20 packets.
    fn line_window(path: &Path, base: Span) -> u64 {
        bandwidth_delay(path, base).clamp(ONE, MOST)
    }

    /// A flow begins at the rate of its line.
    fn begin(&mut self, path: &Path) {
        let Some(base) = self.base.filter(|_| !self.has_begun) else { return };
        self.has_begun = true;
        self.reference = Hpcc::line_window(path, base);
        self.window = self.reference;
        self.pace(path);
    }

    /// The window per T.
    fn pace(&mut self, path: &Path) {
        let Some(base) = self.base else { return };
        let rate = Rate::of(path.packet, spacing(self.window, base));
        self.pacing = Some(rate.min(path.line_rate).max(Rate::from_bps(1)));
    }

    /// The busiest link between the last telemetry and this: U of it, and the time between [HPCC Algorithm 1].
    /// `None` where the two are not of one path, or of one packet.
    fn busiest(&self, hops: &[Hop], base: Span) -> Option<(u64, Span)> {
        if hops.len() != self.hops.len() {
            return None;
        }
        let mut busiest = None;
        for (hop, last) in hops.iter().zip(&self.hops) {
            if hop.at <= last.at || hop.sent < last.sent || hop.rate != last.rate {
                return None;
            }
            let span = hop.at.since(last.at);
            let sent = Bytes::new(hop.sent.get() - last.sent.get());
            let busy = ratio(hop.rate.time_for(sent), span, MAX_UTILISATION);
            let queue = ratio(hop.rate.time_for(hop.queue.min(last.queue)), base, MAX_UTILISATION);
            let here = (busy + queue).min(MAX_UTILISATION);
            if busiest.is_none_or(|(most, _)| here > most) {
                busiest = Some((here, span));
            }
        }
        busiest
    }

    /// [HPCC Algorithm 1]: the window, and the stage that follows.
    fn compute(&self, line_window: u64) -> (u64, u64) {
        let Constants { eta, max_stage, flows, .. } = self.constants;
        let additive = (line_window / flows * (ONE - eta) / ONE).max(1);
        let (window, stage) = if self.utilisation >= eta || self.stage >= max_stage {
            let scaled = u128::from(self.reference) * u128::from(eta) / u128::from(self.utilisation.max(1));
            (u64::try_from(scaled).unwrap_or(MOST), 0)
        } else {
            (self.reference, self.stage + 1)
        };
        (window.saturating_add(additive).min(line_window), stage)
    }
}

impl CongestionControl for Hpcc {
    fn recovery(&self) -> Owner {
        Owner::Controller
    }

    fn on_telemetry(&mut self, hops: &[Hop]) {
        if let Some(base) = self.base.filter(|base| !base.is_zero())
            && let Some((latest, span)) = self.busiest(hops, base)
        {
            let weight = ratio(span, base, ONE);
            let smoothed =
                u128::from(self.utilisation) * u128::from(ONE - weight) + u128::from(latest) * u128::from(weight);
            self.utilisation = u64::try_from(smoothed / u128::from(ONE)).unwrap_or(MAX_UTILISATION);
            self.is_fresh = true;
        }
        // An adapter may hand up several acknowledgements at once.
        self.is_first |= self.hops.is_empty();
        self.hops.clear();
        self.hops.extend_from_slice(hops);
    }

    fn on_ack(&mut self, ack: &Ack, path: &Path) {
        self.is_probing = false;
        self.learn_base(path);
        self.begin(path);
        let Some(base) = self.base else { return };
        if core::mem::take(&mut self.is_first) {
            self.last_update = ack.nxt;
        }
        if core::mem::take(&mut self.is_fresh) {
            let (window, stage) = self.compute(Hpcc::line_window(path, base));
            self.window = window;
            if ack.una > self.last_update {
                (self.reference, self.stage, self.last_update) = (window, stage, ack.nxt);
            }
        }
        self.pace(path);
    }

    /// Nothing: the queue in front of a loss was in the telemetry, and what is lost at random says nothing of queues.
    fn on_congestion(&mut self, _now: Time, _cause: Cause, _path: &Path) {}

    fn on_timeout(&mut self, _now: Time, _repeated: bool, _path: &Path) {
        self.is_probing = true;
    }

    fn on_sent(&mut self, _now: Time, _sent: &Sent, path: &Path) {
        if !self.has_begun {
            self.learn_base(path);
            self.begin(path);
        }
    }

    fn on_undo(&mut self) {
        self.is_probing = false;
    }

    /// Something may be sent while less than W is in flight: whole packets, rounded up.
    fn window(&self) -> Packets {
        Packets::new(if self.is_probing { 1 } else { self.window.div_ceil(ONE) })
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing
    }

    /// An adapter spaces single packets.
    fn burst(&self) -> Option<Packets> {
        Some(Packets::new(1))
    }
}

#[cfg(test)]
mod tests;
