#!/bin/sh
# Runs a static narrowsd on a machine that QEMU emulates: `check-narrowsd.sh PROGRAM arm64`, on Debian's kernel 6.1 for that processor,
# or `check-narrowsd.sh PROGRAM FOLDER`, on a kernel that `make guest-kernel` has unpacked. It loads every controller, sends 64 MiB with
# each over the loopback, and unloads them; sends the same between two hosts through a pair of edge routers; and starts and ends the
# near-source loop. Three minutes.
set -eu
program=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
emulated=
trap '[ -z "$emulated" ] || kill "$emulated" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
chmod 755 "$work"
fetch() {
    (cd "$work" && apt-get -o APT::Sandbox::User=root download "$@" >/dev/null) || {
        "$here/apt.sh" update
        (cd "$work" && apt-get -o APT::Sandbox::User=root download "$@" >/dev/null)
    }
}
install() { # PACKAGE… unless there is the program
    wanted=$1
    shift
    command -v "$wanted" >/dev/null && command -v cpio >/dev/null || {
        "$here/apt.sh" update
        "$here/apt.sh" install --yes --no-install-recommends "$@" cpio
    }
}
if [ "$2" = arm64 ]; then
    dpkg --print-foreign-architectures | grep --quiet '^arm64$' || dpkg --add-architecture arm64
    install qemu-system-aarch64 qemu-system-arm ipxe-qemu
    search() { apt-cache search --names-only '^linux-image-6\.1\..*-cloud-arm64$' | cut -d' ' -f1 | sort -V | tail -1; }
    kernel=$(search)
    if [ -z "$kernel" ]; then
        "$here/apt.sh" update
        kernel=$(search)
    fi
    [ -n "$kernel" ] || { echo 'error: Debian has no kernel linux-image-6.1…-cloud-arm64' >&2; exit 3; }
    fetch "$kernel:arm64" busybox-static:arm64 ethtool:arm64 libmnl0:arm64 libc6:arm64
    unpacked=$work/packages
    emulator='qemu-system-aarch64 -machine virt -cpu cortex-a72'
    console=ttyAMA0
else
    install qemu-system-x86_64 qemu-system-x86
    fetch busybox-static ethtool libmnl0 libc6
    unpacked=$(realpath "$2")
    emulator='qemu-system-x86_64 -machine q35 -cpu max'
    console=ttyS0
fi
for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$work/packages"; done

