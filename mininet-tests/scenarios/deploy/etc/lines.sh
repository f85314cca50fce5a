#!/bin/sh
# The lines of three-sites.yaml between this machine (dl-a), switches that run on it too, and far hosts in namespaces.
# tx off: a switch in user space passes frames on as they are, without the checksum that a card would write.
set -eu
for host in dl-b pt-a cern; do
    ip netns add "$host"
    ip -n "$host" link set lo up
    port=$host
    [ "$host" != cern ] || port=cern0 # the bridge has the name
    ip link add "x-$host" type veth peer name "$port"
    ip link set "x-$host" netns "$host" name eth0
    ip -n "$host" link set eth0 up
    ip netns exec "$host" ethtool -K eth0 tx off
done
ip link add eth0 type veth peer name dl-a
ip link add eth1 type veth peer name dl-a1
ip link add dl-wan type veth peer name pt-wan
ip link add dl-far type veth peer name cern-wan
for each in eth0 dl-a eth1 dl-a1 dl-b pt-a cern0 dl-wan pt-wan dl-far cern-wan; do
    ip link set "$each" up
    ethtool -K "$each" tx off
done

ip address add 10.50.1.10/24 dev eth0
ip address add 2001:db8:50:1::10/64 dev eth0 nodad
ip address add 10.50.1.12/24 dev eth1
ip -n dl-b address add 10.50.1.11/24 dev eth0
ip -n pt-a address add 10.50.2.10/24 dev eth0
ip -n pt-a address add 2001:db8:50:2::10/64 dev eth0 nodad
ip -n cern address add 10.60.0.5/16 dev eth0
for to in 10.50.2.0/24 10.60.0.0/16 2001:db8:50:2::/64; do ip route add "$to" dev eth0; done
for to in 10.50.1.0/24 2001:db8:50:1::/64; do ip -n pt-a route add "$to" dev eth0; done
ip -n cern route add 10.50.1.0/24 dev eth0
# docs/network.md, "Several interfaces": what is from an interface leaves by it.
ip route add 10.50.2.0/24 dev eth1 table 101
ip rule add from 10.50.1.12 table 101
sysctl -q net.ipv4.conf.all.arp_announce=2 net.ipv4.conf.all.arp_ignore=1
