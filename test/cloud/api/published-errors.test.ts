// Every error has a code that the published description (1.10.0) lists for its operation and status: clients that were
// generated from it fail on any other.

import assert from 'node:assert';
import { test } from 'node:test';
import type { Filesystem, Ruleset, SshKey } from '#cloud/schema.ts';
import { startCloud, type TestCloud } from '#test/support/cloud/cloud.ts';

type Codes = Record<number, string[]>;

/** For every operation. */
const common: Codes = {
  400: ['global/invalid-parameters'],
  401: ['global/invalid-api-key'],
  403: ['global/account-inactive'],
  404: ['global/not-found'],
};

const unknown = 'global/object-does-not-exist';

/** For single operations besides the common ones. */
const own: Record<string, Codes> = {
  'GET /instances/:id': { 404: [unknown] },
  'POST /instances/:id': { 404: [unknown] },
  'POST /instance-operations/launch': {
    400: [
      'instance-operations/launch/insufficient-capacity',
      'instance-operations/launch/file-system-in-wrong-region',
      'global/quota-exceeded',
      unknown,
    ],
    404: [unknown],
  },
  'POST /instance-operations/restart': { 404: [unknown], 409: ['global/conflict'] },
  'POST /instance-operations/terminate': { 404: [unknown] },
  'POST /filesystems': { 400: ['global/duplicate', 'global/quota-exceeded'], 404: [unknown] },
  'DELETE /filesystems/:id': { 400: ['filesystems/filesystem-in-use'], 404: [unknown] },
  'POST /firewall-rulesets': { 400: ['global/quota-exceeded'] },
  'GET /firewall-rulesets/:id': { 404: [unknown] },
  'PATCH /firewall-rulesets/:id': { 404: [unknown] },
  'DELETE /firewall-rulesets/:id': {
    400: ['firewall-rulesets/firewall-ruleset-in-use'],
    404: [unknown],
  },
  'POST /tickets': { 403: ['global/forbidden'] },
};

const nowhere = '0'.repeat(32);
const place = { region: 'us-west-1' };
const launch = {
  region_name: 'us-west-1',
  instance_type_name: 'cpu_1x_general',
  ssh_key_names: ['laptop'],
};
const ids = { instance_ids: [nowhere] };

/** Operation, the id in its path, body, and the status that it must have. */
type Failure = [operation: string, id: string | null, body: object | undefined, status: number];

const failures: Failure[] = [
  ['GET /instances/:id', nowhere, undefined, 404],
  ['GET /instances/:id', 'name', undefined, 400],
  ['POST /instances/:id', nowhere, { name: 'x' }, 404],
  ['POST /instances/:id', nowhere, { name: 'x'.repeat(65) }, 400],
  ['POST /instance-operations/launch', null, {}, 400],
  ['POST /instance-operations/launch', null, { ...launch, region_name: 'none' }, 400],
  ['POST /instance-operations/launch', null, { ...launch, quantity: 2 }, 400],
  ['POST /instance-operations/launch', null, { ...launch, instance_type_name: 'gpu_1x_a10' }, 400],
  ['POST /instance-operations/launch', null, { ...launch, instance_type_name: 'none' }, 404],
  ['POST /instance-operations/launch', null, { ...launch, ssh_key_names: ['none'] }, 404],
  ['POST /instance-operations/launch', null, { ...launch, file_system_names: ['none'] }, 404],
  ['POST /instance-operations/launch', null, { ...launch, image: { family: 'none' } }, 404],
  ['POST /instance-operations/restart', null, ids, 404],
  ['POST /instance-operations/restart', null, {}, 400],
  ['POST /instance-operations/terminate', null, ids, 404],
  ['POST /ssh-keys', null, {}, 400],
  ['POST /ssh-keys', null, { name: 'laptop', public_key: 'none' }, 400],
  ['DELETE /ssh-keys/:id', nowhere, undefined, 404],
  ['DELETE /ssh-keys/:id', '1', undefined, 400],
  ['POST /filesystems', null, { name: '1', ...place }, 400],
  ['POST /filesystems', null, { name: 'disk', region: 'none' }, 400],
  ['POST /filesystems', null, { name: 'disk', ...place }, 400],
  ['DELETE /filesystems/:id', nowhere, undefined, 404],
  ['PUT /firewall-rules', null, { data: [{}] }, 400],
  ['POST /firewall-rulesets', null, { name: 'x' }, 400],
  ['GET /firewall-rulesets/:id', nowhere, undefined, 404],
  ['PATCH /firewall-rulesets/:id', nowhere, { name: 'x' }, 404],
  ['DELETE /firewall-rulesets/:id', nowhere, undefined, 404],
  ['PATCH /firewall-rulesets/global', null, { rules: [{}] }, 400],
  ['GET /audit-events', '?start=yesterday', undefined, 400],
  ['POST /tickets', null, { subject: 'a', description: 'b', type: 'incident' }, 403],
  ['GET /tickets/:id', nowhere, undefined, 404],
  ['PATCH /tickets/:id', nowhere, {}, 404],
];

async function check({ call }: TestCloud, failure: Failure, as?: string): Promise<void> {
  const [operation, id, sent, status] = failure;
  const [method = '', path = ''] = operation.split(' ');
  const url = path.includes(':id') ? path.replace(':id', id ?? '') : `${path}${id ?? ''}`;
  const answer = await call(method, url, sent, as);
  const what = `${operation} ${JSON.stringify(sent)}: ${JSON.stringify(answer.body)}`;
  assert.equal(answer.status, status, what);
  const allowed = [...(common[status] ?? []), ...(own[operation]?.[status] ?? [])];
  assert(allowed.includes(answer.body.error.code), what);
  assert.deepEqual(Object.keys(answer.body), ['error']);
  // Some clients read it without a default.
  assert.equal(typeof answer.body.error.suggestion, 'string', what);
}

test('every error has a code that clients know for its operation', async () => {
  const cloud = await startCloud('sqlite');
  const { call, launch: launchOne, launchActive } = cloud;
  const filesystem = await call<Filesystem>('POST', '/filesystems', { name: 'disk', ...place });
  const ruleset = await call<Ruleset>('POST', '/firewall-rulesets', {
    ...{ name: 'rules', ...place },
    rules: [],
  });
  for (const failure of failures) await check(cloud, failure);
  for (const path of ['/instances', '/ssh-keys', '/images', '/regions', '/tickets']) {
    await check(cloud, [`GET ${path}`, null, undefined, 401], 'wrong');
  }
  const id = await launchActive({
    file_system_names: ['disk'],
    firewall_rulesets: [{ id: ruleset.body.data.id }],
  });
  const [key] = (await call<SshKey[]>('GET', '/ssh-keys')).body.data;
  await check(cloud, ['DELETE /ssh-keys/:id', key?.id ?? '', undefined, 400]);
  await check(cloud, ['DELETE /filesystems/:id', filesystem.body.data.id, undefined, 400]);
  await check(cloud, ['DELETE /firewall-rulesets/:id', ruleset.body.data.id, undefined, 400]);
  await call('POST', '/instance-operations/terminate', { instance_ids: [id] });
  const booting = { instance_ids: [await launchOne()] };
  await check(cloud, ['POST /instance-operations/restart', null, booting, 409]);
});
