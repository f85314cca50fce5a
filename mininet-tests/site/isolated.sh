#!/bin/sh
# Run a command in network, mount and process namespaces of its own: isolated.sh COMMAND ARG...
# However it ends, even killed, the kernel then ends every process it left, and removes every interface, bridge and
# qdisc with the namespace. Open vSwitch's standard folders are empty and ours in it.
set -eu
# Mininet asks for distutils: Python's own, not that of setuptools, which takes a fifth of the time of a scenario's imports.
export SETUPTOOLS_USE_DISTUTILS=stdlib
exec unshare --net --mount --pid --fork --kill-child --mount-proc -- sh -euc '
for folder in /etc/openvswitch /run/openvswitch /var/log/openvswitch; do
    mkdir -p "$folder"
    mount -t tmpfs -o mode=0755 "$folder" "$folder"
done
ip link set lo up
exec "$@"' isolated "$@"
