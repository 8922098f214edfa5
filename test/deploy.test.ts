// The files for containers, systemd and Kubernetes name only what exists here, and run the image as
// deploy-image.soak.ts does. The chart's templates are filled in with its own values and read as YAML;
// deploy-chart.soak.ts runs Helm.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Document, parse, parseAllDocuments, stringify } from 'yaml';
import { overrides } from '#config/overrides.ts';
import { needs } from '#test/support/programs.ts';
import millrace from '../package.json' with { type: 'json' };

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const variables: readonly string[] = overrides.map(({ env }) => env);

const dockerfile = read('deploy/Dockerfile');
const finalStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));
const healthCheck = JSON.parse(
  /^HEALTHCHECK [^[]*CMD (\[.+\])$/m.exec(finalStage)?.[1] ?? 'null',
) as string[];

test('the image runs as a numbered user, checks its health and copies files that exist', () => {
  assert.match(finalStage, /^USER 10001:10001$/m);
  assert.match(finalStage, / useradd --uid 10001 --gid 10001 /);
  assert.equal(healthCheck[0], 'node');
  assert.match(healthCheck.join(' '), /readyz/);
  assert.match(finalStage, /^COPY --from=build \/app\/node \/usr\/local\/bin\/node$/m);
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) =>
    (paths as string).split(' '),
  );
  assert.ok(copied.length > 3);
  assert.deepEqual(
    copied.filter((path) => !existsSync(join(root, path))),
    [],
  );
  const [, environment] = /^ENV (.+)$/m.exec(finalStage) ?? [];
  const names = (environment as string).split(' ').map((pair) => pair.split('=')[0] as string);
  assert.deepEqual(
    names.filter((name) => !variables.includes(name)),
    [],
  );
});

test('both images that the image is made from can be replaced', () => {
  assert.match(dockerfile, /^FROM \$\{BUILD\} AS build$/m);
  assert.match(finalStage, /^\nFROM \$\{BASE\}$/m);
  assert.match(dockerfile, /^ARG BUILD=node:24-bookworm-slim$/m);
  assert.match(dockerfile, /^ARG BASE=debian:bookworm-slim$/m);
});

