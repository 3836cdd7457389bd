import narrows

results = narrows.load("slow")
explained = results.explain(scheme="GEMINI")  # the ten slowest
print(explained)
print(explained.parts.select("flow", "fct_ns", "handshake_ns", "window_ns", "timeout_ns", "queue_port"))

traced = results.trace([13], scheme="CUBIC")
print(traced.senders.select("time_ns", "window_packets", "srtt_ns", "waits_for").tail(5))
print(traced.hops.filter(dropped=True).select("packet", "seq", "port"))
