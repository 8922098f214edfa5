#!/bin/sh
# Second half of a boot, in the machine's own namespaces: mounts their filesystems, detaches the host's files,
# and only then writes below the disk's top level, where every link now ends inside the machine.
# Prints two lines and waits for the server after each: `map` (it writes the id map from outside) and `ready`
# (it records process 1 and attaches the network).
set -eu

if [ "$MODE" = mapped ] && [ "${1:-}" != mapped ]; then
  echo map
  # `set -e` ignores a failed read in an && list. It means the server is gone, so this machine ends too.
  read -r answer && [ "$answer" = mapped ] || exit 1
  exec setpriv --reuid 0 --regid 0 --clear-groups --inh-caps=-all --ambient-caps=-all \
    /bin/sh "$ROOT/run/machine/assemble" mapped
fi

cd "$ROOT"
mount -t proc -o nosuid,nodev,noexec proc proc
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys 2>/dev/null || true
mount -t devpts -o newinstance,max=256,ptmxmode=0666,mode=620,nosuid,noexec devpts dev/pts
echo "$USER_LIMITS" | while read -r name value; do
  [ ! -e "proc/sys/user/$name" ] || echo "$value" >"proc/sys/user/$name"
done
# Read-only, because the machine's root could raise these limits again.
mount --bind proc/sys/user proc/sys/user
mount -o remount,bind,ro,nosuid,nodev,noexec proc/sys/user
# The hostname program refuses a trailing hyphen, which the API allows.
hostname "${NAME%"${NAME##*[!-]}"}" ||
  echo "The machine keeps this host's name: the hostname program is missing." >&2
{ ip link set lo up || ifconfig lo up ||
  perl -e 'socket(S,2,2,0);$request=pack("a16s","lo",0x41);exit !ioctl(S,0x8914,$request)'; } 2>/dev/null ||
  echo "The machine's loopback stays down: this host has neither ip, ifconfig nor perl." >&2

# A locked mount can't become the root, but a new recursive bind of it can.
mount --rbind "$ROOT" "$ROOT"
cd "$ROOT"
# The tenant's /etc/ld.so.preload and ld.so.cache would run its code in the programs below: without the filter, and
# in umount even beside the host's files. /etc stays covered until the last of them has run.
mount -t tmpfs -o ro,size=4k,mode=755 cover etc
pivot_root . run/old
cd /
umount -l /run/old
rmdir /run/old

# Keeps the home reachable by its working directory after a filesystem has covered it.
cd /home/ubuntu 2>/dev/null || cd /
echo "$MOUNTS" | while read -r id target; do
  [ -n "$id" ] || continue
  mkdir -p "$target"
  # A link of the tenant may lead to programs that run below, still outside the filter. A running sibling could
  # change one on a shared filesystem after this check, so the mount names the directory that was checked.
  (
    cd "$target"
    case "$(pwd -P)/" in
      // | /usr/* | /bin/* | /sbin/* | /lib* | /proc/* | /sys/* | /dev/* | /run/* | /etc/* | /tmp/* | /boot/*)
        echo "$target is a link to $(pwd -P), so its filesystem is not mounted." >&2 ;;
      *) mount --no-canonicalize --bind "/run/machine/filesystems/$id" /proc/self/cwd ;;
    esac
  )
done
# A filesystem mounted over /home or the home itself must not leave the user without a home.
if ! [ . -ef /home/ubuntu ]; then
  {
    [ -d /home/ubuntu ] || mkdir -m 750 /home/ubuntu
    for name in .bashrc .profile .bash_logout .ssh; do
      [ -e "/home/ubuntu/$name" ] || [ ! -e "$name" ] || cp -a "$name" /home/ubuntu/
    done
    [ "$MODE" != mapped ] || chown 1000:1000 /home/ubuntu
  } || echo "/home/ubuntu could not be set up on the filesystem that covers it." >&2
fi
cd /

echo ready
read -r answer && [ "$answer" = go ] || exit 1
# Standard error leads to the boot log.
exec </dev/null >&2
path=/run/machine/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[ ! -d /usr/local/cuda/bin ] || path=$path:/usr/local/cuda/bin
umount -l /etc
set -- /usr/bin/env -i PATH=$path LANG=C.UTF-8 $GPUS
if [ "$MODE" = mapped ]; then
  set -- "$@" HOME=/root USER=root
else
  set -- "$@" HOME=/home/ubuntu USER=ubuntu
  # With the filter, its program does this, because `unshare` would load the tenant's files outside the filter.
  [ -n "$CONFINE" ] || set -- "$@" unshare --user --map-user=1000 --map-group=1000
fi
# Installs the seccomp filter, which all processes of the machine inherit.
exec ${CONFINE:+/run/machine/confine} "$@" /bin/sh /run/machine/init
