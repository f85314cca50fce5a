#!/bin/sh
# Second half of the guest's start, run with the host's own programs: kernel modules, mounts, then the command.
# The command's two outputs go through two named virtio ports, each ended by the job's token (and the exit code), after
# which the launcher stops the machine.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
job=/run/headway

mkdir -p /dev/pts /dev/shm /run/lock /run/netns
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
echo "127.0.1.1 lab" >>/etc/hosts
ulimit -n 65536
ip link set lo up
# All emulated hosts share this limit (pages). With Debian's, the window of a 10 Gbit/s sender makes its receiver drop.
sysctl -qw net.ipv4.tcp_mem="1000000 1200000 1400000"

# One name that a kernel lacks must not keep the others out: modprobe -a goes on. "unix" and the like are built in.
modprobe -a -q openvswitch veth dummy ifb tun \
    sch_netem sch_htb sch_fq sch_fq_codel sch_ingress sch_prio sch_tbf sch_hfsc \
    act_mirred act_police act_gact act_skbedit cls_matchall cls_u32 cls_flower cls_bpf act_bpf \
    tcp_bbr tcp_scalable tcp_htcp tcp_highspeed tcp_illinois tcp_dctcp sctp tcp_diag inet_diag \
    nf_tables nft_ct nft_limit nft_chain_nat ip_tables iptable_filter

mkfifo "$job/brake.fifo"
"$(cat "$job/python")" -I -S "$job/brake.py" >"$job/brake.fifo" &
read -r brake <"$job/brake.fifo"
[ "$brake" = ready ] || echo "lab: no brake: the clock leaps when files of the host are opened" >/dev/console
kill "$(cat "$job/spinner")"

# Open vSwitch 3.1 counts CPUs at most every 10 s, the first time too (count_cpu_cores, lib/ovs-thread.c): a vswitchd
# started in the first 10 s after boot runs with no thread for new flows and loses every packet. Idle time is skipped.
sleep 11
echo '[ready]' >/dev/kmsg

port() {
    for entry in /sys/class/virtio-ports/*; do
        [ "$(cat "$entry/name")" = "$1" ] && echo "/dev/${entry##*/}"
    done
}

# Through a fifo each, because a port can be opened only once and programs do open /dev/stderr anew.
for stream in out err; do
    mkfifo "$job/$stream.fifo"
    cat "$job/$stream.fifo" >"$(port "headway.$stream")" &
done
exec >"$job/out.fifo" 2>"$job/err.fifo" </dev/null

setsid sh "$job/command.sh"
code=$?
sync
printf '%s' "$(cat "$job/token")" >&2
printf '%s%d\n' "$(cat "$job/token")" "$code"
exec sleep infinity
