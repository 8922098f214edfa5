// Turns cloud-init user data into one shell script that runs inside the machine at its first boot. Only a
// subset is supported; the machine's boot log names each part that was skipped.

import { gunzipSync } from 'node:zlib';
import { parse } from 'yaml';
import { isMembers } from '#lib/json-members.ts';
import { shellQuote } from '#lib/text/shell-quote.ts';

const maxContentBytes = 16 * 1024 * 1024;

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
    lines.push(...fromCloudConfig(userData));
  } else if (userData.trim() !== '') {
    lines.push(say('user data was skipped: it starts with neither #! nor #cloud-config'));
    lines.push('false');
  }
  return `${lines.join('\n')}\n`;
}

function fromCloudConfig(text: string): string[] {
  let config: unknown;
  try {
    config = parse(text, { maxAliasCount: 100 });
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
    ...list(write_files).flatMap(toFile),
    ...list(ssh_authorized_keys).map(toKey),
    ...list(users).flatMap(toUser),
    ...Object.keys(rest)
      .filter((key) => !ignoredKeys.has(key))
      .map((key) => say(`"${key}" in the cloud-config is not supported and was skipped`)),
    ...list(runcmd).map(toCommand),
  ];
}

function toFile(entry: unknown): string[] {
  if (!isMembers(entry) || typeof entry.path !== 'string' || !entry.path.startsWith('/')) {
    return [say('a write_files entry was skipped: it has no absolute path')];
  }
  const content = decode(toText(entry.content ?? ''), toText(entry.encoding ?? ''));
  if (!content) return [say(`${entry.path} was not written: its content can't be decoded`)];
  const file = shellQuote(entry.path);
  const lines = [
    `mkdir -p "$(dirname ${file})"`,
    writeTo(entry.path, content, entry.append === true ? '>>' : '>'),
  ];
  // YAML parses 0644 as a number: octal in version 1.1, decimal in 1.2. Both mean the digits.
  if (entry.permissions !== undefined)
    lines.push(`chmod ${shellQuote(toText(entry.permissions))} ${file}`);
  if (entry.owner !== undefined) lines.push(`chown ${shellQuote(toText(entry.owner))} ${file}`);
  return lines;
}

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

function decode(content: string, encoding: string): Buffer | undefined {
  const steps = encoding.split('+').map((step) => step.trim());
  let bytes: Buffer = Buffer.from(content);
  for (const step of steps.reverse()) {
    if (step === 'b64' || step === 'base64') bytes = Buffer.from(bytes.toString(), 'base64');
    else if (step === 'gz' || step === 'gzip') {
      try {
        bytes = gunzipSync(bytes, { maxOutputLength: maxContentBytes });
      } catch {
        return undefined;
      }
    } else if (step !== '' && step !== 'text/plain') return undefined;
  }
  return bytes;
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
