// Deployments of the configuration file: applied at start and on reload, and changed only there.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { ConfigError } from '#config/error.ts';
import { loadConfig } from '#config/load.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import {
  openTestDeployments,
  type TestDeployments,
  testEngine,
} from '#test/support/deployments.ts';
import { makeFolder } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const file = join(makeFolder(), 'millrace.yaml');
const load = (deployments: object, environment = {}) => {
  writeFileSync(file, JSON.stringify({ deployments }));
  return loadConfig({ config: file }, environment);
};

test('a server with another secret key writes the deployments of the file again', async () => {
  const { deployments } = load({ filed: { ...testEngine, max: 3 } }).config;
  const first = await startTestServer({ config: { deployments } });
  await first.stop();
  const secret_key = randomBytes(32).toString('base64');
  const second = await startTestServer({ config: { deployments, secret_key }, on: first });
  const headers = { authorization: `Bearer ${first.key}` };
  const response = await second.fetch('/api/v1/deployments/filed', { headers });
  const { data } = (await response.json()) as { data: DeploymentView };
  assert.deepEqual([data.max, data.in_file], [3, true]);
});

describe('deployments of the configuration file', () => {
  const inFile = { ...testEngine, min: 1, env: { VERSION: 'filed' } };
  let server: TestServer;
  let deployments: TestDeployments;
  before(async () => {
    const { config } = load({ filed: inFile });
    server = await startTestServer({ config: { deployments: config.deployments } });
    deployments = openTestDeployments(server, await server.join());
  });
  const list = async () => (await deployments.call<DeploymentView[]>('GET', '')).data;

  test('run from the start', async () => {
    await until('it is ready', async () => (await deployments.show('filed')).status === 'ready');
    assert.equal((await deployments.show('filed')).in_file, true);
    assert.match(await (await deployments.chat()).text(), /filed 1 2/);
  });

  test('are stopped and started, but neither changed nor removed by the API', async () => {
    const refused = [
      await deployments.call('POST', '/filed', { max: 2 }),
      await deployments.call('POST', '/filed/rollback'),
      await deployments.call('DELETE', '/filed'),
    ];
    for (const { status, error } of refused) {
      assert.equal(status, 409);
      assert.match(error?.message ?? '', /comes from the configuration file\. Change .* SIGHUP/);
    }
    for (const action of ['stop', 'start'])
      assert.equal((await deployments.call('POST', `/filed/${action}`)).status, 200);
  });

  test('change with the file, and are removed with it', async () => {
    await deployments.create('mine', { max: 2 });
    const changed = { ...inFile, max: 3, env: null, env_from: { VERSION: 'HIDDEN' } };
    server.reload(() => load({ filed: changed, mine: testEngine }, { HIDDEN: 'changed' }));
    await until('the change is served', async () =>
      /changed 1 2/.test(await (await deployments.chat()).text()),
    );
    const { max, in_file } = await deployments.show('mine');
    assert.deepEqual([max, in_file], [1, true]);
    server.reload(() => load({}));
    await until('both are gone', async () => (await list()).length === 0);
  });

  test('with mistakes are refused with their place', () => {
    const problemsOf = (given: object) => {
      try {
        load({ broken: { ...testEngine, ...given } });
        return '';
      } catch (error) {
        assert(error instanceof ConfigError);
        return error.problems.join('\n');
      }
    };
    assert.match(problemsOf({ min: 3 }), /yaml:1.*deployments\.broken: min is 3, which is more/);
    assert.match(problemsOf({ model: 'hermes3-8c' }), /not a model\. Did you mean hermes3-8b\?/);
    assert.match(problemsOf({ env_from: { A: 'GONE' } }), /refers to GONE, which the environment/);
    assert.match(problemsOf({ maximum: 3 }), /deployments\.broken\.maximum is not a setting/);
  });
});
