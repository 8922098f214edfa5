// Helm itself fills in the chart: alone, with several servers, and with everything that is off by default. `.ci/run` can't
// install Helm: CONTRIBUTING.md says how to run this test.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';

const helm = process.env.MILLRACE_TEST_HELM;
const chart = join(import.meta.dirname, '../deploy/helm/millrace');
const several = ['replicas=3', 'environmentSecret=millrace'];

function runHelm(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(helm as string, args, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

function fillIn(...values: string[]) {
  const { status, stdout, stderr } = runHelm('template', 'mine', chart, ...toFlags(values));
  assert.equal(status, 0, stderr);
  const objects = parseAllDocuments(stdout).flatMap((one) => one.toJS() ?? []);
  return new Map(objects.map((object) => [`${object.kind} ${object.metadata.name}`, object]));
}

const toFlags = (values: readonly string[]) => values.flatMap((value) => ['--set', value]);

describe('the chart', { skip: !helm && 'MILLRACE_TEST_HELM does not name the program' }, () => {
  test('has no faults that Helm finds', () => {
    for (const values of [[], several]) {
      const { status, stdout } = runHelm('lint', '--strict', chart, ...toFlags(values));
      assert.equal(status, 0, stdout);
    }
  });

  test('is one server with its state by default', () => {
    const names = [...fillIn().keys()].sort();
    assert.deepEqual(names, [
      'ConfigMap mine-config',
      'Service mine',
      'Service mine-pods',
      'StatefulSet mine',
    ]);
  });

  test('refuses several servers without a database', () => {
    const { status, stderr } = runHelm('template', 'mine', chart, '--set', 'replicas=2');
    assert.notEqual(status, 0);
    assert.match(stderr, /Name a Secret with DATABASE_URL, REDIS_URL and MILLRACE_SECRET_KEY/);
  });

  test('gives each of several servers an address for the others, and lets one stop at a time', () => {
    const objects = fillIn(...several);
    const { env } = objects.get('StatefulSet mine').spec.template.spec.containers[0];
    assert.equal(env.at(-1).value, 'http://$(POD_IP):8080');
    assert.equal(objects.get('PodDisruptionBudget mine').spec.maxUnavailable, 1);
  });

  test('replaces the pods when the configuration changes', () => {
    const sumOf = (...values: string[]) =>
      fillIn(...values).get('StatefulSet mine').spec.template.metadata.annotations[
        'checksum/config'
      ];
    assert.equal(sumOf(), sumOf());
    assert.notEqual(sumOf(), sumOf('config.log.level=debug'));
  });

  test('has an ingress and a monitor if they are asked for', () => {
    const objects = fillIn(
      'ingress.host=mill.example.com',
      'ingress.className=nginx',
      'ingress.tlsSecret=tls',
      'ingress.annotations.a=b',
      'serviceMonitor.enabled=true',
      'serviceMonitor.labels.release=prometheus',
      'serviceMonitor.keySecret.name=metrics',
      'serviceMonitor.keySecret.key=key',
    );
    const { spec } = objects.get('Ingress mine');
    assert.deepEqual(spec.tls, [{ hosts: ['mill.example.com'], secretName: 'tls' }]);
    assert.equal(spec.rules[0].http.paths[0].backend.service.name, 'mine');
    const monitor = objects.get('ServiceMonitor mine');
    assert.equal(monitor.metadata.labels.release, 'prometheus');
    assert.deepEqual(monitor.spec.endpoints[0].authorization.credentials, {
      name: 'metrics',
      key: 'key',
    });
  });
});
