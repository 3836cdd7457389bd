#!/bin/sh
# Builds the programs against Debian's libns3-dev into $1 (default: target/ns3). Installs nothing.
set -eu
cd "$(dirname "$0")/../.."
out=${1:-target/ns3}
if [ ! -f /usr/include/ns3/core-module.h ]; then
    echo 'ns-3 is not installed: apt-get install libns3-dev' >&2
    exit 3
fi
mkdir -p "$out"
for work in w1 w2 w3 w5; do
    [ "$out/$work" -nt "bench/ns3/$work.cc" ] && [ "$out/$work" -nt bench/ns3/common.h ] && continue
    g++ -std=c++17 -O3 "bench/ns3/$work.cc" -o "$out/$work" -lns3-applications -lns3-internet -lns3-point-to-point \
        -lns3-traffic-control -lns3-network -lns3-core
done
dpkg-query --showformat='${Version} of Debian' --show libns3-dev 2>/dev/null || pkg-config --modversion ns3-core
