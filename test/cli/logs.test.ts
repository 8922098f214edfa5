// The log: readable on a terminal, JSON in a pipe, kept within its bound in the data directory, and read by
// `millrace logs`.

import assert from 'node:assert';
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createLogFile, toLogFile, toPreviousLogFile } from '#lib/telemetry/log-file.ts';
import { formatLogLine } from '#lib/telemetry/log-format.ts';
import { callMillrace, makeFolder, serveMillrace } from '#test/support/process.ts';
import { ctrlC, typeMillrace } from '#test/support/terminal.ts';
import { until } from '#test/support/until.ts';

const toLine = (msg: string) => `${JSON.stringify({ level: 30, time: 0, msg })}\n`;
const env = { HOME: makeFolder(), PATH: process.env.PATH ?? '' };

describe('millrace logs', () => {
  test('prints what the server logged, as JSON in a pipe and as text on request', async () => {
    const server = await serveMillrace();
    const secret = 'a-wrong-key-that-must-not-be-logged';
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'x',
        messages: [{ role: 'user', content: 'a secret prompt' }],
      }),
    });
    const id = response.headers.get('x-request-id') ?? '';
    const file = toLogFile(server.dataDir);
    await until(
      'it is in the file',
      () => existsSync(file) && readFileSync(file, 'utf8').includes(id),
    );
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(file, 'utf8'), /must-not-be-logged|a secret prompt/);

    const where = ['--data-dir', server.dataDir];
    const { code, stdout } = await callMillrace(['logs', ...where]);
    assert.equal(code, 0);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert(lines.some(({ request_id, status }) => request_id === id && status === 401));
    assert(server.stderr().includes(stdout.trimEnd().split('\n')[0] ?? ''), 'stderr has the same');

    const text = await callMillrace(['logs', '--text', '-n', '1', ...where]);
    assert.match(text.stdout, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \w+ .*\n$/);
    assert.match(
      (await callMillrace(['logs', '--text', ...where])).stdout,
      / POST \S+ 401 \S+ ms /,
    );
  });

  test('-f goes on after the file was rotated, and ends at Ctrl-C', async () => {
    const dataDir = makeFolder();
    const file = toLogFile(dataDir);
    const output = createLogFile(file, 2_000);
    const write = (msg: string) => output.writeSync(Buffer.from(toLine(msg)));
    write('before');
    const fill = () => {
      write('first');
      while (!statSync(toPreviousLogFile(file), { throwIfNoEntry: false })) write('filler');
      write('rotated');
    };
    const { code, screen } = await typeMillrace(
      env,
      ['logs', '-f', '--data-dir', dataDir],
      ['before', fill],
      ['first', ''],
      ['rotated', () => appendFileSync(file, toLine('later'))],
      ['later', ctrlC],
    );
    assert.equal(code, 130, screen);
    const all = await callMillrace(['logs', '-n', '1000', '--data-dir', dataDir]);
    const messages = all.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).msg);
    assert.deepEqual([messages[0], messages.at(-1)], ['before', 'later']);
  });

  test('says where it looked if there is no log', async () => {
    const { code, stderr } = await callMillrace(['logs', '--data-dir', makeFolder()]);
    assert.equal(code, 1);
    assert.match(stderr, /^There is no log at \S+server\.log\. Run this on the server's computer/);
  });
});

describe('the log of a server', () => {
  test('is readable and coloured on a terminal', async () => {
    const words = ['serve', '--port', '0', '--data-dir', makeFolder(), '--log-level', 'debug'];
    const { code, raw } = await typeMillrace({ ...env, TERM: 'xterm-256color' }, words, [
      'API docs',
      ctrlC,
    ]);
    assert.equal(code, 0, raw);
    assert.match(raw, /\p{Cc}\[\d+m(INFO|DEBUG) *\p{Cc}\[\d+m/u);
    assert.doesNotMatch(raw, /"level":/);
  });

  test('follows the setting log.format, and keeps no file if log.file_mib is 0', async () => {
    const config = join(makeFolder(), 'millrace.yaml');
    writeFileSync(config, JSON.stringify({ log: { level: 'debug', format: 'text', file_mib: 0 } }));
    const server = await serveMillrace(['--config', config]);
    await fetch(`${server.url}/v1/nothing`);
    await until('it is logged', () => / GET \S+ 40\d /.test(server.stderr()));
    assert.doesNotMatch(server.stderr(), /"level":|\p{Cc}\[/u);
    assert.equal(statSync(toLogFile(server.dataDir), { throwIfNoEntry: false }), undefined);
  });

  test('stays within its bound on disk', () => {
    const file = toLogFile(makeFolder());
    const output = createLogFile(file, 10_000);
    for (let count = 0; count < 2_000; count++) output.writeSync(Buffer.from(toLine(`${count}`)));
    assert(statSync(file).size <= 5_000);
    assert(statSync(toPreviousLogFile(file)).size <= 5_000);
    assert(readFileSync(file, 'utf8').endsWith(toLine('1999')));
  });

  test('a line can not control the terminal', () => {
    const hostile = { level: 50, time: 0, msg: 'x\u001b[2J', name: 'a\u009b1m b', '\u001bk': 1 };
    const shown = formatLogLine(JSON.stringify(hostile), false);
    assert.match(shown, /^1970-01-01 00:00:00\.000 ERROR x\ufffd\[2J /);
    assert.doesNotMatch(shown, /\p{Cc}/u);
    const stack = 'Error: broken\n    at one (file.ts:1:1)\n    at two (file.ts:2:2)';
    const failed = { level: 50, time: 0, msg: 'failed', err: { message: 'broken', stack } };
    assert.deepEqual(formatLogLine(JSON.stringify(failed), false).split('\n'), [
      '1970-01-01 00:00:00.000 ERROR failed: broken',
      '    at one (file.ts:1:1)',
      '    at two (file.ts:2:2)',
    ]);
  });
});
