// The files of the small image that are generated rather than copied: accounts, settings, the init, and the
// templates through which the daemon passes a machine its name, keys, address and first-boot script.

type Files = Readonly<Record<string, readonly [mode: number, text: string]>>;

export const accounts: Files = {
  'etc/passwd': [
    0o644,
    `root:x:0:0:root:/root:/bin/bash
sshd:x:100:65534::/run/sshd:/bin/false
ubuntu:x:1000:1000:Ubuntu:/home/ubuntu:/bin/bash
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
`,
  ],
  'etc/group': [0o644, 'root:x:0:\ntty:x:5:\nsudo:x:27:ubuntu\nubuntu:x:1000:\nnogroup:x:65534:\n'],
  'etc/shadow': [
    0o640,
    'root:*:19000:0:99999:7:::\nubuntu:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n',
  ],
  'etc/sudoers': [0o440, 'root ALL=(ALL:ALL) ALL\nubuntu ALL=(ALL) NOPASSWD:ALL\n'],
};

const permit = 'auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n';

/** Halts on SIGPWR, which the daemon sends. Output of user data goes to the console, which is the boot log. */
const init = `#!/bin/bash
export PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin
stop() { kill -TERM -1 2>/dev/null; sleep 0.1; exit 0; }
trap stop PWR TERM INT RTMIN+3
exec >/dev/console 2>&1 </dev/null
mkdir -p /run/sshd /tmp /dev/shm
chmod 1777 /tmp
[ -s /etc/hostname ] && hostname -F /etc/hostname
echo "127.0.0.1 localhost $(hostname)" >/etc/hosts
ip link set lo up
read -r address gateway </etc/millrace/network
if [ -n "$address" ]; then
  ip addr add "$address" dev eth0
  ip link set eth0 up
  ip route add "$gateway" dev eth0
  for route in default $(cat /etc/millrace/routes 2>/dev/null); do ip route add "$route" via "$gateway"; done
  echo "nameserver $gateway" >/etc/resolv.conf
elif [ -d /sys/class/net/eth0 ]; then
  ip link set eth0 up
  udhcpc -q -n -t 20 -T 1 -i eth0 -s /etc/udhcpc.script
fi
read -r private </etc/millrace/private
if [ -n "$private" ]; then
  ip addr add "$private" dev eth1
  ip link set eth1 up
fi
chown 1000:1000 /home/ubuntu
[ -s /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
/usr/sbin/sshd -D -e &
if [ -s /etc/millrace/first-boot ] && [ ! -e /var/lib/millrace-first-boot ]; then
  touch /var/lib/millrace-first-boot
  /bin/sh /etc/millrace/first-boot &
fi
while :; do wait -n 2>/dev/null || { sleep 3600 & wait $!; }; done
`;

export const settings: Files = {
  'etc/pam.d/sudo': [0o644, `${permit}session sufficient pam_permit.so\n`],
  'etc/nsswitch.conf': [0o644, 'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n'],
  'etc/ssh/sshd_config': [
    0o644,
    `Port 22
PermitRootLogin no
PasswordAuthentication no
UsePAM no
UseDNS no
AuthorizedKeysFile .ssh/authorized_keys /etc/millrace/authorized_keys
Subsystem sftp /usr/lib/openssh/sftp-server
AcceptEnv LANG LC_*
PrintMotd no
`,
  ],
  'etc/udhcpc.script': [
    0o755,
    `#!/bin/sh
case "$1" in bound | renew)
  ip addr flush dev $interface
  ip addr add $ip/$mask dev $interface
  for r in $router; do ip route add default via $r; break; done
  : >/etc/resolv.conf
  for d in $dns; do echo nameserver $d >>/etc/resolv.conf; done ;;
esac
`,
  ],
  'usr/sbin/init': [0o755, init],
};

/** Rendered by the daemon from the instance's configuration; seed.ts writes the keys. */
export const imageTemplates: Readonly<Record<string, string>> = {
  'hostname.tpl': '{{ config_get("user.millrace.hostname", "machine") }}\n',
  'authorized-keys.tpl': '{{ config_get("user.millrace.keys", "") }}\n',
  'network.tpl': '{{ config_get("user.millrace.network", "") }}\n',
  'routes.tpl': '{{ config_get("user.millrace.routes", "") }}\n',
  'private.tpl': '{{ config_get("user.millrace.private", "") }}\n',
  'first-boot.tpl': '{{ config_get("user.millrace.first-boot", "") }}',
};

const always = '[create, copy, start]';

export function imageMetadata(architecture: string, withTemplates: boolean): string {
  const templates = `templates:
  /etc/hostname: { when: ${always}, template: hostname.tpl }
  /etc/millrace/authorized_keys: { when: ${always}, template: authorized-keys.tpl }
  /etc/millrace/network: { when: ${always}, template: network.tpl }
  /etc/millrace/routes: { when: ${always}, template: routes.tpl }
  /etc/millrace/private: { when: ${always}, template: private.tpl }
  /etc/millrace/first-boot: { when: [create, copy], template: first-boot.tpl }
`;
  return `architecture: ${architecture}
creation_date: ${Math.floor(Date.now() / 1000)}
properties:
  os: Millrace
  variant: small
  description: "Small image made from this host's programs"
${withTemplates ? templates : ''}`;
}
