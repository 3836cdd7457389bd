#!/bin/sh
# Loads every controller of a narrowsd for aarch64 into Debian's kernel 6.1 for that processor, on a machine that QEMU emulates, sends
# 64 MiB with each over the loopback, and unloads them: `check-aarch64.sh target/narrowsd-aarch64`. A minute.
set -eu
program=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
emulated=
trap '[ -z "$emulated" ] || kill "$emulated" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
dpkg --print-foreign-architectures | grep --quiet '^arm64$' || dpkg --add-architecture arm64
if ! { command -v qemu-system-aarch64 && command -v cpio; } >/dev/null; then
    "$here/apt.sh" update
    "$here/apt.sh" install --yes --no-install-recommends qemu-system-arm ipxe-qemu cpio
fi
search() { apt-cache search --names-only '^linux-image-6\.1\..*-cloud-arm64$' | cut -d' ' -f1 | sort -V | tail -1; }
kernel=$(search)
if [ -z "$kernel" ]; then
    "$here/apt.sh" update
    kernel=$(search)
fi
[ -n "$kernel" ] || { echo 'error: Debian has no kernel linux-image-6.1…-cloud-arm64' >&2; exit 3; }
chmod 755 "$work"
(cd "$work" && apt-get -o APT::Sandbox::User=root download "$kernel:arm64" busybox-static:arm64 >/dev/null)
for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$work/packages"; done

mkdir -p "$work/root/bin" "$work/root/proc" "$work/root/sys" "$work/root/dev" "$work/root/run" "$work/root/www"
cp "$work/packages/bin/busybox" "$work/root/bin/"
cp "$program" "$work/root/bin/narrowsd"
cat > "$work/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
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
poweroff -f
INIT
chmod +x "$work/root/init"
(cd "$work/root" && find . | cpio --quiet --create --format=newc | gzip -1 > "$work/initrd")
# In the background, so that it ends with this script; and without the terminal, whose settings it would change.
timeout 600 qemu-system-aarch64 -machine virt -cpu cortex-a72 -smp 1 -m 1024 -nographic -no-reboot -net none \
    -kernel "$work"/packages/boot/vmlinuz-* -initrd "$work/initrd" -append 'console=ttyAMA0 panic=-1 quiet' < /dev/null > "$work/said" 2>&1 &
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
