// The image of deploy/Dockerfile, built by buildah on bare Debian systems and run by podman as deploy/ says: as a user
// without capabilities, with only /data and /tmp writable. It needs the package registries.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import {
  type Containers,
  needsContainers,
  type RunningContainer,
  startContainers,
} from '#test/support/containers.ts';
import { makeFolder } from '#test/support/process.ts';
import { systemPath } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

const root = join(import.meta.dirname, '..');
const url = 'http://127.0.0.1:8080';

/** What the registries need on this computer, such as a certificate of its own, at the same path in a build. */
const registryFiles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/npmrc',
  '/usr/etc/npmrc',
  join(homedir(), '.npmrc'),
].filter((path) => existsSync(path));

/** As deploy/compose.yaml and the chart run it. Health is checked by the test: podman leaves it to systemd. */
const asDeployed = [
  ...['--rm', '--name', 'millrace', '--no-healthcheck'],
  ...['--publish', '127.0.0.1:8080:8080', '--volume', 'millrace:/data'],
  ...['--read-only', '--read-only-tmpfs=false', '--tmpfs', '/tmp'],
  ...['--cap-drop', 'all', '--security-opt', 'no-new-privileges'],
];

const missing = needsContainers();

describe('the image', { skip: missing }, () => {
  let containers: Containers;
  let key: string;
  const folder = makeFolder();

  before(async () => {
    containers = await startContainers(folder);
  });
  afterEach(() => containers.podman(['rm', '--all', '--force']));
  after(() => containers?.end());

  const buildBase = (name: string, parts: string, lines: readonly string[]) => {
    const file = join(folder, `${name}.containerfile`);
    writeFileSync(file, `FROM scratch\n${lines.join('\n')}\n`);
    return containers.buildah([
      'bud',
      '--isolation',
      'chroot',
      '--file',
      file,
      '--tag',
      name,
      parts,
    ]);
  };

  const sizeOf = async (image: string) => {
    const [{ Size }] = JSON.parse(await containers.podman(['image', 'inspect', image]));
    return Size / 1e6;
  };

  async function start(args: readonly string[]): Promise<RunningContainer> {
    const container = containers.run([...asDeployed, ...args]);
    const ended = container.ended.then(() => {
      throw new Error(`The container ended: ${container.stdout()}${container.stderr()}`);
    });
    const isReady = () =>
      containers.fetch(`${url}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      );
    await Promise.race([until('the server is ready', isReady, 120_000), ended]);
    return container;
  }

  async function stop(container: RunningContainer): Promise<void> {
    await containers.podman(['kill', '--signal', 'TERM', 'millrace']);
    assert.equal(await container.ended, 0, container.stderr());
    const logged = container.stdout() + container.stderr();
    assert.doesNotMatch(logged, /"level":[4-6]0|warning|error/i);
  }

  const ask = (content: string) =>
    containers.fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'llama3.1-8b-instruct',
        messages: [{ role: 'user', content }],
      }),
    });

  it('is built on bare Debian by the oldest Node for npm, and adds at most 300 MB', async (t) => {
    const parts = execFileSync(join(root, '.ci/bare-parts'), ['--base'], {
      encoding: 'utf8',
      env: { ...process.env, PATH: systemPath },
    }).trim();
    await buildBase('base', parts, ['ADD base.tar /']);
    await buildBase('build', parts, [
      'ADD root.tar /',
      'COPY node /opt/node',
      'ENV PATH=/opt/node/node_modules/.bin:/usr/sbin:/usr/bin:/sbin:/bin',
      'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt',
    ]);
    const packages = join(homedir(), '.npm');
    mkdirSync(packages, { recursive: true });
    const startedAt = performance.now();
    await containers.buildah([
      ...['bud', '--isolation', 'chroot', '--network', 'host', '--format', 'docker'],
      ...['--build-arg', 'BASE=localhost/base', '--build-arg', 'BUILD=localhost/build'],
      ...registryFiles.flatMap((path) => ['--volume', `${path}:${path}:ro`]),
      ...['--volume', `${packages}:${['', 'root', '.npm'].join('/')}`],
      ...['--file', join(root, 'deploy/Dockerfile'), '--tag', 'millrace', root],
    ]);
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const [base, whole] = [await sizeOf('base'), await sizeOf('millrace')];
    t.diagnostic(
      `built in ${seconds} s, ${Math.round(whole)} MB on a base of ${Math.round(base)} MB`,
    );
    assert.ok(whole - base < 300, `${whole - base} MB`);
  });

  it('chats and shows the dashboard as a user of its own with a read-only root', async (t) => {
    const startedAt = performance.now();
    const container = await start(['millrace']);
    t.diagnostic(`ready after ${Math.round(performance.now() - startedAt)} ms`);
    const found = await until('the key is printed', () => /secret_\S+/.exec(container.stdout()));
    key = found[0];
    assert.equal((await ask('Who are you?')).status, 200);
    for (const [path, content] of [
      ['/', '<div id="root">'],
      ['/docs', '</html>'],
      ['/help/', '</html>'],
    ] as const) {
      const page = await containers.fetch(url + path, { headers: { accept: 'text/html' } });
      assert.deepEqual([page.status, page.text.includes(content)], [200, true], path);
    }
    const inside = (...command: string[]) => containers.podman(['exec', 'millrace', ...command]);
    assert.equal(await inside('sh', '-c', 'id -u; id -g'), '10001\n10001\n');
    const writable = await inside('sh', '-c', 'find / -xdev -writable -type d 2>&- || true');
    assert.deepEqual(writable.trim().split('\n').sort(), ['/data', '/tmp']);
    const [image] = JSON.parse(await containers.podman(['image', 'inspect', 'millrace']));
    const [kind, ...check] = image.Healthcheck.Test;
    assert.equal(kind, 'CMD');
    await inside(...check);
    await stop(container);
  });

  it("starts again on its volume with the chart's configuration", async () => {
    const values = parse(readFileSync(join(root, 'deploy/helm/millrace/values.yaml'), 'utf8'));
    const file = join(folder, 'millrace.yaml');
    writeFileSync(file, stringify(values.config));
    const mounted = '/etc/millrace/millrace.yaml';
    const container = await start([
      ...['--volume', `${file}:${mounted}:ro`, 'millrace', 'serve', '--config', mounted],
    ]);
    const answer = await ask('Hi');
    assert.equal(answer.status, 200, answer.text);
    await stop(container);
  });
});
