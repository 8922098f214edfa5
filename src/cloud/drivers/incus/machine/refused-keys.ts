// Takes keys out of a machine: out of its files of authorized keys, and out of the configuration that its image writes
// them from at every start. Which key opened an ssh session is not known, so all of the machine's end.

import { DriverError, type KeySpec } from '#cloud/drivers/driver.ts';
import type { IncusContext } from '#cloud/drivers/incus/context.ts';
import { runInside } from './command.ts';
import { instanceName, instancePath } from './instance.ts';

/** A command line has room for this many. */
const maxKeysAtOnce = 100;

/** Its arguments are keys in base64, whose letters mean nothing else to grep and sed. The listening sshd stays. */
const script = String.raw`found=
for file in /home/*/.ssh/authorized_keys* ~root/.ssh/authorized_keys* /etc/millrace/authorized_keys; do
  [ -f "$file" ] || continue
  for key; do
    grep -qF "$key" "$file" || continue
    sed -i "\|$key|d" "$file" || exit 1
    found=1
  done
done
[ -n "$found" ] || exit 0
cd /proc
for process in [0-9]*; do
  case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in
    *'[listener]'*) ;;
    'sshd: '*|'sshd-session: '*) kill "$process" ;;
  esac
done
exit 0`;

export async function refuseKeys(
  { client, instances }: IncusContext,
  { id, authorizedKeys, refusedKeys = [] }: KeySpec,
): Promise<void> {
  if (refusedKeys.length === 0 || !(await instances.find(id))) return;
  const path = instancePath(instanceName(id));
  const config = { 'user.millrace.keys': authorizedKeys.join('\n') };
  await client.run('PATCH', path, { body: { config } });
  const keys = refusedKeys.map((key) => key.split(' ')[1] ?? '').filter((key) => key !== '');
  for (let start = 0; start < keys.length; start += maxKeysAtOnce) {
    const some = keys.slice(start, start + maxKeysAtOnce);
    const code = await runInside(client, path, ['sh', '-c', script, 'sh', ...some]);
    if (code === 0) continue;
    throw new DriverError('unavailable', 'Refused keys could not be taken out of the machine.');
  }
}
