# Finds the Node that Millrace runs on: the system's if it is version 24 or later, else the one that npm installed.
# A shell script sources this file with `$here`, the folder of Millrace, and gets `$node` and `$major`, its version.

# npm puts the dependencies of a package that isn't installed globally beside it.
packages="$here/node_modules"
[ -d "$packages" ] || packages="$here/.."
[ -d "$packages/fastify" ] || { echo "Run 'npm ci' in $here first." >&2; exit 1; }

major_of() { "$1" --version 2>/dev/null | sed -n 's/^v\([0-9]*\)\..*/\1/p'; }

node=$(command -v node)
major=$(major_of "$node")
if [ "${major:-0}" -lt 24 ]; then
  # npm skips packages that don't support the version it runs on.
  if [ "${major:-20}" -lt 20 ] && [ ! -d "$packages/@node-llama-cpp" ]; then
    echo "npm left out parts of Millrace because it ran on Node $major. Install Node 20 or later, and run 'npm ci' again." >&2
    exit 1
  fi
  # Not `.bin/node`: npm 10 removes that link together with the packages of other platforms.
  for node in "$packages"/node-*-*/bin/node; do [ -e "$node" ] && break; done
  if [ ! -e "$node" ]; then
    echo "There is no Node for this system in $packages. Install Node 24 or later." >&2
    exit 1
  fi
  major=$(major_of "$node")
  if [ -z "$major" ]; then
    reason=$("$node" --version 2>&1 | head -n 1)
    echo "The Node in $packages needs glibc 2.28 or later and libstdc++, and does not start here: $reason" >&2
    echo "Install Node 24 or later with the packages of this system." >&2
    exit 1
  fi
fi
