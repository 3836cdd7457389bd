// W3/W4 fat-tree of k-port switches (k^3/4 hosts), 10 Gbps links, 1 us per hop, a random
// permutation with one long DCTCP flow a host, marking at K = 65 packets, per-flow ECMP.
#include "common.h"

#include <numeric>
#include <random>

using namespace peer;

int
main(int argc, char** argv)
{
    double seconds = 0.05;
    uint32_t k = 8;
    uint32_t seed = 1;
    Net net;
    CommandLine cmd;
    cmd.AddValue("seconds", "simulated time", seconds);
    cmd.AddValue("k", "switch ports", k);
    cmd.AddValue("seed", "permutation seed", seed);
    cmd.AddValue("count", "count packet-hops (untimed pass)", net.count);
    cmd.Parse(argc, argv);
    Tcp("ns3::TcpDctcp", 4 << 20);
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(5)));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(MilliSeconds(5)));

    const uint32_t h = k / 2;
    const Time hop = MicroSeconds(1);
    const uint32_t q = 1000;
    const uint32_t K = 65;
    auto link = [&](Ptr<Node> a, Ptr<Node> b, bool aIsHost) {
        net.Link(a, b, "10Gbps", hop, aIsHost ? 10000 : q, q, !aIsHost, true, K);
    };
    auto hash = [h](uint32_t s, uint32_t d) -> uint32_t {
        uint32_t x = s * 2654435761u ^ d * 2246822519u;
        x ^= x >> 15;
        x *= 2654435761u;
        return x >> 16;
    };

    std::vector<Ptr<Node>> core;
    std::vector<Ptr<Node>> hosts;
    std::vector<Ipv4Address> addr;
    for (uint32_t c = 0; c < h * h; c++)
    {
        core.push_back(net.AddNode());
        Net::SetRoute(core.back(), [](uint32_t, uint32_t dst) { return (dst >> 16) & 0xff; });
    }
    for (uint32_t p = 0; p < k; p++) // addresses are 10.pod.edge.host
    {
        std::vector<Ptr<Node>> agg;
        for (uint32_t a = 0; a < h; a++)
        {
            agg.push_back(net.AddNode()); // ports 0..h-1 up to cores, h.. down to edges
            for (uint32_t c = 0; c < h; c++)
            {
                link(agg[a], core[a * h + c], false);
            }
            Net::SetRoute(agg[a], [=](uint32_t src, uint32_t dst) -> uint32_t {
                return ((dst >> 16) & 0xff) == p ? h + ((dst >> 8) & 0xff)
                                                 : hash(src, dst) / h % h;
            });
        }
        for (uint32_t e = 0; e < h; e++)
        {
            Ptr<Node> edge = net.AddNode(); // ports 0..h-1 up to aggs, h.. down to hosts
            for (uint32_t a = 0; a < h; a++)
            {
                link(edge, agg[a], false);
            }
            Net::SetRoute(edge, [=](uint32_t src, uint32_t dst) -> uint32_t {
                return ((dst >> 8) & 0xffff) == ((p << 8) | e) ? h + (dst & 0xff)
                                                               : hash(src, dst) % h;
            });
            for (uint32_t i = 0; i < h; i++)
            {
                Ptr<Node> n = net.AddNode();
                link(n, edge, true);
                addr.push_back(net.Address(n, (10u << 24) | (p << 16) | (e << 8) | i));
                hosts.push_back(n);
                Sink(n);
            }
        }
    }

    std::mt19937 rng(seed);
    std::vector<uint32_t> to(hosts.size());
    std::iota(to.begin(), to.end(), 0);
    std::shuffle(to.begin(), to.end(), rng);
    for (uint32_t i = 0; i < hosts.size(); i++)
    {
        if (to[i] != i)
        {
            Flow(hosts[i], addr[to[i]], (rng() % 1000) * 1e-7, 0);
        }
    }
    RunAndReport("w3", net, seconds);
}
