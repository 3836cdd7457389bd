// W1 dumbbell: 10 long-lived CUBIC flows, 1 Gbps bottleneck, 10 ms RTT,
// 1000-packet drop-tail buffer, 10 Gbps access links. Data and ACKs cross 3 links each.
#include "common.h"

using namespace peer;

int
main(int argc, char** argv)
{
    double seconds = 10;
    uint32_t flows = 10;
    Net net;
    CommandLine cmd;
    cmd.AddValue("seconds", "simulated time", seconds);
    cmd.AddValue("flows", "flows", flows);
    cmd.AddValue("count", "count packet-hops (untimed pass)", net.count);
    cmd.Parse(argc, argv);
    Tcp("ns3::TcpCubic", 16 << 20);

    Ptr<Node> left = net.AddNode();
    Ptr<Node> right = net.AddNode();
    net.Link(left, right, "1Gbps", MicroSeconds(4980), 1000, 1000); // port 0 of both
    // Hosts 10.0.0.i sit left on port 1+i, hosts 10.1.0.i right on port 1+i.
    auto side = [](uint32_t mine) {
        return [mine](uint32_t, uint32_t dst) {
            return ((dst >> 16) & 1) == mine ? 1 + (dst & 0xffff) : 0;
        };
    };
    Net::SetRoute(left, side(0));
    Net::SetRoute(right, side(1));
    Ptr<UniformRandomVariable> u = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows; i++)
    {
        Ptr<Node> a = net.AddNode();
        Ptr<Node> b = net.AddNode();
        net.Link(a, left, "10Gbps", MicroSeconds(10), 10000, 10000);
        net.Link(b, right, "10Gbps", MicroSeconds(10), 10000, 10000);
        net.Address(a, (10u << 24) | i);
        Ipv4Address to = net.Address(b, (10u << 24) | (1u << 16) | i);
        double start = 0.1 * u->GetValue();
        Sink(b);
        Flow(a, to, start, 0);
    }
    RunAndReport("w1", net, seconds);
}
