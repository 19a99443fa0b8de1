#!/usr/bin/env bash
# Runs a script as root on a kernel of its own (user-mode Linux) with netem, over this machine's files, which it cannot change: for machines
# whose kernel has no netem. Needs no rights. Time passes as outside, on one processor.
#   scripts/on-uml.sh SCRIPT [ARGUMENT...]     (arguments without blanks; writable are /run and TMPDIR)
#   scripts/on-uml.sh --check                  says what is missing
set -euo pipefail
if [ $$ = 1 ]; then # this is the init of that kernel
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run/tmp
    mount -t proc proc /proc
    mount -t sysfs sysfs /sys
    mount -t tmpfs tmpfs /run
    mkdir -p /run/tmp
    mount -t devtmpfs dev /dev 2>/dev/null || true
    mkdir -p /dev/pts /dev/shm
    mount -t devpts devpts /dev/pts
    mount -t tmpfs tmpfs /dev/shm
    for module in sch_netem veth tun; do insmod "$(find /usr/lib/uml/modules -name "$module.ko" | head -n 1)"; done
    ip link set lo up
    echo "on-uml: begin"
    status=0
    bash "$@" || status=$?
    echo "on-uml: exit $status"
    echo o >/proc/sysrq-trigger # power off
    sleep 10
fi
[ $# -ge 1 ] || { sed -n 's/^#   /usage: /p' "$0"; exit 2; }
command -v linux.uml >/dev/null || { echo "user-mode Linux is not there: on Debian, apt-get install user-mode-linux kmod"; exit 1; }
find /usr/lib/uml/modules -name sch_netem.ko 2>/dev/null | grep -q . || { echo "this user-mode Linux has no netem"; exit 1; }
PATH=$PATH:/usr/sbin:/sbin command -v insmod >/dev/null || { echo "insmod is not there: on Debian, apt-get install kmod"; exit 1; }
[ "$1" != --check ] || exit 0
script=$(readlink -f "$1")
shift
said=$(mktemp)
trap 'rm -f "$said"' EXIT
timeout -k 5 "${LIMIT:-600}" linux.uml rootfstype=hostfs rootflags=/ ro "init=$(readlink -f "$0")" mem=2G quiet \
    con=null con0=null,fd:1 con1=null -- "$script" "$@" </dev/null >"$said" 2>&1 || true
tr -d '\r' <"$said" | sed -n '/^on-uml: begin/,/^on-uml: exit/{/^on-uml:/!p}'
status=$(sed -n 's/^on-uml: exit \([0-9]*\).*/\1/p' "$said")
[ -n "$status" ] || { echo "on-uml: the kernel did not come to the end of the script:"; tail -n 20 "$said"; exit 1; }
exit "$status"
