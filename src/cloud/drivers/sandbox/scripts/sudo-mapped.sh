#!/bin/sh
# sudo for the machine's only user, who may become the machine's root. That root has no rights on the host.
# Supports the common options; a set-uid copy of setpriv does the work.
usage() {
  echo "sudo: $1 (this machine supports -n -E -H -S -k -v -l -i -s -b -u USER -g GROUP, NAME=value)" >&2
  exit 1
}
user=root group='' keep=no login=no shell=no home=''
while [ $# -gt 0 ]; do
  case "$1" in
    -n | -S | -H | --non-interactive | --stdin | --set-home) ;;
    -E | --preserve-env | --preserve-env=*) keep=yes ;;
    -k | -K | -v | --validate | --reset-timestamp) [ $# -gt 1 ] || exit 0 ;;
    -l | --list) echo "User ubuntu may run every command as every user of this machine." && exit 0 ;;
    -V | --version) echo "sudo of this machine (setpriv)" && exit 0 ;;
    -i | --login) login=yes ;;
    -s | --shell) shell=yes ;;
    -u | --user) [ $# -gt 1 ] || usage "-u needs a user" && user=$2 && shift ;;
    -u*) user=${1#-u} ;;
    --user=*) user=${1#--user=} ;;
    -g | --group) [ $# -gt 1 ] || usage "-g needs a group" && group=$2 && shift ;;
    --group=*) group=${1#--group=} ;;
    --) shift && break ;;
    -*) usage "unknown option $1" ;;
    *) break ;;
  esac
  shift
done
while [ $# -gt 0 ]; do
  case "$1" in
    [A-Za-z_]*=*) export "$1" && keep=yes && shift ;;
    *) break ;;
  esac
done
entry=$(getent passwd "${user#\#}") || usage "unknown user $user"
uid=$(echo "$entry" | cut -d: -f3)
gid=$(echo "$entry" | cut -d: -f4)
home=$(echo "$entry" | cut -d: -f6)
user_shell=$(echo "$entry" | cut -d: -f7)
[ -z "$group" ] || gid=$(getent group "$group" | cut -d: -f3)
if [ $login = yes ]; then
  cd "$home" 2>/dev/null || cd /
  if [ $# -gt 0 ]; then set -- "$user_shell" -l -c "$*"; else set -- "$user_shell" -l; fi
elif [ $shell = yes ]; then
  if [ $# -gt 0 ]; then set -- "$user_shell" -c "$*"; else set -- "$user_shell"; fi
fi
[ $# -gt 0 ] || usage "missing command"
path=/run/machine/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
[ ! -d /usr/local/cuda/bin ] || path=$path:/usr/local/cuda/bin
set -- "HOME=$home" "USER=${entry%%:*}" "LOGNAME=${entry%%:*}" "SHELL=$user_shell" \
  "SUDO_USER=$(id -un)" "SUDO_UID=$(id -u)" "SUDO_GID=$(id -g)" "PATH=$path" "$@"
[ $keep = yes ] || set -- -i "TERM=${TERM:-dumb}" "LANG=${LANG:-C.UTF-8}" "$@"
exec /run/machine/bin/elevate --reuid "$uid" --regid "$gid" --init-groups -- env "$@"
