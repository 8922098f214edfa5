#!/bin/sh
# Installs Millrace for the current user, from a package file or from an npm registry that has it:
#   sh install.sh ./millrace-0.3.0.tgz      # a file that `npm run package` made
#   sh install.sh                           # the newest release in the registry
# MILLRACE_PREFIX is the folder to install into (default: ~/.local). Nothing outside it is changed.
set -eu

package=${1:-millrace}
prefix=${MILLRACE_PREFIX:-$HOME/.local}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64 | Darwin-arm64) extra='' ;;
  # npm would install it on other processors too, so the package does not ask for it.
  Linux-aarch64) extra='@node-llama-cpp/linux-arm64@3.22.1' ;;
  *) fail "Millrace runs on Linux (x86-64, 64-bit ARM) and on Macs with Apple silicon." ;;
esac
command -v npm >/dev/null 2>&1 || fail "npm is missing. Install Node 20 or later from https://nodejs.org."
major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
[ "$major" -ge 20 ] || fail "Node 20 or later is needed for npm, but this is $(node --version)."
case $package in
  *.tgz) [ -f "$package" ] || fail "There is no file $package." ;;
esac

# The Node that Millrace runs on comes with the package, so warnings about the one of npm mean nothing. No dependency needs
# to run code while it is installed; the native part of one would fetch headers to compile.
# shellcheck disable=SC2086 # $extra is empty or one word.
npm install --global --prefix "$prefix" --ignore-scripts --loglevel=error --no-audit --no-fund "$package" $extra

program=$prefix/bin/millrace
echo "Installed Millrace $("$program" --version) as $program."
case ":$PATH:" in
  *":$prefix/bin:"*) echo "Start it with: millrace serve" ;;
  *) echo "Start it with: $program serve. To leave out the folder, add $prefix/bin to your PATH." ;;
esac
