#!/bin/sh
# First process of the lab's guest. Until it says "ready" it needs nothing of the host: that is where snapshots are
# taken. Then it is told its job, and puts a copy-on-write view of the host's files in place; guest.sh goes on in it.
# Runs with busybox from memory. Everything written lands in memory; only the shared folder (out) reaches the host.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
ln -sf /proc/self/fd /dev/fd
ln -sf /proc/self/fd/0 /dev/stdin
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr
hostname lab
ip link set lo up

for module in /modules/*.ko; do
    insmod "$module"
done

# All emulated hosts share this limit (pages). With Debian's, the window of a 10 Gbit/s sender makes its receiver drop.
echo "1000000 1200000 1400000" >/proc/sys/net/ipv4/tcp_mem

# Open vSwitch 3.1 counts CPUs at most every 10 s, the first time too (count_cpu_cores, lib/ovs-thread.c): a vswitchd
# started in the first 10 s after boot runs with no thread for new flows and loses every packet. Idle time is skipped.
sleep 11

# Until brake.py runs: a process that keeps the CPU busy when all others wait, so that the clock cannot leap.
(while :; do :; done) &
spinner=$!
renice -n 19 -p $spinner >/dev/null

for entry in /sys/class/virtio-ports/*; do
    [ "$(cat "$entry/name")" = headway.job ] && port=/dev/${entry##*/}
done
exec 3<>"$port"
echo ready >&3
read -r now job <&3
exec 3<&-
date -s "@$now" >/dev/null

# cache=loose: the guest keeps what it has read. Without it each opened file is a wait in real time, during which an
# idle guest's virtual clock leaps to its next timer. noxattr: the overlay would ask for attributes of each file it meets.
NINE_P=trans=virtio,version=9p2000.L,access=any,msize=512000,noxattr
mount -t 9p -o "ro,cache=loose,$NINE_P" host /host
mount -t tmpfs -o mode=0755,size=90% memory /memory
mkdir /memory/upper /memory/work /memory/kept
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /newroot
cp "/host$job"/* /job

# Folders that daemons write start empty: what the host's own daemons left there does not hold here.
kept=$(cat /job/kept)
mkdir -p "/newroot$kept"
mount --bind "/newroot$kept" /memory/kept
for folder in /run /tmp /var/tmp /var/log /etc/openvswitch /var/lib/openvswitch; do
    mkdir -p "/newroot$folder"
    mount -t tmpfs -o mode=0755 "$folder" "/newroot$folder"
    case "$kept" in "$folder"/*) hidden=yes ;; esac
done
chmod 1777 /newroot/tmp /newroot/var/tmp
mkdir -p /newroot/run/lock /newroot/run/netns
if [ -n "$hidden" ]; then
    mkdir -p "/newroot$kept"
    mount --move /memory/kept "/newroot$kept"
else
    umount /memory/kept
fi

if [ -f /job/out ]; then
    out=$(cat /job/out)
    mkdir -p "/newroot$out"
    mount -t 9p -o "rw,cache=mmap,$NINE_P" out "/newroot$out" || echo "cannot mount $out" >/dev/console
fi

version=$(uname -r)
mkdir -p "/newroot/lib/modules/$version"
mount --bind "/host$(cat /job/modules)" "/newroot/lib/modules/$version"

echo "127.0.1.1 lab" >>/newroot/etc/hosts
mkdir /newroot/run/headway
cp /job/* /newroot/run/headway
echo $spinner >/newroot/run/headway/spinner
for folder in dev proc sys; do
    mount --move "/$folder" "/newroot/$folder"
done
exec switch_root /newroot /bin/sh /run/headway/guest.sh