for folder in bin etc lib proc sys dev run sbin www; do mkdir -p "$work/root/$folder"; done
# What the kernel asks modprobe for.
modules=$(basename "$unpacked"/lib/modules/*)
mkdir -p "$work/root/lib/modules/$modules"
for module in drivers/net/veth net/sched/sch_ingress net/sched/cls_bpf; do
    cp "$unpacked/lib/modules/$modules/kernel/$module.ko" "$work/root/lib/modules/$modules/"
done
cp "$work/packages/bin/busybox" "$work/root/bin/"
cp "$program" "$work/root/bin/narrowsd"
# The only program that needs libraries.
for file in "$work"/packages/sbin/ethtool "$work"/packages/usr/sbin/ethtool; do
    [ ! -e "$file" ] || cp "$file" "$work/root/bin/"
done
for library in 'ld-linux-*' 'libc.so.6' 'libm.so.6' 'libmnl.so.0.*'; do
    find "$work/packages" -name "$library" -type f -exec cp {} "$work/root/lib/" ';'
done
(cd "$work/root/lib" && ln -s libmnl.so.0.* libmnl.so.0)
ln -s lib "$work/root/lib64"
cat > "$work/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
insmod /lib/modules/*/veth.ko; insmod /lib/modules/*/sch_ingress.ko; insmod /lib/modules/*/cls_bpf.ko
ip link set lo up
dd if=/dev/zero of=/www/zeros bs=1M count=64 2>/dev/null
uname -srm
for controller in newreno vegas dctcp gemini; do
    # No device of this machine states its rate.
    [ $controller = gemini ] && options='--set capacity=1Gbps' || options=
    narrowsd cc load $controller $options
    echo narrows_$controller > /proc/sys/net/ipv4/tcp_congestion_control
    httpd -f -p 80 -h /www &
    server=$!
    sleep 1
    wget -q -O /run/got http://127.0.0.1/zeros
    echo "$controller carried $(wc -c < /run/got) bytes: $(narrowsd cc status narrows_$controller | grep flows:)"
    kill $server
    echo cubic > /proc/sys/net/ipv4/tcp_congestion_control
    narrowsd cc unload $controller
done
echo "left: $(cat /proc/sys/net/ipv4/tcp_available_congestion_control)"

# Host a, edge routers p and f, host b: a namespace each, which lives as long as its process.
for name in a p f b; do
    unshare -n sleep 3600 &
    eval "$name=$!"
done
sleep 1
link() { # DEVICE PROCESS DEVICE PROCESS
    ip link add dev "$1" type veth
    # Busybox's ip names no peer.
    ip link set dev "$(ls /sys/class/net | grep '^veth')" name "$3"
    ip link set dev "$1" netns "$2"
    ip link set dev "$3" netns "$4"
    nsenter -t "$2" -n ip link set dev "$1" up
    nsenter -t "$4" -n ip link set dev "$3" up
}
link eth-a $a in-p $p; link out-p $p out-f $f; link in-f $f eth-b $b
nsenter -t $a -n ip address add 192.0.2.1/24 dev eth-a
nsenter -t $b -n ip address add 192.0.2.2/24 dev eth-b
# Hosts whose devices would join packets send them one by one, with their checksums.
nsenter -t $a -n ethtool -K eth-a tx off tso off gso off >/dev/null
nsenter -t $b -n ethtool -K eth-b tx off tso off gso off >/dev/null
head -c 32 /dev/urandom | hexdump -v -e '1/1 "%02x"' > /run/key
chmod 600 /run/key
edge() { # PROCESS NAME PEER INSIDE OUTSIDE
    nsenter -t "$1" -n narrowsd bridge --inside "$4" --outside "$5" --name "$2" --peer "$3" --key /run/key --rate 100Mbps &
}
edge $p paris frankfurt in-p out-p; edge $f frankfurt paris in-f out-f
sleep 3
nsenter -t $b -n httpd -f -p 80 -h /www &
sleep 1
rm /run/got
nsenter -t $a -n wget -q -O /run/got http://192.0.2.2/zeros
echo "edge routers carried $(wc -c < /run/got) bytes, $(cmp /run/got /www/zeros && echo unchanged)"
# What the boxes believed of each other: loss-eligible packets, and messages about them.
narrowsd bridge status | grep '"believed"'
killall narrowsd
sleep 1
nsenter -t $p -n narrowsd bridge remove --inside in-p --outside out-p
nsenter -t $f -n narrowsd bridge remove --inside in-f --outside out-f
echo "edge routers left: $(nsenter -t $p -n narrowsd bridge status)"

cat > /run/senders.toml <<END
[[sender]]
identity = "0x300000007"
address = "192.0.2.254"
host = "192.0.2.1"
key-file = "key"
END
narrowsd near-source --senders /run/senders.toml --line-rate 1Gbps > /run/near-source &
near=$!
sleep 3
kill -TERM $near
wait $near
echo "near-source ended with $?: $(head -1 /run/near-source)"
poweroff -f
INIT
chmod +x "$work/root/init"
(cd "$work/root" && find . | cpio --quiet --create --format=newc | gzip -1 > "$work/initrd")
# In the background, so that it ends with this script; and without the terminal, whose settings it would change.
# shellcheck disable=SC2086  # options are words
timeout 600 $emulator -smp 1 -m 1024 -nographic -no-reboot -net none -kernel "$unpacked"/boot/vmlinuz-* \
    -initrd "$work/initrd" -append "console=$console panic=-1 quiet" < /dev/null > "$work/said" 2>&1 &
emulated=$!
wait "$emulated" || true
emulated=
cat "$work/said"
must_say() {
    grep --quiet "$1" "$work/said" || { echo "error: it does not say: $1" >&2; exit 1; }
}
for controller in newreno vegas dctcp gemini; do
    must_say "^$controller carried 67108864 bytes:.*flows: 0 now, 2 since"
    must_say "^$controller is unloaded"
done
must_say '^left: reno cubic[[:space:]]*$'
must_say '^edge routers carried 67108864 bytes, unchanged'
[ "$(grep --count '"believed": [1-9]' "$work/said")" = 2 ] || { echo 'error: an edge router believed nothing' >&2; exit 1; }
must_say '^edge routers left: \[\]'
must_say '^near-source ended with 0: listens to 1'
