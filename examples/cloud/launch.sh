#!/bin/sh
# Launches a machine by the cloud API, waits for it, runs a command in it by ssh, and terminates it.
# Run it with: MILLRACE_API_KEY=secret_... sh examples/cloud/launch.sh [type] [region]
set -eu

api="${MILLRACE_URL:-http://127.0.0.1:8080}/api/v1"
type="${1:-cpu_1x_general}"
region="${2:-us-west-1}"
name="example-$$"
dir=$(mktemp -d)

# call METHOD PATH [BODY]: prints the response. An account may send one request per second.
call() {
  sleep 1.1
  curl --fail-with-body --silent --show-error -u "${MILLRACE_API_KEY:?is not set}:" \
    -X "$1" "$api$2" ${3:+-d "$3"}
}

# field NAME: prints a member of the response's `data` that is a text or a number, empty if it is absent.
field() {
  python3 -c 'import json, sys; print(json.load(sys.stdin)["data"].get(sys.argv[1]) or "")' "$1"
}

cleanup() {
  [ -z "${instance:-}" ] || call POST /instance-operations/terminate "{\"instance_ids\": [\"$instance\"]}" > "$dir/end"
  [ -z "${key:-}" ] || call DELETE "/ssh-keys/$key" > "$dir/end"
  rm -rf "$dir"
}
trap cleanup EXIT

ssh-keygen -q -t ed25519 -N '' -f "$dir/key"
key=$(call POST /ssh-keys "{\"name\": \"$name\", \"public_key\": \"$(cat "$dir/key.pub")\"}" | field id)

echo "Launching a $type in $region"
instance=$(call POST /instance-operations/launch "{\"name\": \"$name\", \"region_name\": \"$region\",
  \"instance_type_name\": \"$type\", \"ssh_key_names\": [\"$name\"]}" |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["instance_ids"][0])')

status=booting
while [ "$status" = booting ]; do
  call GET "/instances/$instance" > "$dir/instance"
  status=$(field status < "$dir/instance")
  echo "$instance is $status"
done
[ "$status" = active ] || exit 1

# `ssh_port` is there only if it is not 22.
port=$(field ssh_port < "$dir/instance")
ssh -i "$dir/key" -p "${port:-22}" -o StrictHostKeyChecking=accept-new \
  -o UserKnownHostsFile="$dir/known_hosts" "ubuntu@$(field ip < "$dir/instance")" \
  'echo "Hello from $(hostname), $(uname -sr)"'

echo "Terminating it"
