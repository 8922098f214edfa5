// The files for containers, systemd and Kubernetes name only what exists here. Docker and Helm are not run: the chart's
// templates are filled in with its own values and read as YAML.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { overrides } from '#config/overrides.ts';
import { needs } from '#test/support/programs.ts';
import millrace from '../package.json' with { type: 'json' };

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const variables: readonly string[] = overrides.map(({ env }) => env);

test('the image runs as a user of its own, checks its health and copies files that exist', () => {
  const text = read('deploy/Dockerfile');
  const last = text.slice(text.lastIndexOf('\nFROM '));
  assert.match(last, /^USER millrace$/m);
  assert.match(last, /^HEALTHCHECK .*\n?.*readyz/m);
  const copied = [...text.matchAll(/^COPY (?:--from=build )?(.+) \S+$/gm)]
    .flatMap(([, paths]) => (paths as string).split(' '))
    .map((path) => path.replace(/^\/app\//, ''))
    .filter((path) => path !== 'node_modules');
  assert.ok(copied.length > 8);
  assert.deepEqual(
    copied.filter((path) => !existsSync(join(root, path))),
    [],
  );
  const [, environment] = /^ENV (.+)$/m.exec(last) ?? [];
  const names = (environment as string).split(' ').map((pair) => pair.split('=')[0] as string);
  assert.deepEqual(
    names.filter((name) => !variables.includes(name)),
    [],
  );
});

test('compose starts the server when PostgreSQL and Valkey are healthy', () => {
  const { services, volumes } = parse(read('deploy/compose.yaml'));
  const names = Object.keys(services.millrace.environment);
  assert.deepEqual(
    names.filter((name) => !variables.includes(name)),
    [],
  );
  for (const name of Object.keys(services.millrace.depends_on))
    assert.ok(services[name].healthcheck.test.length > 0);
  const mounted = Object.values<{ volumes: string[] }>(services).flatMap((one) => one.volumes);
  assert.deepEqual(mounted.map((one) => one.split(':')[0]).sort(), Object.keys(volumes).sort());
});

test('systemd accepts the unit', { skip: needs('systemd-analyze') }, () => {
  const unit = join(root, 'deploy/millrace.service');
  const { stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
  const complaints = stderr.split('\n').filter((line) => line.includes('millrace.service'));
  // The program is not installed here.
  assert.deepEqual(
    complaints.filter((line) => !line.includes('is not executable')),
    [],
  );
});

test("the chart's templates are Kubernetes objects with the chart's values", () => {
  const folder = 'deploy/helm/millrace';
  const chart = parse(read(`${folder}/Chart.yaml`));
  assert.deepEqual([chart.version, chart.appVersion], [millrace.version, millrace.version]);
  const values = parse(read(`${folder}/values.yaml`));
  const kinds = readdirSync(join(root, folder, 'templates')).map((name) => {
    const [document] = parseAllDocuments(fillIn(read(`${folder}/templates/${name}`), values));
    assert.deepEqual(document?.errors, [], name);
    const object = document?.toJS();
    assert.ok(object.apiVersion && object.metadata.name, name);
    if (object.kind === 'ConfigMap') parse(object.data['millrace.yaml']);
    return object.kind;
  });
  assert.deepEqual(kinds.sort(), ['ConfigMap', 'Service', 'StatefulSet']);
});

/** Does what the templates use of Helm: values, defaults, `with`, and `toYaml` with an indentation. */
function fillIn(template: string, values: object): string {
  const look = (path: string) =>
    path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], values);
  const filled = template
    .replaceAll(/^ *\{\{- with \S+ \}\}\n[\s\S]*?\{\{- end \}\}\n/gm, '')
    .replaceAll(/\{\{- toYaml \.Values\.(\S+) \| nindent (\d+) \}\}/g, (_, path, count) =>
      `\n${stringify(look(path)).trimEnd()}`.replaceAll('\n', `\n${' '.repeat(Number(count))}`),
    )
    .replaceAll(/\{\{ \.Values\.(\S+)(?: \| default \S+)? \}\}/g, (_, path) => String(look(path)))
    .replaceAll('{{ .Release.Name }}', 'release');
  assert.ok(!filled.includes('{{'), filled);
  return filled;
}

test('the install script refuses what it can’t install', () => {
  const script = join(root, 'install.sh');
  execFileSync('sh', ['-n', script]);
  const { status, stderr } = spawnSync('sh', [script, 'missing.tgz'], { encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /There is no file missing\.tgz\./);
});
