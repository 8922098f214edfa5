// millrace doctor on this computer: beside a running server, before the first start, and with things that are broken.

import assert from 'node:assert';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Check } from '#server/doctor.ts';
import { startHub } from '#test/support/hub.ts';
import { makeFolder, runMillrace, serveMillrace } from '#test/support/process.ts';

async function examine(args: string[], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runMillrace(['doctor', '--json', ...args], { env });
  assert.equal(stderr, '');
  const checks = JSON.parse(stdout) as Check[];
  const find = (name: string) => {
    const { status, message } = checks.find((one) => one.name === name) as Check;
    return `${status}: ${message}`;
  };
  return { code, checks, find };
}

/** The computer that runs the tests may lack what machines need. */
const withoutMachines = () => {
  const file = join(makeFolder(), 'millrace.yaml');
  writeFileSync(file, 'cloud: { driver: none }\n');
  return ['--config', file];
};

describe('millrace doctor', () => {
  test('before the first start it finds nothing wrong, and leaves nothing behind', async () => {
    const hub = await startHub();
    const parent = makeFolder();
    const dataDir = join(parent, 'data');
    const args = ['--data-dir', dataDir, '--port', '0', '--hub-url', hub.url];
    const { checks, find } = await examine(args);
    const names = checks.map(({ name }) => name);
    for (const name of ['Configuration', 'Node', 'Disk', 'Port', 'Namespaces', 'Models', 'GPU']) {
      assert(names.includes(name), names.join());
    }
    assert.equal(find('Database'), 'ok: SQLite. The first start creates it.');
    assert.equal(find('Hub'), `ok: ${hub.url} answers.`);
    assert.deepEqual([existsSync(dataDir), readdirSync(parent)], [false, []]);
  });

  test('it runs beside the server, whose port and database are fine', async () => {
    const config = withoutMachines();
    const { url, dataDir } = await serveMillrace(config);
    const { port } = new URL(url);
    const args = [...config, '--data-dir', dataDir, '--port', port];
    const { code, find } = await examine(args);
    assert.equal(code, 0);
    assert.equal(find('Port'), `ok: A Millrace server is running on 127.0.0.1:${port}.`);
    assert.equal(find('Database'), 'ok: SQLite opens, and its schema is current.');
    assert.equal(find('Machines'), 'ok: None here: cloud.driver is none.');
  });

  test('a problem says what to do and exits 1; a hub that does not answer is a warning', async () => {
    const other = createServer((socket) => socket.end('not HTTP')).listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    const dataDir = makeFolder();
    writeFileSync(join(dataDir, 'millrace.db'), 'x'.repeat(5_000));
    const config = withoutMachines();
    const common = [...config, '--hub-url', 'http://127.0.0.1:9', '--data-dir', dataDir];
    const { code, find } = await examine([...common, '--port', String(port)]);
    other.close();
    assert.equal(code, 1);
    assert.equal(
      find('Port'),
      `problem: Port ${port} on 127.0.0.1 is already in use. Choose another with --port.`,
    );
    assert.match(find('Database'), /^problem: The database .* can't be used: .*restore/);
    assert.match(find('Hub'), /^warning: The hub http:\/\/127\.0\.0\.1:9 .* MILLRACE_HUB_URL/);
  });

  test('lines for people begin with the state; an invalid configuration is the only line', async () => {
    const { code, stdout } = await runMillrace(['doctor'], {
      env: { MILLRACE_PORT: 'x' },
    });
    assert.deepEqual(
      [code, stdout],
      [
        1,
        'problem  Configuration  MILLRACE_PORT: server.port must be an integer, got "x". Correct it, then run `./millrace config check`.\n',
      ],
    );
  });

  test('GPUs are those that nvidia-smi lists', async () => {
    const folder = makeFolder();
    const line = 'GPU-1, NVIDIA H100 80GB HBM3, 81559, 00000000:18:00.0';
    writeFileSync(join(folder, 'nvidia-smi'), `#!/bin/sh\necho '${line}'\n`, { mode: 0o755 });
    const { find } = await examine([...withoutMachines(), '--port', '0'], {
      PATH: `${folder}:${process.env.PATH}`,
    });
    assert.match(find('GPU'), /^(ok|warning): 1 × NVIDIA H100 80GB HBM3/);
  });
});
