// Shared pieces of the programs w1, w2, w3 and w5: the links, the routes, the counters, and the line of figures at the end.
//
// They give ns-3 its best case: point-to-point links without ARP, one address per host, no trace sinks while timing, and a
// constant-time routing function in place of global routing's linear route scan. They compile against 3.37 and 3-dev.
#pragma once

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace peer
{
using namespace ns3;

// --- routing: dst address -> output interface, computed by a plain function ---------

template <class T>
struct RouteInputArgs;

// The four callbacks are passed by value in 3.37 and by reference in 3-dev.
template <class U, class M, class L, class E>
struct RouteInputArgs<bool (Ipv4RoutingProtocol::*)(Ptr<const Packet>,
                                                    const Ipv4Header&,
                                                    Ptr<const NetDevice>,
                                                    U,
                                                    M,
                                                    L,
                                                    E)>
{
    using Ucb = U;
    using Mcb = M;
    using Lcb = L;
    using Ecb = E;
};

class FuncRouting : public Ipv4RoutingProtocol
{
  public:
    // (source, destination) -> port number, ports being numbered from 0 in the order the
    // links were added to this node.
    using Fn = std::function<uint32_t(uint32_t src, uint32_t dst)>;
    using A = RouteInputArgs<decltype(&Ipv4RoutingProtocol::RouteInput)>;

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>,
                               const Ipv4Header& h,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& err) override
    {
        err = Socket::ERROR_NOTERROR;
        Ptr<Ipv4Route> r = Create<Ipv4Route>();
        r->SetDestination(h.GetDestination());
        r->SetGateway(Ipv4Address::GetZero());
        r->SetSource(m_ipv4->GetAddress(1, 0).GetLocal());
        r->SetOutputDevice(m_ipv4->GetNetDevice(1));
        return r;
    }

    bool RouteInput(Ptr<const Packet> p,
                    const Ipv4Header& h,
                    Ptr<const NetDevice> dev,
                    A::Ucb forward,
                    A::Mcb,
                    A::Lcb deliver,
                    A::Ecb) override
    {
        if (!m_fn) // a host: everything that arrives is for it
        {
            deliver(p, h, 1);
            return true;
        }
        uint32_t port = m_fn(h.GetSource().Get(), h.GetDestination().Get());
        forward(m_routes[port], p, h);
        return true;
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

    void NotifyInterfaceUp(uint32_t i) override
    {
        if (i == 0)
        {
            return; // loopback
        }
        Ptr<Ipv4Route> r = Create<Ipv4Route>();
        r->SetGateway(Ipv4Address::GetZero());
        r->SetOutputDevice(m_ipv4->GetNetDevice(i));
        m_routes.push_back(r);
    }

    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

    Fn m_fn;
    Ptr<Ipv4> m_ipv4;
    std::vector<Ptr<Ipv4Route>> m_routes;
};

class FuncRoutingHelper : public Ipv4RoutingHelper
{
  public:
    FuncRoutingHelper* Copy() const override
    {
        return new FuncRoutingHelper(*this);
    }

    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override
    {
        return CreateObject<FuncRouting>();
    }
};

// --- counters -----------------------------------------------------------------------

inline uint64_t g_hops = 0;     // packets (data or ACK) fully serialised onto a link
inline uint64_t g_drops = 0;    // dropped at a full queue

// --- topology -----------------------------------------------------------------------

struct Net
{
    bool count = false; // attach trace sinks (a separate, untimed pass)
    NodeContainer nodes;
    std::vector<Ptr<PointToPointNetDevice>> devices;
    uint32_t nextHost = 0;

    Ptr<Node> AddNode()
    {
        Ptr<Node> n = CreateObject<Node>();
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.SetRoutingHelper(FuncRoutingHelper());
        stack.Install(n);
        nodes.Add(n);
        if (count)
        {
            // Without a queue disc, a full device queue makes the layer above drop.
            n->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
                "TcDrop",
                Callback<void, Ptr<const Packet>>([](Ptr<const Packet>) { g_drops++; }));
        }
        return n;
    }

    static Ptr<FuncRouting> Routing(Ptr<Node> n)
    {
        return DynamicCast<FuncRouting>(n->GetObject<Ipv4>()->GetRoutingProtocol());
    }

    static void SetRoute(Ptr<Node> n, FuncRouting::Fn fn)
    {
        Routing(n)->m_fn = std::move(fn);
    }

    // Full-duplex link; qa/qb are the drop-tail device queues (packets) at a and b.
    // When ecnK > 0, an a-side and b-side RED queue disc marks above ecnK packets (DCTCP).
    void Link(Ptr<Node> a,
              Ptr<Node> b,
              const std::string& rate,
              Time delay,
              uint32_t qa,
              uint32_t qb,
              bool ecnA = false,
              bool ecnB = false,
              uint32_t ecnK = 0)
    {
        PointToPointHelper h;
        h.SetDeviceAttribute("DataRate", StringValue(rate));
        h.SetDeviceAttribute("Mtu", UintegerValue(1500));
        h.SetChannelAttribute("Delay", TimeValue(delay));
        NetDeviceContainer d = h.Install(a, b);
        Ptr<Node> n[2] = {a, b};
        uint32_t q[2] = {qa, qb};
        bool ecn[2] = {ecnA, ecnB};
        for (int i = 0; i < 2; i++)
        {
            auto dev = DynamicCast<PointToPointNetDevice>(d.Get(i));
            devices.push_back(dev);
            uint32_t devq = ecn[i] ? 1 : q[i];
            dev->GetQueue()->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, devq));
            if (ecn[i])
            {
                TrafficControlHelper tc;
                tc.SetRootQueueDisc("ns3::RedQueueDisc",
                                    "MaxSize",
                                    StringValue(std::to_string(q[i]) + "p"),
                                    "MinTh",
                                    DoubleValue(ecnK),
                                    "MaxTh",
                                    DoubleValue(ecnK),
                                    "QW",
                                    DoubleValue(1),
                                    "UseEcn",
                                    BooleanValue(true),
                                    "UseHardDrop",
                                    BooleanValue(false),
                                    "Gentle",
                                    BooleanValue(false),
                                    "MeanPktSize",
                                    UintegerValue(1500),
                                    "LinkBandwidth",
                                    StringValue(rate),
                                    "LinkDelay",
                                    TimeValue(delay));
                tc.Install(dev);
            }
            Ptr<Ipv4> ip = n[i]->GetObject<Ipv4>();
            ip->SetUp(ip->AddInterface(dev));
            if (count)
            {
                dev->TraceConnectWithoutContext(
                    "PhyTxEnd",
                    Callback<void, Ptr<const Packet>>([](Ptr<const Packet>) { g_hops++; }));
            }
        }
    }

    // Gives the host's (only) interface its address; call after its link was added.
    Ipv4Address Address(Ptr<Node> host, uint32_t addr)
    {
        Ptr<Ipv4> ip = host->GetObject<Ipv4>();
        Ipv4Address a(addr);
        ip->AddAddress(1, Ipv4InterfaceAddress(a, Ipv4Mask("255.0.0.0")));
        ip->SetForwarding(1, false);
        return a;
    }
};

