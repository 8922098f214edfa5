#!/bin/sh
# First half of a boot, which still sees the host: binds everything the machine may see under its own root
# directory. Runs in a private mount namespace, as root or as root of a user namespace of one id. It must change
# nothing below the top level of the disk, where a tenant may have left symbolic links. A boot that a crash
# interrupted may still be running, so each change to the disk must be safe to make twice at once.
set -eu
umask 022

# Binds a tree that tenants write. Its files have the ids on disk and appear with those of this machine.
bind_tree() {
  if [ -n "$MAPPED_BIND" ]; then "$MAPPED_BIND" "$1" "$2"; else mount --bind "$1" "$2"; fi
}

# Locked, because two loop devices for one image would corrupt it; the second mount reuses the first's device.
# `nodiscard` keeps the image's blocks: they were promised to it.
mount_image() {
  flock "$1" mount -t ext4 -o loop,nodiscard,noinit_itable,nodev "$1" "$2"
  bind_tree "$2" "$2"
}

# $ROOT is world-traversable: the machine's root has no rights on the host.
if [ -f "$MACHINE/disk.img" ]; then
  mount_image "$MACHINE/disk.img" "$ROOT"
else
  bind_tree "$MACHINE/disk" "$ROOT"
fi
cd "$ROOT"

weights=${WEIGHTS:+weights}
for name in usr $SHARED proc sys dev run $weights; do
  if [ -L "$name" ] || { [ -e "$name" ] && [ ! -d "$name" ]; }; then rm -f "$name"; fi
done
mkdir -p usr $SHARED proc sys dev run $weights
# The second half covers /etc while programs run outside the filter, and a mount would follow a link.
if [ -L etc ] || [ ! -d etc ]; then
  rm -f etc
  mkdir -p etc
  [ "$MODE" != mapped ] || chown "$ID_BASE:$ID_BASE" etc
fi

# Makes a mount and all below it read-only. A remount must keep the flags that the host's mount has locked.
read_only() {
  while read -r _ _ _ _ point options _; do
    # The kernel writes a space as \040.
    point=$(printf '%b' "$point")
    case "$point/" in "$ROOT/$1/"*) ;; *) continue ;; esac
    kept=
    for flag in nosuid nodev noexec; do
      case ",$options," in *",$flag,"*) kept=$kept,$flag ;; esac
    done
    mount -o "remount,bind,ro$kept" "$point"
  done </proc/self/mountinfo
}

# Recursive, to include what the host has mounted below, e.g. a GPU's libraries.
for name in usr $SHARED; do
  mount --rbind "/$name" "$name"
  read_only "$name"
done
for name in bin sbin lib lib32 lib64 libx32; do
  [ -e "/$name" ] || continue
  # A directory that a tenant put in place of a link is covered: the loader of every program is below one of these.
  if [ -L "/$name" ] && { [ -L "$name" ] || [ ! -d "$name" ]; }; then
    ln -sfn "$(readlink "/$name")" "$name"
  else
    rm -f "$name" 2>/dev/null || true
    mkdir -p "$name"
    mount --rbind "/$name" "$name"
    read_only "$name"
  fi
