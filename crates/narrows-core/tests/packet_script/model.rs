//! An end of ours, on a virtual clock.

use std::collections::VecDeque;

use narrows_core::cc::Phase;
use narrows_core::nic::merge::Merging;
use narrows_core::packet::{Segment, Tag};
use narrows_core::tcp::{Endpoint, Stack};
use narrows_core::units::{Bytes, Time};

use super::{Action, End, Outcome, Setting, State, show_time};
use crate::pair::{build, stack_for};

/// More than any script sends in one moment: a sender that never falls silent fails instead of hanging.
const MAX_IN_A_MOMENT: usize = 10_000;

/// See the [module](self).
pub struct Model {
    now: Time,
    end: Endpoint,
    stack: Stack,
    merging: Merging<()>,
    sent: VecDeque<(Time, Segment)>,
}

impl Model {
    #[allow(clippy::unnecessary_wraps, reason = "other ends may not be had")]
    pub fn new(setting: &Setting) -> Result<Model, String> {
        let stack = stack_for(&setting.controller, setting.profile, setting.ecn);
        let controller = build(&setting.controller, &stack, 1);
        let end = match setting.round_trip {
            Some(round_trip) => Endpoint::established(controller, round_trip, &stack),
            None => Endpoint::closed(controller, &stack),
        };
        Ok(Model { now: Time::ZERO, end, stack, merging: Merging::default(), sent: VecDeque::new() })
    }

    /// When it acts next by itself.
    #[allow(dead_code, reason = "for comparisons with kernels")]
    pub fn due(&self) -> Time {
        self.end.deadline().min(self.end.pacing_deadline())
    }

    fn poll(&mut self) -> Outcome {
        while self.end.poll_event().is_some() {}
        let before = self.sent.len();
        while let Some(segment) = self.end.poll_transmit(self.now, &self.stack) {
            self.sent.push_back((self.now, segment));
            if self.sent.len() > before + MAX_IN_A_MOMENT {
                return Err("it sends without end".to_owned());
            }
        }
        let deadline = self.end.deadline();
        if deadline <= self.now && deadline <= self.end.pacing_deadline() {
            return Err(format!("a timer stays due at {deadline}"));
        }
        Ok(())
    }

    /// A segment comes; what the receive offload hands up goes to the end.
    fn receive(&mut self, segment: &Segment) -> Outcome {
        let mut up = Vec::new();
        match &self.stack.profile.receive_offload {
            Some(config) => self.merging.handle((), segment, config, |(), run| up.push(*run)),
            None => up.push(*segment),
        }
        self.hand_up(up)
    }

    fn hand_up(&mut self, runs: Vec<Segment>) -> Outcome {
        for run in runs {
            self.end.handle_segment(self.now, &run, &self.stack);
            self.poll()?;
        }
        Ok(())
    }
}

impl End for Model {
    fn run_until(&mut self, until: Time, _by_timer: bool) -> Outcome {
        loop {
            let next = self.due();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if self.end.deadline() <= self.now {
                self.end.handle_timeout(self.now, &self.stack);
            }
            self.poll()?;
        }
        self.now = until;
        self.poll()
    }

    fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::Offer(bytes, tag) => self.end.offer(Bytes::new(bytes), tag),
            Action::Stop => self.end.stop(),
            Action::Open => self.end.open(Tag(1)),
            Action::Receive(segment) => self.receive(&segment)?,
            Action::Flush => {
                let mut up = Vec::new();
                self.merging.flush(|(), run| up.push(*run));
                self.hand_up(up)?;
            }
        }
        self.poll()
    }

    fn take_sent(&mut self) -> Option<(Time, Segment)> {
        self.sent.pop_front()
    }

    fn peek_sent(&mut self) -> Option<(Time, Segment)> {
        self.sent.front().copied()
    }

    fn is_now(&self, when: Time, now: Time) -> bool {
        when == now
    }

    fn state(&mut self, of: State) -> Option<String> {
        let end = &self.end;
        Some(match of {
            State::Window => end.window().get().to_string(),
            State::Threshold => end.controller().slow_start_threshold().get().to_string(),
            State::Outstanding => end.outstanding().to_string(),
            State::InFlight => end.in_flight().to_string(),
            State::Timeouts => end.tallies().timeouts.to_string(),
            State::Established => end.is_established().to_string(),
            State::Timer => show_time(end.deadline()),
            State::Pacing => show_time(end.pacing_deadline()),
            State::Phase => match end.phase() {
                Phase::Open => "open",
                Phase::EcnReduction => "ecn-reduction",
                Phase::Recovery => "recovery",
                Phase::Loss => "loss",
            }
            .to_owned(),
        })
    }
}
