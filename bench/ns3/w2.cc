// W2 GEMINI testbed: 2 DCs, each 1 border router + 2 ToR switches + 24 servers, all links
// 1 Gbps, intra-DC RTT ~200 us, inter-DC RTT ~10 ms, 450-packet switch ports and
// 10,000-packet WAN ports. Poisson web-search flows, every one crossing the WAN, at `load`
// (wire data bytes) in each of `dirs` directions. CUBIC. Data and ACKs cross 5 links each.
#include "common.h"

#include <random>

using namespace peer;

// The DCTCP paper's web-search flow sizes, as published with common traffic generators.
static const double kCdf[][2] = {{0, 0},
                                 {10e3, .15},
                                 {20e3, .2},
                                 {30e3, .3},
                                 {50e3, .4},
                                 {80e3, .53},
                                 {200e3, .6},
                                 {1e6, .7},
                                 {2e6, .8},
                                 {5e6, .9},
                                 {10e6, .97},
                                 {30e6, 1}};
static const int kCdfN = sizeof(kCdf) / sizeof(kCdf[0]);

static double
MeanSize()
{
    double m = 0;
    for (int i = 1; i < kCdfN; i++)
    {
        m += (kCdf[i][1] - kCdf[i - 1][1]) * (kCdf[i][0] + kCdf[i - 1][0]) / 2;
    }
    return m;
}

static uint64_t
Size(double u)
{
    int i = 1;
    while (kCdf[i][1] < u)
    {
        i++;
    }
    double f = (u - kCdf[i - 1][1]) / (kCdf[i][1] - kCdf[i - 1][1]);
    return std::max(1.0, kCdf[i - 1][0] + f * (kCdf[i][0] - kCdf[i - 1][0]));
}

int
main(int argc, char** argv)
{
    double seconds = 5;
    double load = 0.9;
    int dirs = 2;
    uint32_t seed = 1;
    uint32_t wanQueue = 10000;
    uint32_t bufMiB = 32;
    Net net;
    CommandLine cmd;
    cmd.AddValue("seconds", "simulated time", seconds);
    cmd.AddValue("load", "WAN load per direction", load);
    cmd.AddValue("dirs", "1: DC0 to DC1 only, 2: both ways", dirs);
    cmd.AddValue("seed", "traffic seed", seed);
    cmd.AddValue("wanqueue", "WAN port buffer, packets", wanQueue);
    cmd.AddValue("buf", "socket buffers, MiB", bufMiB);
    cmd.AddValue("count", "count packet-hops (untimed pass)", net.count);
    cmd.Parse(argc, argv);
    Tcp("ns3::TcpCubic", uint64_t(bufMiB) << 20);

    const uint32_t perTor = 12;
    const Time hop = MicroSeconds(25); // 4 hops there, 4 back: 200 us inside a DC
    Ptr<Node> border[2];
    std::vector<Ptr<Node>> host[2];
    std::vector<Ipv4Address> addr[2];
    for (uint32_t d = 0; d < 2; d++)
    {
        border[d] = net.AddNode();
    }
    net.Link(border[0], border[1], "1Gbps", MicroSeconds(4900), wanQueue, wanQueue); // port 0
    for (uint32_t d = 0; d < 2; d++)
    {
        // Addresses are 10.dc.tor.host.
        Net::SetRoute(border[d], [d](uint32_t, uint32_t dst) -> uint32_t {
            return ((dst >> 16) & 0xff) == d ? 1 + ((dst >> 8) & 0xff) : 0;
        });
        for (uint32_t t = 0; t < 2; t++)
        {
            Ptr<Node> tor = net.AddNode();
            net.Link(tor, border[d], "1Gbps", hop, 450, 450); // ToR port 0, border port 1+t
            Net::SetRoute(tor, [d, t](uint32_t, uint32_t dst) -> uint32_t {
                return ((dst >> 8) & 0xffff) == ((d << 8) | t) ? 1 + (dst & 0xff) : 0;
            });
            for (uint32_t i = 0; i < perTor; i++)
            {
                Ptr<Node> h = net.AddNode();
                net.Link(h, tor, "1Gbps", hop, 10000, 450);
                addr[d].push_back(net.Address(h, (10u << 24) | (d << 16) | (t << 8) | i));
                host[d].push_back(h);
                Sink(h);
            }
        }
    }

    std::mt19937_64 rng(seed);
    std::uniform_real_distribution<double> u(0, 1);
    uint64_t flows = 0;
    double rate = load * 1e9 / 8 * 1448 / 1502 / MeanSize(); // flows per second per direction
    for (int d = 0; d < dirs; d++)
    {
        for (double t = -std::log(1 - u(rng)) / rate; t < seconds;
             t += -std::log(1 - u(rng)) / rate)
        {
            uint32_t a = rng() % host[d].size();
            uint32_t b = rng() % host[1 - d].size();
            Flow(host[d][a], addr[1 - d][b], t, Size(u(rng)));
            flows++;
        }
    }
    printf("w2 flows=%lu mean_MB=%.3f load=%g dirs=%d\n",
           (unsigned long)flows,
           MeanSize() / 1e6,
           load,
           dirs);
    RunAndReport("w2", net, seconds);
}
