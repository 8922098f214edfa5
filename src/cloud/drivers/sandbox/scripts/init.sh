#!/bin/sh
# Process 1 of a machine: runs the user data once, then only reaps. On SIGTERM it signals every process and
# exits after at most two seconds; the kernel then kills the rest.

stop() {
  trap '' TERM
  kill -TERM -1 2>/dev/null
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    set -- /proc/[0-9]*
    [ $# -le 1 ] && break
    sleep 0.1
  done
  exit 0
}
trap stop TERM

rm -rf /tmp/* /tmp/.[!.]* 2>/dev/null

echo "$(date -u +%FT%TZ) machine $(cat /proc/sys/kernel/hostname) started"
done_mark=/var/lib/cloud/instance/sem/user-data
if [ -f /run/machine/first-boot ] && [ ! -e "$done_mark" ]; then
  mkdir -p "${done_mark%/*}" && : >"$done_mark"
  # A pipe, because programs can't open the socket that leads to the boot log as /dev/stderr.
  {
    cd / && /bin/sh /run/machine/first-boot
    echo "$(date -u +%FT%TZ) user data finished with status $?"
  } 2>&1 | cat &
fi

while :; do
  sleep 2147483647 &
  wait $!
done