done
case "$DATA/" in /usr/* | "/${SHARED:-usr}/"*) mount -t tmpfs -o size=4k,mode=000 nothing "$ROOT$DATA" ;; esac

mount -t tmpfs -o mode=755,size=64m run run
mkdir -p run/machine/bin run/machine/host run/machine/filesystems run/old run/lock run/user
chmod 1777 run/lock
cp "$SCRIPTS/init.sh" run/machine/init
cp "$SCRIPTS/assemble.sh" run/machine/assemble
[ ! -f "$MACHINE/first-boot" ] || cp "$MACHINE/first-boot" run/machine/first-boot
cp "$SCRIPTS/sudo-$MODE.sh" run/machine/bin/sudo
chmod 755 run/machine/init run/machine/bin/sudo
[ -z "$CONFINE" ] || install -m 755 "$CONFINE" run/machine/confine
if [ "$MODE" = mapped ]; then
  # Set-uid to the machine's root only: its owner is an id without meaning on the host.
  cp "$(command -v setpriv)" run/machine/bin/elevate
  chown -R "$ID_BASE:$ID_BASE" run
  chmod 4755 run/machine/bin/elevate
fi
bind_file() {
  : >"$2"
  mount --bind "$1" "$2"
}
bind_file "$MACHINE/boot.log" run/machine/boot.log
read_only run/machine/boot.log
# Bound read-only, never passed as an open file: a tenant with the operator's own id could otherwise
# reopen the host's program for writing through /proc.
bind_file "$NODE" run/machine/node
read_only run/machine/node
# The program `millrace`, if the machine runs an engine of it.
if [ -n "$OWN_FOLDER" ]; then
  # Node makes it readable for its own user alone. Compiling in the machine would take seconds.
  [ -z "$COMPILE_CACHE" ] || find "$COMPILE_CACHE" ! -perm -004 -exec chmod a+rX {} + 2>/dev/null || true
  # Before version 26, Node names the cache of each user after its id.
  for cache in "$COMPILE_CACHE"/v*-*-*-*; do
    [ ! -d "$cache" ] || [ -e "${cache%-*}-1000" ] || ln -s "${cache##*/}" "${cache%-*}-1000" || true
  done
  mkdir run/machine/millrace
  for name in $OWN_PARTS; do
    target=run/machine/millrace/$name
    if [ -d "$OWN_FOLDER/$name" ]; then
      mkdir "$target"
      mount --rbind "$OWN_FOLDER/$name" "$target"
    else
      bind_file "$OWN_FOLDER/$name" "$target"
    fi
    read_only "$target"
  done
  {
    echo '#!/bin/sh'
    [ -z "$OWN_THREADS" ] || echo "export MILLRACE_THREADS=\"\${MILLRACE_THREADS:-$OWN_THREADS}\""
    printf 'exec /run/machine/node %s "/run/machine/millrace/%s" "$@"\n' "$OWN_OPTIONS" "$OWN_MAIN"
  } >run/machine/bin/millrace
  chmod 755 run/machine/bin/millrace
fi
# The weights of its engine, file by file: links would lead nowhere.
if [ -n "$WEIGHTS" ]; then
  mount -t tmpfs -o mode=755,size=1m weights weights
  printf '%s\n' "$WEIGHTS" | while IFS= read -r name && IFS= read -r file; do
    bind_file "$file" "weights/$name"
  done
  read_only weights
fi
[ ! -e usr/bin/sudo ] || mount --bind run/machine/bin/sudo usr/bin/sudo

# Parts of /etc that belong to the host's /usr. The machine's /etc links to them.
for name in ld.so.cache alternatives ssl/certs ca-certificates pki/tls pki/ca-trust; do
  source=/etc/$name
  [ -e "$source" ] || continue
  case "$name" in
    */*) target=run/machine/host/${name%/*}-${name##*/} ;;
    *) target=run/machine/host/$name ;;
  esac
  if [ -d "$source" ]; then mkdir "$target"; else : >"$target"; fi
  mount --rbind "$source" "$target"
  read_only "$target"
done

mount -t tmpfs -o mode=755,size=1m dev dev
mkdir dev/pts dev/shm
mount -t tmpfs -o mode=1777,nosuid,nodev shm dev/shm
for device in null zero full random urandom tty $DEVICES; do
  [ -e "/dev/$device" ] || continue
  case "$device" in */*) mkdir -p "dev/${device%/*}" ;; esac
  bind_file "/dev/$device" "dev/$device"
done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
[ "$MODE" != mapped ] || chown "$ID_BASE:$ID_BASE" dev dev/pts

for id in $FILESYSTEMS; do
  mkdir "run/machine/filesystems/$id"
  if [ -f "$DATA/filesystems/$id.img" ]; then
    mount_image "$DATA/filesystems/$id.img" "$ROOT/run/machine/filesystems/$id"
  else
    bind_tree "$DATA/filesystems/$id" "run/machine/filesystems/$id"
  fi
done
# The user namespace that describes the translation.
exec 3<&-

namespaces="--mount --pid --uts --ipc --net --cgroup"
if [ "$MODE" = mapped ]; then
  # The server writes the id map from outside: util-linux alone can't map a range.
  # Limits that the kernel keeps per user count the owner of the namespace too, so that is not the host's root.
  exec setpriv --reuid "$ID_BASE" --regid "$ID_BASE" --clear-groups \
    unshare --user --keep-caps $namespaces --fork --propagation private \
    /bin/sh "$ROOT/run/machine/assemble"
fi
exec unshare $namespaces --fork --propagation private /bin/sh "$ROOT/run/machine/assemble"
