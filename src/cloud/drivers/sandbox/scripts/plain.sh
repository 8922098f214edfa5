#!/bin/sh
# A machine without isolation is represented by one sleeping process. User data is not run: it is written for
# a separate machine and would change the host.
echo ready
read -r answer && [ "$answer" = go ] || exit 1
exec </dev/null >&2
echo "$(date -u +%FT%TZ) machine $NAME started without isolation"
[ ! -f "$MACHINE/first-boot" ] || echo "user data was not run: this machine is not isolated from its host"
exec env -i PATH="$PATH" MILLRACE_MACHINE="${MACHINE##*/}" sleep 2147483647
