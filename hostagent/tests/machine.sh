# A machine of its own for systemd: this one's files under an overlay, its own namespaces, no service but what is asked for.
# Run by unshare with namespaces for mounts, processes, network and cgroups; $1 is an empty folder, the others are to be
# seen in the machine wherever they are.
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
mount --rbind /dev dev
mount -t proc proc proc
mount --bind proc/sys/net proc/sys/net
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount --bind /proc/sys/net proc/sys/net
mount -t sysfs sysfs sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs none run
mount -t tmpfs none tmp
for folder in "${@:2}"; do
    if [ ! -e ".$folder" ]; then # its new /tmp or /run hides it
        mkdir -p ".$folder"
        mount --bind "$folder" ".$folder"
    fi
done
mkdir -p "usr/lib/modules/$(uname -r)"
touch "usr/lib/modules/$(uname -r)/modules.dep" # ProtectKernelModules= hides what is there, and only that
rm -rf etc/systemd/system/*.wants etc/fstab
cd etc/systemd/system
for unit in systemd-sysctl.service systemd-binfmt.service systemd-modules-load.service systemd-tmpfiles-setup.service \
    systemd-tmpfiles-setup-dev.service systemd-udevd.service systemd-udev-trigger.service systemd-udevd-kernel.socket \
    systemd-udevd-control.socket systemd-journald.service systemd-journald.socket systemd-journald-dev-log.socket \
    systemd-timesyncd.service systemd-networkd.service systemd-remount-fs.service proc-sys-fs-binfmt_misc.automount \
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount tmp.mount; do
    ln -sf /dev/null "$unit"
done
printf '[Unit]\nDescription=nothing\n' > nothing.target
cd "$1/root"
mkdir -p mnt
pivot_root . mnt
umount -l /mnt
ip link set lo up
export container=test
exec /lib/systemd/systemd --system --unit=nothing.target --log-target=null --show-status=no
