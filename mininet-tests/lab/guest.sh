#!/bin/sh
# Second half of the guest's start, run with the host's own programs: the brake, then the command.
# The command's two outputs go through two named virtio ports, each ended by the job's token (and the exit code), after
# which the launcher stops the machine.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
job=/run/headway
ulimit -n 65536

mkfifo "$job/brake.fifo"
"$(cat "$job/python")" -I -S "$job/brake.py" >"$job/brake.fifo" &
read -r brake <"$job/brake.fifo"
[ "$brake" = ready ] || echo "lab: no brake: the clock leaps when files of the host are opened" >/dev/console
kill "$(cat "$job/spinner")"
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
