// Turns cloud-init user data into one shell script that runs inside the machine at its first boot. Only a
// subset is supported; the machine's boot log names each part that was skipped.

import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { isMembers } from '#lib/json-members.ts';
import { shellQuote } from '#lib/text/shell-quote.ts';

/** Maximum bytes of all files of one machine together, unpacked. */
const maxContentBytes = 16 * 1024 * 1024;
/** cloud-init takes the last of equal keys as well. To compare all keys, yaml would need 40 s for 20,000 of them. */
const yamlOptions = { maxAliasCount: 100, uniqueKeys: false };

/** Keys that have no effect here and are skipped without a line in the log. */
const ignoredKeys = new Set([
  'output',
  'final_message',
  'manage_etc_hosts',
  'ssh_pwauth',
  'disable_root',
]);

export function toFirstBoot(userData: string): string {
  const lines = ['umask 022', 'mkdir -p /var/lib/cloud/instance/scripts'];
  lines.push(writeTo('/var/lib/cloud/instance/user-data.txt', Buffer.from(userData)));
  if (userData.startsWith('#!')) {
    const script = '/var/lib/cloud/instance/scripts/part-001';
    lines.push(writeTo(script, Buffer.from(userData)), `chmod 700 ${script}`, script);
  } else if (/^#cloud-config\b/.test(userData)) {
    return toScript([...lines, ...fromCloudConfig(userData)]);
  } else if (userData.trim() !== '') {
    lines.push(say('user data was skipped: it starts with neither #! nor #cloud-config'));
    lines.push('false');
  }
  return toScript(lines);
}

/** A script that fails, and says why in the boot log. */
export const toSkipped = (reason: string) => toScript([say(reason), 'false']);

const toScript = (lines: readonly string[]) => `${lines.join('\n')}\n`;

function fromCloudConfig(text: string): string[] {
  let config: unknown;
  try {
    config = parse(text, yamlOptions);
  } catch (error) {
    return [say(`the cloud-config is not YAML: ${(error as Error).message}`), 'false'];
  }
  if (config === null) return [];
  if (!isMembers(config)) return [say('the cloud-config is not a mapping'), 'false'];
  const { write_files, runcmd, bootcmd, users, ssh_authorized_keys, packages, ...rest } = config;
  return [
    ...list(packages).map((name) =>
      say(`package ${toText(name)} was not installed: the system is read-only`),
    ),
    ...list(bootcmd).map(toCommand),
    ...toFiles(list(write_files)),
    ...list(ssh_authorized_keys).map(toKey),
    ...list(users).flatMap(toUser),
    ...Object.keys(rest)
      .filter((key) => !ignoredKeys.has(key))
      .map((key) => say(`"${key}" in the cloud-config is not supported and was skipped`)),
    ...list(runcmd).map(toCommand),
  ];
}

function toFiles(entries: readonly unknown[]): string[] {
  let roomBytes = maxContentBytes;
  return entries.flatMap((entry) => {
    const { lines, bytes } = toFile(entry, roomBytes);
    roomBytes -= bytes;
    return lines;
  });
}

function toFile(entry: unknown, roomBytes: number): { lines: string[]; bytes: number } {
  if (!isMembers(entry) || typeof entry.path !== 'string' || !entry.path.startsWith('/')) {
    return skipped('a write_files entry was skipped: it has no absolute path');
  }
  const content = decode(toText(entry.content ?? ''), toText(entry.encoding ?? ''), roomBytes);
  if (!content)
    return skipped(`${entry.path} was not written: its content can't be decoded, or is too large`);
  const file = shellQuote(entry.path);
  const lines = [
    `mkdir -p "$(dirname ${file})"`,
    writeTo(entry.path, content, entry.append === true ? '>>' : '>'),
  ];
  // YAML parses 0644 as a number: octal in version 1.1, decimal in 1.2. Both mean the digits.
  if (entry.permissions !== undefined)
    lines.push(`chmod ${shellQuote(toText(entry.permissions))} ${file}`);
  if (entry.owner !== undefined) lines.push(`chown ${shellQuote(toText(entry.owner))} ${file}`);
  return { lines, bytes: content.length };
}

const skipped = (message: string) => ({ lines: [say(message)], bytes: 0 });

function toUser(entry: unknown): string[] {
  if (entry === 'default') return [];
  const name = isMembers(entry) ? entry.name : entry;
  if (!isMembers(entry) || (name !== 'ubuntu' && name !== 'default')) {
    return [say(`user ${toText(name)} was not created: this machine has only the user ubuntu`)];
  }
  return list(entry.ssh_authorized_keys ?? entry['ssh-authorized-keys']).map(toKey);
}

function toKey(key: unknown): string {
  const file = '/home/ubuntu/.ssh/authorized_keys';
  const owner = 'chown ubuntu:ubuntu /home/ubuntu/.ssh';
  return `mkdir -p /home/ubuntu/.ssh && echo ${shellQuote(toText(key))} >>${file} && ${owner} ${file} && chmod 600 ${file}`;
}

function toCommand(command: unknown): string {
  if (Array.isArray(command)) return command.map((word) => shellQuote(toText(word))).join(' ');
  return `sh -c ${shellQuote(toText(command))}`;
}

/** Returns undefined if it can't be decoded, or has more bytes than there is room for. */
function decode(content: string, encoding: string, roomBytes: number): Buffer | undefined {
  const steps = encoding.split('+').map((step) => step.trim());
  // Each step may unpack as much as there is room for. cloud-init knows no encoding of more than two.
  if (steps.length > 2) return undefined;
  let bytes: Buffer = Buffer.from(content);
  for (const step of steps.reverse()) {
    if (step === 'b64' || step === 'base64') bytes = Buffer.from(bytes.toString(), 'base64');
    else if (step === 'gz' || step === 'gzip') {
      try {
        bytes = gunzipSync(bytes, { maxOutputLength: Math.max(1, roomBytes) });
      } catch {
        return undefined;
      }
    } else if (step !== '' && step !== 'text/plain') return undefined;
  }
  return bytes.length <= roomBytes ? bytes : undefined;
}

/** Encodes the content as base64, so that the shell interprets no byte of it. */
function writeTo(file: string, content: Buffer, redirect = '>'): string {
  return `base64 -d ${redirect}${shellQuote(file)} <<'END'\n${content.toString('base64')}\nEND`;
}

function say(message: string): string {
  return `echo ${shellQuote(message)}`;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
}

function toText(value: unknown): string {
  return typeof value === 'string'
    ? value
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value);
}
