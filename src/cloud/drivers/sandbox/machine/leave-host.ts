// The last step on the host of every process that becomes part of a machine: it joins the machine's control
// groups, takes limits that it can't raise again, and closes what it inherited.

import type { MachineSpec } from '#cloud/drivers/driver.ts';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { joinFiles, processLimit } from './control-groups.ts';

/** If the host runs out of memory, the kernel ends a machine's processes before this server's. */
const oomScore = 500;
/** Arguments of bash's `ulimit`: core files, open files, locked KiB, pending signals, bytes of message queues. */
const limits = ['-c 0', '-n 65536', '-l 65536', '-i 16384', '-q 819200'];

/** Limits of the user namespace, per machine: the files of /proc/sys/user. */
export function toUserLimits({ mode, nested }: SandboxHost): string {
  const namespaces = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'time', 'user', 'uts'].map((kind) => {
    // In mode `single` the machine itself is one nested user namespace.
    const own = mode === 'single' && kind === 'user' ? 1 : 0;
    return `max_${kind}_namespaces ${nested ? 1024 : own}`;
  });
  const watches = ['max_inotify_instances 128', 'max_inotify_watches 65536'];
  return [...namespaces, ...watches, 'max_fanotify_groups 0', 'max_fanotify_marks 0'].join('\n');
}

/**
 * Joins the control groups first, so that no process of the machine ever runs outside them. Inherited descriptors
 * are closed because an open directory of the host would be a way out. Descriptor 3 is kept for the forwarding
 * agent and for the id map of a boot. Needs bash: other shells can't close descriptors above 9.
 */
const leaveHost = [
  'while [ "$1" != -- ]; do echo 0 >"$1" || exit 125; shift; done; shift',
  'cd /proc/self/fd && for fd in *; do [ "$fd" -le 3 ] || eval "exec $fd>&-"; done',
  'cd / && exec "$@"',
];

/** The environment of programs on the host that become part of a machine: nothing of the server's own. */
export const outerEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};

export function leaveHostCommand(
  host: SandboxHost,
  { id, vcpus }: MachineSpec,
): [program: string, argv: string[]] {
  const joins = host.controlGroups ? joinFiles(host.controlGroups, id) : [];
  // An ordinary user's machines count as that user, so a limit on processes would count those of the host.
  const processes = host.mode === 'mapped' ? [`-u ${processLimit(vcpus)}`] : [];
  const script = [
    // A limit that is already lower than these may not be raised.
    ...[...limits, ...processes].map((limit) => `ulimit ${limit} 2>/dev/null`),
    `echo ${oomScore} >/proc/self/oom_score_adj`,
    ...leaveHost,
  ].join('\n');
  // Bash takes a socket on standard input for a network login and would read the operator's .bashrc.
  return [host.shell, ['--norc', '-c', script, 'bash', ...joins, '--']];
}
