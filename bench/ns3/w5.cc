// W5 long-fat: 64 hosts a side, 100 Gbps WAN link, 30 ms RTT, 64 long CUBIC flows, 10 Gbps access links, 100,000-packet WAN
// port. About 250,000 packets fill the pipe: what matters is memory per packet in flight. Windows end at `buf` bytes: without
// that, ns-3's time in the recovery from some 10^5 losses has no bound. Data and ACKs cross 3 links each.
#include "common.h"

using namespace peer;

int
main(int argc, char** argv)
{
    double seconds = 1;
    uint32_t flows = 64;
    uint64_t buf = 8000000;
    Net net;
    CommandLine cmd;
    cmd.AddValue("seconds", "simulated time", seconds);
    cmd.AddValue("flows", "flows", flows);
    cmd.AddValue("buf", "socket buffers, bytes", buf);
    cmd.AddValue("count", "count packet-hops (untimed pass)", net.count);
    cmd.Parse(argc, argv);
    Tcp("ns3::TcpCubic", buf);

    Ptr<Node> left = net.AddNode();
    Ptr<Node> right = net.AddNode();
    net.Link(left, right, "100Gbps", MicroSeconds(14980), 100000, 100000);
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
        net.Link(a, left, "10Gbps", MicroSeconds(10), 100000, 10000);
        net.Link(b, right, "10Gbps", MicroSeconds(10), 100000, 10000);
        net.Address(a, (10u << 24) | i);
        Ipv4Address to = net.Address(b, (10u << 24) | (1u << 16) | i);
        Sink(b);
        Flow(a, to, 0.01 * u->GetValue(), 0);
    }
    RunAndReport("w5", net, seconds);
}