test('what the image is built from is not ignored', () => {
  const ignored = read('.dockerignore').trim().split('\n');
  const needed = [
    'docs',
    'model',
    'src',
    'tools',
    'web',
    'millrace',
    'package-lock.json',
    '.npmrc',
  ];
  assert.deepEqual(
    needed.filter((name) => ignored.includes(name)),
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

test('compose runs the image as its user with a read-only root, and checks its health', () => {
  const { millrace } = parse(read('deploy/compose.yaml')).services;
  assert.deepEqual(
    [millrace.user, millrace.read_only, millrace.tmpfs, millrace.volumes],
    ['10001:10001', true, ['/tmp'], ['data:/data']],
  );
  assert.deepEqual(
    [millrace.cap_drop, millrace.security_opt],
    [['ALL'], ['no-new-privileges:true']],
  );
  assert.deepEqual(millrace.healthcheck.test, ['CMD', ...healthCheck]);
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

test('every file that names the version of a release names that of package.json', () => {
  const { version } = millrace;
  const lock = JSON.parse(read('package-lock.json'));
  assert.deepEqual([lock.version, lock.packages[''].version], [version, version]);
  for (const file of ['install.sh', 'docs/install.md']) {
    const named = [...read(file).matchAll(/millrace-(\d+\.\d+\.\d+)\.tgz/g)].map(([, one]) => one);
    assert.deepEqual([...new Set(named)], [version], file);
  }
  const [released] = /^## \[\d.*$/m.exec(read('CHANGELOG.md')) ?? [];
  assert.match(
    released ?? '',
    new RegExp(`^## \\[${RegExp.escape(version)}\\] - \\d{4}-\\d\\d-\\d\\d$`),
  );
});

test("the chart's templates are Kubernetes objects with the chart's values", () => {
  const folder = 'deploy/helm/millrace';
  const chart = parse(read(`${folder}/Chart.yaml`));
  assert.deepEqual([chart.version, chart.appVersion], [millrace.version, millrace.version]);
  const kinds = readdirSync(join(root, folder, 'templates')).flatMap((name) =>
    readTemplates(name).map((object) => {
      assert.ok(object.apiVersion && object.metadata.name, name);
      if (object.kind === 'ConfigMap') parse(object.data['millrace.yaml']);
      return object.kind;
    }),
  );
  assert.deepEqual(kinds.sort(), ['ConfigMap', 'Service', 'Service', 'StatefulSet']);
});

test("the chart's pods run the image as its user with a read-only root", () => {
  const [{ spec }] = readTemplates('statefulset.yaml');
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const { runAsNonRoot, runAsUser, runAsGroup, fsGroup } = pod.securityContext;
  assert.deepEqual([runAsNonRoot, runAsUser, runAsGroup, fsGroup], [true, 10001, 10001, 10001]);
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  const mounts: { name: string; mountPath: string; readOnly?: boolean }[] = container.volumeMounts;
  const writable = mounts.filter(({ readOnly }) => readOnly !== true);
  assert.deepEqual(writable.map(({ mountPath }) => mountPath).sort(), ['/data', '/tmp']);
  const volumes: { name: string; emptyDir?: object }[] = pod.volumes;
  assert.deepEqual(volumes.find(({ name }) => name === 'tmp')?.emptyDir, {});
  const claims: { metadata: { name: string } }[] = spec.volumeClaimTemplates;
  const names = [...volumes, ...claims.map(({ metadata }) => metadata)].map(({ name }) => name);
  assert.deepEqual(names.sort(), mounts.map(({ name }) => name).sort());
});

/** The objects of a template with the chart's own values: what they turn off is none. */
function readTemplates(name: string) {
  const values = parse(read('deploy/helm/millrace/values.yaml'));
  const template = read(`deploy/helm/millrace/templates/${name}`);
  const documents = parseAllDocuments(fillIn(template, values)) as Document[];
  for (const { errors } of documents) assert.deepEqual(errors, [], name);
  return documents.map((document) => document.toJS()).filter((object) => object !== null);
}

/** Does what the templates use of Helm with these values: defaults, `toYaml`, and nothing in blocks with a condition. */
function fillIn(template: string, values: object): string {
  const look = (path: string) =>
    path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], values);
  const filled = withoutBlocks(template)
    .replaceAll(/\{\{- toYaml \.Values\.(\S+) \| nindent (\d+) \}\}/g, (_, path, count) =>
      `\n${stringify(look(path)).trimEnd()}`.replaceAll('\n', `\n${' '.repeat(Number(count))}`),
    )
    .replaceAll(/\{\{ toYaml \.Values\.\S+ \| sha256sum \}\}/g, 'hash')
    .replaceAll(/\{\{ \.Values\.(\S+)(?: \| default \S+)? \}\}/g, (_, path) => String(look(path)))
    .replaceAll('{{ .Release.Name }}', 'release');
  assert.ok(!filled.includes('{{'), filled);
  return filled;
}

function withoutBlocks(template: string): string {
  const innermost =
    /^ *\{\{- (?:with|if) .+ \}\}\n(?:(?! *\{\{- (?:with|if|end) ).*\n)*? *\{\{- end \}\}\n/m;
  let left = template;
  while (innermost.test(left)) left = left.replace(innermost, '');
  return left;
}

test('the install script refuses what it can’t install', () => {
  const script = join(root, 'install.sh');
  execFileSync('sh', ['-n', script]);
  const { status, stderr } = spawnSync('sh', [script, 'missing.tgz'], { encoding: 'utf8' });
  assert.equal(status, 1);
  assert.match(stderr, /There is no file missing\.tgz\./);
});
