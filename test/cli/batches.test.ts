// millrace batches against a real server with a scripted upstream: in pipes, and on a terminal.

import assert from 'node:assert';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { BatchObject } from '#inference/apis/batches/schema.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { toLine, toLines, toText } from '#test/support/batches.ts';
import { gatewayModel } from '#test/support/gateway.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { startTestServer } from '#test/support/server.ts';
import { typeMillrace } from '#test/support/terminal.ts';
import { until } from '#test/support/until.ts';

describe('millrace batches', () => {
  const folder = makeFolder();
  let upstream: ScriptedUpstream;
  let env: Record<string, string>;
  before(async () => {
    upstream = await startScriptedUpstream({ words: 3 });
    const backends = [{ name: 'box', url: upstream.url, model: 'scripted' }];
    const config = { models: { catalog: { [gatewayModel]: { backends } } } };
    const server = await startTestServer({ config });
    env = {
      HOME: makeFolder(),
      PATH: process.env.PATH ?? '',
      MILLRACE_URL: server.url,
      MILLRACE_API_KEY: server.key,
    };
  });
  after(() => upstream.close());

  const run = (...words: string[]) => callMillrace(['batches', ...words], { env });
  const json = async (...words: string[]) => {
    const { stdout, stderr } = await run(...words, '--json');
    assert.notEqual(stdout, '', stderr);
    return JSON.parse(stdout) as BatchObject;
  };
  const write = async (name: string, text: string) => {
    const path = join(folder, name);
    await writeFile(path, text);
    return path;
  };

  test('a file is uploaded, its batch followed, shown and listed, and the results downloaded', async () => {
    const lines = [...toLines(3), toLine('bad', {}, { max_tokens: 1_000_000 })];
    const file = await write('lines.jsonl', toText(lines));
    const created = await run('create', file, '--watch');
    assert.equal(created.code, 0, created.stderr);
    const [, id = ''] =
      /^(batch_\w+) is completed: 4 of 4, 1 failed\.$/m.exec(created.stdout) ?? [];
    assert.match(created.stderr, /100%/);
    assert.match(created.stderr, /^completed: 4 of 4, 1 failed$/m);
    const short = id.slice('batch_'.length, 'batch_'.length + 8);
    const shown = await run('show', short);
    assert.match(shown.stdout, /^Progress {5}4 of 4, 1 failed$/m);
    assert.equal((await json('show', id.slice(0, 14))).request_counts.completed, 3);
    const listed = await run('list');
    assert.match(listed.stdout, new RegExp(`^ID +STATUS +PROGRESS.*\n${id} +completed +4 of 4`));
    const results = await run('results', short);
    const ids = results.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).custom_id);
    assert.deepEqual(ids.sort(), ['line-0', 'line-1', 'line-2']);
    const errors = join(folder, 'errors.jsonl');
    assert.equal((await run('results', short, '--errors', '--output', errors)).code, 0);
    assert.equal(JSON.parse(await readFile(errors, 'utf8')).custom_id, 'bad');
    const again = await run('cancel', short, '--yes');
    assert.deepEqual([again.code, again.stdout], [1, '']);
    assert.match(again.stderr, /The batch is completed/);
  });

  test('a batch is cancelled after a question on a terminal', async () => {
    upstream.behave('slow-headers');
    const { id } = await json('create', await write('slow.jsonl', toText(toLines(20))));
    await until('it runs', async () => (await json('show', id)).status === 'in_progress');
    const early = await run('results', id);
    assert.match(early.stderr, /is in_progress\. Follow it with/);
    const { code, screen } = await typeMillrace(
      env,
      ['batches', 'cancel', id],
      [`Cancel ${id}?`, 'y'],
    );
    assert.equal(code, 0, screen);
    assert.match(screen, /is being cancelled/);
    await until('it has ended', async () => (await json('show', id)).status === 'cancelled');
    const none = await run('results', id);
    assert.match(none.stderr, /is cancelled and has no results/);
  });

  test('a file that is no batch is refused with the reason', async () => {
    const missing = await run('create', join(folder, 'none.jsonl'));
    assert.match(missing.stderr, /Can't read .*none\.jsonl/);
    const plain = await run('create', await write('plain.txt', 'hello\n'));
    assert.match(plain.stderr, /is not JSON/);
    const faulty = await run(
      'create',
      await write('twice.jsonl', toText([toLine('a'), toLine('a')])),
      '--watch',
    );
    assert.equal(faulty.code, 1);
    assert.match(faulty.stderr, /^Line 2: An earlier line has this custom_id\.$/m);
    const unknown = await run('show', 'abcdef');
    assert.match(unknown.stderr, /There is no batch batch_abcdef/);
  });
});
