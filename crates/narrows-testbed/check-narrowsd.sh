#!/bin/sh
# Runs a static narrowsd on a machine that QEMU emulates: `check-narrowsd.sh PROGRAM arm64`, on Debian's kernel 6.1 for that processor,
# or `check-narrowsd.sh PROGRAM FOLDER`, on a kernel that `make guest-kernel` has unpacked. It loads every controller, sends 64 MiB with
# each over the loopback, and unloads them; sends the same between two hosts through a pair of edge routers; and starts and ends the
# near-source loop. Three minutes. PROGRAM may be a .deb: Debian's dpkg for that processor installs it there first, a route names a
# controller of it, and in the end dpkg removes it.
set -eu
program=$(realpath "$1")
case $program in *.deb) installs=yes ;; *) installs= ;; esac
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
# What busybox does not do: device settings; and for a package, dpkg, and routes that name a controller.
needed='busybox-static ethtool libmnl0 libc6'
[ -z "$installs" ] || needed="$needed dpkg tar libbz2-1.0 liblzma5 libmd0 libselinux1 libpcre2-8-0 libzstd1 zlib1g libacl1 \
    iproute2 libbpf1 libelf1 libbsd0 libcap2"
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
    # shellcheck disable=SC2086  # names are words
    fetch "$kernel:arm64" $(printf '%s:arm64 ' $needed)
    unpacked=$work/packages
    emulator='qemu-system-aarch64 -machine virt -cpu cortex-a72'
    console=ttyAMA0
else
    install qemu-system-x86_64 qemu-system-x86
    # shellcheck disable=SC2086
    fetch $needed
    unpacked=$(realpath "$2")
    emulator='qemu-system-x86_64 -machine q35 -cpu max'
    console=ttyS0
fi
for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$work/packages"; done

