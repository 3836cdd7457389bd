from narrows.controller import Controller


class Cautious(Controller):
    DELAY = 0.005  # seconds

    def __init__(self, path):
        super().__init__(path)  # the initial window, no threshold
        self.fresh_from = 0  # RTTs count only of data sent after the last reduction

    def cut(self, window, path):
        self.window = self.threshold = max(window, 2)
        self.fresh_from = path.nxt

    def on_ack(self, ack, path):
        if ack.rtt and ack.rtt > path.min_rtt + self.DELAY:
            if ack.phase == "open" and ack.rtt_seq >= self.fresh_from:
                self.cut(self.window * 7 / 8, path)
        elif ack.may_grow and ack.limited_by == "window":
            if self.window < self.threshold:
                self.window = min(self.window + ack.acked, self.threshold)
            else:
                self.window += ack.acked / self.window

    def on_congestion(self, cause, path):
        self.cut(self.window / 2, path)
