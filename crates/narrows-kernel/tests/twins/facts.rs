//! The facts of one run, stated twice: in the units of `narrows-core` and in those of the kernel.

use super::core::{CAck, CPath};
use super::operations::{Case, Operation, Start, Step};
use narrows_core::cc::{Ack, Limit, Path, Phase, RttSample, Sent};
use narrows_core::packet::Seq;
use narrows_core::units::{Bytes, Packets, Rate, Span, Time};

const MSS: u64 = 1_448;

/// What the transport knows. Sequence numbers and the clock never go back.
pub(crate) struct Facts<'a> {
    case: &'a Case,
    pub(crate) now_ns: u64,
    una: u64,
    nxt: u64,
    srtt_eighth_us: u64,
    min_rtt_us: Option<u64>,
    window: u64,
    step: Option<&'a Step>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(case: &'a Case) -> Facts<'a> {
        let (una, nxt) = (Seq::FIRST.get(), Seq::FIRST.get());
        Facts { case, now_ns: 0, una, nxt, srtt_eighth_us: 0, min_rtt_us: None, window: 1, step: None }
    }

    /// What happens before the call: time passes, packets are acknowledged and sent.
    pub(crate) fn pass(&mut self, operation: &'a Operation, window: u64) {
        self.window = window.max(1);
        self.step = None;
        match operation {
            Operation::Ack(step) => self.acknowledge(step),
            Operation::Congestion { gap_ns, .. }
            | Operation::Timeout { gap_ns, .. }
            | Operation::Sent { gap_ns, .. } => self.now_ns += gap_ns,
            Operation::Idle { idle_ns } => self.now_ns += idle_ns,
            Operation::Undo | Operation::Configure => {}
        }
    }

    fn acknowledge(&mut self, step: &'a Step) {
        self.step = Some(step);
        self.now_ns += step.gap_ns.unwrap_or(self.case.base_us * 1_000);
        if step.cumulative {
            self.una += step.acked * MSS;
        }
        self.nxt = self.nxt.max(self.una + self.window.min(1 << 20) * MSS);
        if let Some(rtt) = self.rtt_us() {
            // As Linux averages: an eighth of the newest.
            let srtt = self.srtt_eighth_us;
            self.srtt_eighth_us = if srtt == 0 { rtt * 8 } else { srtt - srtt / 8 + rtt };
            self.min_rtt_us = Some(self.min_rtt_us.map_or(rtt, |least| least.min(rtt)));
        }
    }

    fn rtt_us(&self) -> Option<u64> {
        self.step.and_then(|step| step.queued_us).map(|queued| self.case.base_us + queued)
    }

    fn rtt_seq(&self) -> u64 {
        self.step.map_or(0, |step| self.nxt.saturating_sub(step.behind * MSS))
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_ns(self.now_ns)
    }

    pub(crate) fn path(&self) -> Path {
        Path {
            mss: Bytes::new(MSS),
            packet: Bytes::new(self.case.packet_bytes),
            initial_window: Packets::new(self.case.initial_window),
            line_rate: Rate::from_bps(self.case.line_rate_bps),
            srtt: (self.srtt_eighth_us > 0).then(|| Span::from_ps(self.srtt_eighth_us * 125_000)),
            min_rtt: self.min_rtt_us.map(Span::from_us),
            rto: Span::from_ns(self.case.rto_ns),
            burst: 1,
            una: Seq::new(self.una),
            nxt: Seq::new(self.nxt),
            in_flight: Packets::new((self.nxt - self.una) / MSS),
            outstanding: u32::try_from((self.nxt - self.una) / MSS).expect("a window"),
            departs_at: Time::ZERO,
        }
    }

    pub(crate) fn c_path(&self) -> CPath {
        CPath {
            packet_bytes: self.case.packet_bytes,
            initial_window: self.case.initial_window,
            line_rate_bps: self.case.line_rate_bps,
            srtt_eighth_us: self.srtt_eighth_us,
            min_rtt_us: self.min_rtt_us.unwrap_or(u64::MAX),
            rto_ns: self.case.rto_ns,
            una: self.una,
            nxt: self.nxt,
        }
    }

    fn at_step(&self) -> &'a Step {
        self.step.expect("an acknowledgement was passed just before")
    }

    fn max_in_flight(&self) -> u64 {
        self.window * self.at_step().used / 4
    }

    pub(crate) fn ack(&self) -> Ack {
        let step = self.at_step();
        Ack {
            now: self.now(),
            acked: Packets::new(step.acked),
            marked: Packets::new(if step.ece { step.acked } else { 0 }),
            lost: Packets::ZERO,
            ece: step.ece,
            rtt: self.rtt_us().map(|us| RttSample { span: Span::from_us(us), seq: Seq::new(self.rtt_seq()) }),
            delivery: None,
            delivered: Packets::ZERO,
            una: Seq::new(self.una),
            nxt: Seq::new(self.nxt),
            in_flight: Packets::new((self.nxt - self.una) / MSS),
            prior_in_flight: Packets::ZERO,
            max_in_flight: Packets::new(self.max_in_flight()),
            phase: step.phase,
            limited_by: step.limited_by,
            timestamps: (0, 0),
            in_order: step.in_order,
        }
    }

    pub(crate) fn c_ack(&self) -> CAck {
        let step = self.at_step();
        CAck {
            now_ns: self.now_ns,
            acked: step.acked,
            marked: if step.ece { step.acked } else { 0 },
            rtt_us: self.rtt_us().unwrap_or(u64::MAX),
            rtt_seq: self.rtt_seq(),
            una: self.una,
            nxt: self.nxt,
            max_in_flight: self.max_in_flight(),
            phase: match step.phase {
                Phase::Open => 0,
                Phase::EcnReduction => 1,
                Phase::Recovery => 2,
                Phase::Loss => 3,
            },
            limited_by: match step.limited_by {
                Limit::Window => 0,
                Limit::Receiver => 1,
                Limit::Application => 2,
                Limit::Pacing => 3,
                Limit::NearSource => 4,
            },
            ece: u32::from(step.ece),
            in_order: u32::from(step.in_order),
        }
    }

    pub(crate) fn sent(&self, start: Start) -> Sent {
        let idle = (start == Start::Idle).then_some(Span::from_ms(1));
        Sent { size: Bytes::new(1_500), idle, starts: start != Start::Nothing }
    }
}