for folder in bin etc lib proc sys dev run sbin usr/bin www; do mkdir -p "$work/root/$folder"; done
# What the kernel asks modprobe for.
modules=$(basename "$unpacked"/lib/modules/*)
mkdir -p "$work/root/lib/modules/$modules"
for module in drivers/net/veth net/sched/sch_ingress net/sched/cls_bpf; do
    cp "$unpacked/lib/modules/$modules/kernel/$module.ko" "$work/root/lib/modules/$modules/"
done
cp "$work/packages/bin/busybox" "$work/root/bin/"
# The programs that need libraries.
for name in sbin/ethtool usr/sbin/ethtool bin/ip bin/tar usr/bin/dpkg usr/bin/dpkg-deb usr/bin/dpkg-query usr/bin/dpkg-split; do
    [ ! -e "$work/packages/$name" ] || cp "$work/packages/$name" "$work/root/usr/bin/"
done
find "$work/packages" -name 'ld-linux-*' -type f -exec cp {} "$work/root/lib/" ';'
find "$work/packages" -path '*-linux-gnu/lib*.so*' ! -path '*/gconv/*' -exec cp -P {} "$work/root/lib/" ';'
ln -s lib "$work/root/lib64"
if [ -n "$installs" ]; then
    cp "$program" "$work/root/narrowsd.deb"
    mkdir -p "$work/root/etc/dpkg/dpkg.cfg.d"
    for folder in info updates triggers; do mkdir -p "$work/root/var/lib/dpkg/$folder"; done
    touch "$work/root/var/lib/dpkg/status" "$work/root/var/lib/dpkg/available"
    # dpkg wants them there, and this package needs neither.
    for name in ldconfig start-stop-daemon; do
        printf '#!/bin/sh\n' > "$work/root/usr/bin/$name"
        chmod 755 "$work/root/usr/bin/$name"
    done
else
    cp "$program" "$work/root/usr/bin/narrowsd"
fi
cat > "$work/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install /bin
export PATH=/usr/bin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
insmod /lib/modules/*/veth.ko; insmod /lib/modules/*/sch_ingress.ko; insmod /lib/modules/*/cls_bpf.ko
ip link set lo up
dd if=/dev/zero of=/www/zeros bs=1M count=64 2>/dev/null
uname -srm
files() { find /usr /etc /bin /sbin /lib ! -type d | sort; }
# By their paths: the shell prefers what busybox has of the same name.
dpkg=/usr/bin/dpkg
state() { /usr/bin/dpkg-query --show --showformat '${Package} ${Architecture}: ${Status}' narrowsd 2>&1; }
if [ -e /narrowsd.deb ]; then
    files > /run/before
    $dpkg --install /narrowsd.deb || echo "installing failed with $?"
    echo "installed: $(state)"
    echo "other than in the package: [$($dpkg --verify narrowsd 2>&1)]"
    echo "version: $(narrowsd --version), from $(command -v narrowsd)"
fi
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

# Hosts r and s, joined; host a, edge routers p and f, host b: a namespace each, which lives as long as its process.
for name in r s a p f b; do
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
if [ -e /narrowsd.deb ]; then
    # As docs/how-to/deploy.md says, one route at both hosts.
    link eth-r $r eth-s $s
    nsenter -t $r -n ip address add 198.51.100.1/24 dev eth-r
    nsenter -t $s -n ip address add 198.51.100.2/24 dev eth-s
    narrowsd cc load gemini --set capacity=1Gbps
    for host in $r $s; do nsenter -t $host -n narrowsd cc route add 198.51.100.0/24 gemini; done
    nsenter -t $r -n narrowsd cc route list
    nsenter -t $s -n httpd -f -p 80 -h /www &
    server=$!
    sleep 1
    nsenter -t $r -n wget -q -O /run/got http://198.51.100.2/zeros
    kill $server
    narrowsd cc status gemini > /run/status
    sed 's/^/status: /' /run/status
    echo "the route carried $(wc -c < /run/got) bytes: $(grep flows: /run/status)"
    $dpkg --remove narrowsd
    echo "removing with a route ended with $?: $(state)"
    $dpkg --install /narrowsd.deb
    echo "installed again: $(narrowsd cc status gemini | head -1)"
    for host in $r $s; do nsenter -t $host -n narrowsd cc route remove 198.51.100.0/24; done
    echo "routes left: $(nsenter -t $r -n narrowsd cc route list), $(nsenter -t $r -n /usr/bin/ip route | grep -c congctl)"
    narrowsd cc unload gemini
fi
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
if [ -e /narrowsd.deb ]; then
    $dpkg --remove narrowsd
    echo "removing with edge routers ended with $?: $(state)"
fi
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
if [ -e /narrowsd.deb ]; then
    narrowsd cc load vegas
    $dpkg --remove narrowsd
    $dpkg --purge narrowsd
    echo "purged: $(state)"
    files > /run/after
    ls /var/lib/dpkg/info | grep narrowsd >> /run/after
    find /run/narrows -size +0 -type f >> /run/after
    echo "files left: [$(diff /run/before /run/after)]"
    echo "kernel left: $(cat /proc/sys/net/ipv4/tcp_available_congestion_control) [$(ls /sys/fs/bpf)]"
fi
poweroff -f
INIT
chmod +x "$work/root/init"
(cd "$work/root" && find . | cpio --quiet --create --format=newc | gzip -1 > "$work/initrd")
# In the background, so that it ends with this script; and without the terminal, whose settings it would change.
# shellcheck disable=SC2086  # options are words
timeout 900 $emulator -smp 1 -m 1024 -nographic -no-reboot -net none -kernel "$unpacked"/boot/vmlinuz-* \
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
if [ -n "$installs" ]; then
    must_say '^installed: narrowsd [a-z0-9]*: install ok installed'
    must_say '^other than in the package: \[\]'
    must_say '^version: narrowsd .*, from /usr/bin/narrowsd'
    must_say '^198\.51\.100\.0/24 uses narrows_gemini (table main): in force'
    must_say '^the route carried 67108864 bytes:.*flows: 0 now, 2 since'
    must_say '^removing with a route ended with 1: narrowsd .* ok installed'
    must_say '^installed again: gemini: registered as narrows_gemini, pinned'
    must_say '^routes left: no route was changed, 0'
    must_say '^removing with edge routers ended with 1: narrowsd .* ok installed'
    must_say '^purged: dpkg-query: no packages found'
    must_say '^files left: \[\]'
    must_say '^kernel left: reno cubic *\[\]'
fi
