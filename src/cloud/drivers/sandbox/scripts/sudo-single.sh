#!/bin/sh
echo "sudo: this machine has no root user. The server that made it runs as an ordinary user, which the" >&2
echo "sudo: kernel lets map one id only; started as root, it gives machines a working sudo." >&2
exit 1
