// A start that fails says why in one sentence, without a stack.

import assert from 'node:assert';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeDataDirectory } from '#db/data-directory.ts';
import { makeFolder, runMillrace, serveMillrace } from '#test/support/process.ts';

const refuse = async (args: string[], env: Record<string, string> = {}) => {
  const { code, stdout, stderr } = await runMillrace(['serve', '--port', '0', ...args], { env });
  assert.deepEqual([code, stdout], [1, ''], stderr);
  assert.equal(stderr.split('\n').length, 2, stderr);
  return stderr.trimEnd();
};

describe('a start that fails', () => {
  test('a data directory that is a file, or below one', async () => {
    const file = join(makeFolder(), 'file');
    writeFileSync(file, '');
    const sentence = `The data directory can't be made: ${file} is a file.`;
    assert.equal(await refuse(['--data-dir', file]), sentence);
    assert.equal(await refuse(['--data-dir', join(file, 'sub')]), sentence);
  });

  test('a data directory that can never be created fails at once', {
    skip: !existsSync('/proc/self'),
    timeout: 30_000,
  }, async () => {
    const said = await refuse(['--data-dir', '/proc/nope/data']);
    assert.match(said, /^The data directory .*\/proc/);
  });

  test('a data directory without write permission is reported as such, not as a listen error', () => {
    const folder = makeFolder();
    chmodSync(folder, 0o500);
    // Root ignores permissions, so the test runs as the user `nobody` for a moment.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65534);
    try {
      assert.throws(() => makeDataDirectory(join(folder, 'data')), {
        name: 'StartError',
        message: `The data directory ${folder}/data can't be used: permission denied.`,
      });
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

  test('a database file that is not a database', async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, 'millrace.db'), 'this is not a database'.repeat(100));
    assert.equal(
      await refuse(['--data-dir', folder]),
      `The database ${folder}/millrace.db can't be used: file is not a database.`,
    );
  });

  test('a database that does not respond is reported without its password', async () => {
    const said = await refuse(['--data-dir', makeFolder()], {
      DATABASE_URL: 'postgres://me:secret@127.0.0.1:1/x',
    });
    assert.match(said, /^The database at database\.url can't be used: .*ECONNREFUSED/);
    assert(!said.includes('secret'));
  });

  test('a host name that does not resolve is a listen error, not a database error', async () => {
    const said = await refuse(['--data-dir', makeFolder(), '--host', 'nosuch.invalid']);
    assert.match(said, /^Can't listen on nosuch\.invalid: /);
  });

  test('a port that is in use', async () => {
    const other = createServer();
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
    const { port } = other.address() as { port: number };
    const said = await refuse(['--data-dir', makeFolder(), '--port', String(port)]);
    other.close();
    assert.equal(said, `Port ${port} on 127.0.0.1 is already in use. Choose another with --port.`);
  });

  test('an unexpected error is one line, and has a stack only at log level debug', async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, 'models'), 'a file where a folder belongs');
    assert.match(await refuse(['--data-dir', folder]), /^Unexpected error: EEXIST/);
    const { code, stderr } = await runMillrace(['serve', '--port', '0', '--data-dir', folder], {
      env: { MILLRACE_LOG_LEVEL: 'debug' },
    });
    assert.equal(code, 1);
    assert.match(stderr, /EEXIST.*\n\s+at /);
  });
});

describe('files of a started server', () => {
  test('only their owner can read the data directory and the database', async () => {
    const dataDir = join(makeFolder(), 'new', 'data');
    await serveMillrace(['--data-dir', dataDir]);
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
    assert.deepEqual([modeOf(dataDir), modeOf(join(dataDir, '..'))], ['700', '700']);
    for (const ending of ['', '-wal', '-shm']) {
      assert.equal(modeOf(join(dataDir, `millrace.db${ending}`)), '600');
    }
  });
});

describe('the CLI without a server', () => {
  test('--version prints the version of the package', async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
    );
    assert.equal((await runMillrace(['--version'])).stdout, `${version}\n`);
  });

  test('a damaged session file is named, with a fix', async () => {
    const home = makeFolder();
    const file = join(home, '.config', 'millrace', 'session.json');
    mkdirSync(join(home, '.config', 'millrace'), { recursive: true });
    for (const text of ['{"url":', 'null']) {
      writeFileSync(file, text);
      const { code, stderr } = await runMillrace(['whoami'], { env: { HOME: home } });
      const sentence = `${file} is damaged. Delete it and run \`./millrace login\` again.\n`;
      assert.deepEqual([code, stderr], [1, sentence]);
    }
  });
});
