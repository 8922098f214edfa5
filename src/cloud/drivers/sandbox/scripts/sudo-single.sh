#!/bin/sh
echo "sudo: this machine has no root user: its server runs as an ordinary user, for which the kernel maps only" >&2
echo "sudo: one id. If the server runs as root, machines have a working sudo." >&2
exit 1