// --- traffic ------------------------------------------------------------------------

inline void
Tcp(const std::string& cc, uint64_t bufBytes)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(cc)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1)); // delayed ACK off
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(bufBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(bufBytes));
    Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(14480));
}

inline void
Sink(Ptr<Node> host, uint16_t port = 9)
{
    PacketSinkHelper h("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    h.Install(host).Start(Seconds(0));
}

// bytes == 0: unlimited
inline void
Flow(Ptr<Node> from, Ipv4Address to, double start, uint64_t bytes, uint16_t port = 9)
{
    BulkSendHelper h("ns3::TcpSocketFactory", InetSocketAddress(to, port));
    h.SetAttribute("MaxBytes", UintegerValue(bytes));
    h.Install(from).Start(Seconds(start));
}

// --- measuring ----------------------------------------------------------------------

inline double
Cpu()
{
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + 1e-6 * u.ru_utime.tv_usec;
}

// Peak resident memory. Not `ru_maxrss`: that one remembers the process from which this one was started.
inline double
PeakMiB()
{
    std::ifstream status("/proc/self/status");
    std::string word;
    double kib = 0;
    while (status >> word)
    {
        if (word == "VmHWM:")
        {
            status >> kib;
        }
    }
    return kib / 1024;
}

// Runs to `seconds` of simulated time and prints one line of key=value figures.
inline void
RunAndReport(const char* name, Net& net, double seconds)
{
    double c0 = Cpu();
    auto w0 = std::chrono::steady_clock::now();
    double setupMiB = PeakMiB();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    double c1 = Cpu();
    uint64_t rx = 0;
    for (uint32_t i = 0; i < net.nodes.GetN(); i++)
    {
        Ptr<Node> n = net.nodes.Get(i);
        for (uint32_t a = 0; a < n->GetNApplications(); a++)
        {
            if (auto s = DynamicCast<PacketSink>(n->GetApplication(a)))
            {
                rx += s->GetTotalRx();
            }
        }
    }
    double run = c1 - c0;
    double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - w0).count();
    printf("%s sim_s=%g setup_user_s=%.3f run_user_s=%.3f run_wall_s=%.3f events=%lu ns_per_event=%.1f "
           "rx_MB=%.1f rss_setup_MiB=%.1f rss_peak_MiB=%.1f",
           name,
           seconds,
           c0,
           run,
           wall,
           (unsigned long)Simulator::GetEventCount(),
           run * 1e9 / Simulator::GetEventCount(),
           rx / 1e6,
           setupMiB,
           PeakMiB());
    if (net.count)
    {
        printf(" hops=%lu drops=%lu", (unsigned long)g_hops, (unsigned long)g_drops);
    }
    printf("\n");
    Simulator::Destroy();
}

} // namespace peer
