//! Drives one controller in unit tests: a path, a clock, sequence numbers in whole packets, and one `Ack` at a time.

use super::{Ack, Cause, CongestionControl, Context, Limit, Path, Phase, RateSample, RttSample, Settings, Spec, Value};
use crate::packet::Seq;
use crate::rng::SmallStream;
use crate::units::{Bytes, Packets, Rate, Span, Time};
use std::vec::Vec;

pub(super) const MSS: u64 = 1_448;

/// A sender on an idle 1 Gbit/s path with segmentation offload off.
pub(super) fn path() -> Path {
    Path {
        mss: Bytes::new(MSS),
        packet: Bytes::new(1_500),
        initial_window: Packets::new(10),
        line_rate: Rate::from_gbps(1),
        srtt: None,
        min_rtt: None,
        rto: Span::from_ms(200),
        burst: 1,
        una: Seq::FIRST,
        nxt: Seq::FIRST,
        in_flight: Packets::ZERO,
        outstanding: 0,
        departs_at: Time::ZERO,
    }
}

/// Builds a controller with these parameters changed from their defaults.
pub(super) fn build<C>(spec: &Spec, new: impl Fn(&Context<'_>) -> C, path: &Path, changes: &[(&str, Value)]) -> C {
    let values: Vec<Value> = spec
        .parameters
        .iter()
        .map(|parameter| changes.iter().find(|(name, _)| *name == parameter.name).map_or(parameter.default, |c| c.1))
        .collect();
    for (name, _) in changes {
        assert!(spec.parameters.iter().any(|parameter| parameter.name == *name), "no parameter {name}");
    }
    new(&Context { settings: Settings::new(spec.parameters, &values), path, random: SmallStream::new(1) })
}

/// A controller and the facts that the next acknowledgement will carry. Fields are set by tests as they like.
#[derive(Clone, Debug)]
pub(super) struct Drive<C> {
    pub(super) cc: C,
    pub(super) path: Path,
    pub(super) now: Time,
    pub(super) phase: Phase,
    pub(super) limited_by: Limit,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) delivery: Option<RateSample>,
}

impl<C: CongestionControl> Drive<C> {
    /// The window is full of unacknowledged packets.
    pub(super) fn new(cc: C, path: Path) -> Drive<C> {
        let mut drive = Drive {
            cc,
            path,
            now: Time::ZERO,
            phase: Phase::Open,
            limited_by: Limit::Window,
            delivered: 0,
            lost: 0,
            delivery: None,
        };
        drive.fill();
        drive
    }

    pub(super) fn window(&self) -> u64 {
        self.cc.window().get()
    }

    /// Sends until the window is full.
    pub(super) fn fill(&mut self) {
        let end = self.path.una.plus(self.window() * MSS);
        self.path.nxt = self.path.nxt.max(end);
        self.path.in_flight = Packets::new(self.path.nxt.since(self.path.una) / MSS);
    }

    /// One acknowledgement of `acked` packets, then the window is filled again.
    pub(super) fn ack(&mut self, acked: u64, rtt: Option<Span>, ece: bool) {
        let prior_in_flight = self.path.in_flight;
        let newest = self.path.una.plus(acked.max(1) * MSS - MSS);
        self.path.una = self.path.una.plus(acked * MSS);
        self.path.in_flight = prior_in_flight.saturating_sub(Packets::new(acked));
        self.delivered += acked;
        if let Some(span) = rtt {
            self.path.srtt = Some(span);
            self.path.min_rtt = Some(self.path.min_rtt.map_or(span, |least| least.min(span)));
        }
        let ack = Ack {
            now: self.now,
            acked: Packets::new(acked),
            marked: Packets::new(if ece { acked } else { 0 }),
            lost: Packets::new(core::mem::take(&mut self.lost)),
            ece,
            rtt: rtt.map(|span| RttSample { span, seq: newest }),
            delivery: self.delivery.take(),
            delivered: Packets::new(self.delivered),
            una: self.path.una,
            nxt: self.path.nxt,
            in_flight: self.path.in_flight,
            prior_in_flight,
            max_in_flight: self.cc.window(),
            phase: self.phase,
            limited_by: self.limited_by,
            timestamps: (0, 0),
            in_order: true,
        };
        self.cc.on_ack(&ack, &self.path);
        self.fill();
    }

    /// Acknowledges, one by one and spread over `rtt`, what was outstanding at the call.
    pub(super) fn round(&mut self, rtt: Span, ece: bool) {
        let outstanding = self.path.in_flight.get();
        for _ in 0..outstanding {
            self.now += rtt.div(outstanding);
            self.ack(1, Some(rtt), ece);
        }
    }

    pub(super) fn congestion(&mut self, cause: Cause) {
        self.cc.on_congestion(self.now, cause, &self.path);
    }

    pub(super) fn timeout(&mut self) {
        self.cc.on_timeout(self.now, false, &self.path);
    }
}
