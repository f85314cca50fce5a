#!/bin/sh
# First process of the lab's guest: puts a copy-on-write view of the host's files in place, then starts guest.sh in it.
# Runs with busybox from memory. Everything written lands in memory; only the shared folder (job/out) reaches the host.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

for module in /modules/*.ko; do
    insmod "$module"
done

# Until lab_brake.py runs: a process that keeps the CPU busy when all others wait, so that the clock cannot leap.
(while :; do :; done) &
spinner=$!
renice -n 19 -p $spinner >/dev/null

# cache=loose: the guest keeps what it has read. Without it each opened file is a wait in real time, during which an
# idle guest's virtual clock leaps to its next timer.
NINE_P=trans=virtio,version=9p2000.L,access=any,msize=512000
mount -t 9p -o "ro,cache=loose,$NINE_P" host /host
mount -t tmpfs -o mode=0755,size=90% memory /memory
mkdir /memory/upper /memory/work /memory/kept
mount -t overlay -o lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work root /newroot

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

mkdir /newroot/run/headway
cp /job/* /newroot/run/headway
echo $spinner >/newroot/run/headway/spinner
for folder in dev proc sys; do
    mount --move "/$folder" "/newroot/$folder"
done
exec switch_root /newroot /bin/sh /run/headway/guest.sh
