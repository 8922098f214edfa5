// A start that can't be is refused in one sentence that names the cause, and never with a stack.

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

describe('a start that is refused', () => {
  test('a data directory that is a file, or below one', async () => {
    const file = join(makeFolder(), 'file');
    writeFileSync(file, '');
    const sentence = `The data directory can't be made: ${file} is a file.`;
    assert.equal(await refuse(['--data-dir', file]), sentence);
    assert.equal(await refuse(['--data-dir', join(file, 'sub')]), sentence);
  });

  test('a data directory where no folder can be made is refused, not waited for', {
    skip: !existsSync('/proc/self'),
    timeout: 30_000,
  }, async () => {
    const said = await refuse(['--data-dir', '/proc/nope/data']);
    assert.match(said, /^The data directory .*\/proc/);
  });

  test('a data directory that may not be made is about the folder, not about listening', () => {
    const folder = makeFolder();
    chmodSync(folder, 0o500);
    // Root may do everything, so it becomes nobody for a moment.
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

  test('a database file that is none', async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, 'millrace.db'), 'this is not a database'.repeat(100));
    assert.equal(
      await refuse(['--data-dir', folder]),
      `The database ${folder}/millrace.db can't be used: file is not a database.`,
    );
  });

  test('a database that does not answer is named as such, without its password', async () => {
    const said = await refuse(['--data-dir', makeFolder()], {
      DATABASE_URL: 'postgres://me:secret@127.0.0.1:1/x',
    });
    assert.match(said, /^The database at database\.url can't be used: .*ECONNREFUSED/);
    assert(!said.includes('secret'));
  });

  test('a host that is not known is about listening, not about the database', async () => {
    const said = await refuse(['--data-dir', makeFolder(), '--host', 'nosuch.invalid']);
    assert.match(said, /^Can't listen on nosuch\.invalid: /);
  });

  test('a port that is taken', async () => {
    const other = createServer();
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
    const { port } = other.address() as { port: number };
    const said = await refuse(['--data-dir', makeFolder(), '--port', String(port)]);
    other.close();
    assert.equal(said, `Port ${port} on 127.0.0.1 is taken. Choose another with --port.`);
  });

  test('what nobody foresaw is one line, and a stack for those who ask', async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, 'models'), 'a file where a folder belongs');
    assert.match(await refuse(['--data-dir', folder]), /^Something went wrong: EEXIST/);
    const { code, stderr } = await runMillrace(['serve', '--port', '0', '--data-dir', folder], {
      env: { MILLRACE_LOG_LEVEL: 'debug' },
    });
    assert.equal(code, 1);
    assert.match(stderr, /EEXIST.*\n\s+at /);
  });
});

describe('what a start leaves', () => {
  test('the data directory and the database are for their owner alone', async () => {
    const dataDir = join(makeFolder(), 'new', 'data');
    await serveMillrace(['--data-dir', dataDir]);
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
    assert.deepEqual([modeOf(dataDir), modeOf(join(dataDir, '..'))], ['700', '700']);
    for (const ending of ['', '-wal', '-shm']) {
      assert.equal(modeOf(join(dataDir, `millrace.db${ending}`)), '600');
    }
  });
});

describe('what the CLI says of itself', () => {
  test('its version is the package’s', async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'),
    );
    assert.equal((await runMillrace(['--version'])).stdout, `${version}\n`);
  });

  test('a damaged session file is named, with what to do', async () => {
    const home = makeFolder();
    const file = join(home, '.config', 'millrace', 'session.json');
    mkdirSync(join(home, '.config', 'millrace'), { recursive: true });
    for (const text of ['{"url":', 'null', '{}']) {
      writeFileSync(file, text);
      const { code, stderr } = await runMillrace(['whoami'], { env: { HOME: home } });
      const sentence = `${file} is damaged. Delete it and run \`millrace login\` again.\n`;
      assert.deepEqual([code, stderr], [1, sentence]);
    }
  });
});
