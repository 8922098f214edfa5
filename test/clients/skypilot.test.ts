// SkyPilot against a server with real machines. `.ci/run` installs it, apart from the product.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { noSsh } from '#test/support/cloud/sandbox-fixture.ts';
import { isRoot } from '#test/support/cloud/sandbox-programs.ts';
import { run } from '#test/support/conformance/ssh-client.ts';
import { needs } from '#test/support/programs.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const python = process.env.MILLRACE_TEST_SKYPILOT;
const skip =
  noSsh ||
  needs('rsync', 'ip', 'nft', 'scp', 'ps') ||
  (!isRoot && 'needs root') ||
  (!python && 'MILLRACE_TEST_SKYPILOT does not name a Python that has SkyPilot');

/** What skypilot.py reports of a cluster. */
interface Cluster {
  readonly hi: readonly [code: number, stdout: string][];
  readonly worker_ips: readonly string[];
  /** What each worker received from the head's port at the head's private address: its own address. */
  readonly answers: readonly [code: number, stdout: string][];
  readonly left: readonly string[];
}

describe('SkyPilot', { skip, timeout: 300_000 }, () => {
  let home: string;
  let clusters: Cluster[];

  before(async () => {
    // With the rate limit, it sleeps ten seconds and more after each 429: both clusters pass too, in minutes.
    const server = await startTestServer({
      config: { cloud: { driver: 'sandbox', emulate: true, rate_limit: false } },
    });
    home = await mkdtemp(path.join(tmpdir(), 'millrace-skypilot-'));
    await mkdir(path.join(home, '.lambda_cloud'));
    await writeFile(path.join(home, '.lambda_cloud/lambda_keys'), `api_key = ${server.key}\n`);
    const script = path.join(import.meta.dirname, 'skypilot.py');
    const environment = [`HOME=${home}`, 'SKYPILOT_DISABLE_USAGE_COLLECTION=1'];
    const command = [python ?? '', script, server.url, 'us-west-1', 'gpu_1x_a10'];
    const { code, stdout, stderr } = await run('env', [...environment, ...command], '', 280_000);
    assert.equal(code, 0, stderr);
    await until('the machines are removed', async () => {
      const response = await server.fetch('/api/v1/instances');
      return ((await response.json()) as { data: unknown[] }).data.length === 0;
    });
    clusters = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Cluster[];
  });
  after(() => home && rm(home, { recursive: true, force: true }));

  test('runs a command on one node and on each of two', () => {
    const hi = [0, 'hi\n'];
    assert.deepEqual(
      clusters.map((cluster) => cluster.hi),
      [[hi], [hi, hi]],
    );
  });

  test('has a worker that reaches its head by the private address', () => {
    const [, two] = clusters;
    assert.equal(two?.worker_ips.length, 1);
    assert.deepEqual(
      two?.answers,
      two?.worker_ips.map((ip) => [0, ip]),
    );
  });

  test('leaves no instance', () => {
    assert.deepEqual(
      clusters.map((cluster) => cluster.left),
      [[], []],
    );
  });
});
