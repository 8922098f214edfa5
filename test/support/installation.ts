// A running installation with everything that a backup must keep: people, keys, a sealed backend key, usage, an
// instance and a filesystem. All of it is created through HTTP.

import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder, type RunningProcess, readFirstSecret, serveMillrace } from './process.ts';
import { cookieOf, password } from './server.ts';
import { until } from './until.ts';

export const installationModel = 'hermes3-8b';
const owner = 'owner@example.com';
const member = 'member@example.com';

export interface Installation extends RunningProcess {
  readonly key: string;
}

/** Serves with the scripted driver and without a rate limit on the cloud API. */
export function serveInstallation(dataDir: string): Promise<RunningProcess> {
  const config = join(makeFolder(), 'millrace.yaml');
  writeFileSync(config, 'cloud: { driver: scripted, rate_limit: false }\n');
  return serveMillrace(['--config', config, '--data-dir', dataDir]);
}

export async function call<Data>(
  url: string,
  { json, ...headers }: { json?: unknown; cookie?: string; authorization?: string } = {},
): Promise<Data> {
  const response = await fetch(url, {
    method: json === undefined ? 'GET' : 'POST',
    headers: { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
    body: json === undefined ? null : JSON.stringify(json),
  });
  const text = await response.text();
  assert.equal(response.status, 200, `${url}: ${text}`);
  return JSON.parse(text) as Data;
}

export async function signIn(url: string, path: string, body: object): Promise<string> {
  const response = await fetch(`${url}/dashboard/api/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, password }),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return cookieOf(response);
}

export const signInAll = (url: string) =>
  Promise.all([owner, member].map((email) => signIn(url, 'login', { email })));

export async function startInstallation(
  dataDir: string,
  upstream: { url: string; apiKey: string },
): Promise<Installation> {
  const server = await serveInstallation(dataDir);
  const key = readFirstSecret(server.stdout(), 'First API key');
  const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
  const { url } = server;
  const cookie = await signIn(url, 'join', { token, email: owner });
  const invited = { json: { role: 'member' }, cookie };
  const { link } = await call<{ link: string }>(`${url}/dashboard/api/invitations`, invited);
  await signIn(url, 'join', { token: link.split('/').at(-1), email: member });
  await call(`${url}/dashboard/api/backends`, {
    cookie,
    json: {
      model: installationModel,
      name: 'first',
      url: upstream.url,
      upstream_model: 'org/name',
      server: 'vllm',
      api_key: upstream.apiKey,
    },
  });
  await launchMachine(url, `Bearer ${key}`);
  return { ...server, key };
}

async function launchMachine(url: string, authorization: string): Promise<void> {
  const region = 'us-west-1';
  const post = <Data>(path: string, json: object) =>
    call<{ data: Data }>(`${url}/api/v1${path}`, { authorization, json });
  await post('/ssh-keys', { name: 'laptop', public_key: newPublicKey() });
  await post('/filesystems', { name: 'shared', region });
  await post('/instance-operations/launch', {
    region_name: region,
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['laptop'],
    file_system_names: ['shared'],
  });
  await until('the machine is active', async () => {
    const { data } = await call<{ data: { status: string }[] }>(`${url}/api/v1/instances`, {
      authorization,
    });
    return data[0]?.status === 'active';
  });
}

/** A public key in OpenSSH's format: its type and its 32 bytes, each preceded by its length. */
function newPublicKey(): string {
  const { publicKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const field = (bytes: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const blob = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(raw)]);
  return `ssh-ed25519 ${blob.toString('base64')}`;
}

export async function chat({ url, key }: { url: string; key: string }): Promise<void> {
  await call(`${url}/v1/chat/completions`, {
    authorization: `Bearer ${key}`,
    json: {
      model: installationModel,
      messages: [{ role: 'user', content: 'Hello' }],
      max_tokens: 5,
    },
  });
}

const tables = [
  'accounts',
  'api_keys',
  'audit_events',
  'backends',
  'filesystems',
  'installation',
  'instances',
  'instance_filesystems',
  'memberships',
  'sessions',
  'spend',
  'ssh_keys',
  'usage_hours',
  'usage_names',
  'usage_requests',
  'users',
];

/** Columns that the server changes by itself. */
const volatile = ['last_used_at', 'bytes_used', 'due_at', 'claim', 'claimed_until'];

/** Reads every row of the tables that a backup must keep, without the volatile columns. */
export function readRows(dataDir: string): Record<string, string[]> {
  const database = new DatabaseSync(join(dataDir, 'millrace.db'), { readOnly: true });
  try {
    const entries = tables.map((table) => {
      const rows = database.prepare(`select * from ${table}`).all();
      return [table, rows.map(toText).sort()] as const;
    });
    return Object.fromEntries(entries);
  } finally {
    database.close();
  }
}

const toText = (row: object) =>
  JSON.stringify(Object.entries(row).filter(([name]) => !volatile.includes(name)));
