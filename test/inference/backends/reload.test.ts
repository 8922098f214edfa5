// SIGHUP: the models of the file are read again while requests run; a wrong file changes nothing.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { makeFolder, serveMillrace } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';

const key = 'a-key-for-tests-0123456789';

const toFile = (id: string, backends: [name: string, url: string][]) =>
  JSON.stringify({
    cloud: { driver: 'scripted' },
    models: {
      builtin_ids: false,
      catalog: { [id]: { backends: backends.map(([name, url]) => ({ name, url })) } },
    },
  });

describe('SIGHUP', () => {
  it('changes models and backends without dropping a request, and ignores an invalid file', async () => {
    const slow = await startScriptedUpstream({ eventDelayMs: 40, words: 50 });
    const quick = await startScriptedUpstream();
    after(() => Promise.all([slow.close(), quick.close()]));
    const file = join(makeFolder(), 'millrace.yaml');
    writeFileSync(file, toFile('old-id', [['slow', slow.url]]));
    const { child, url, stderr } = await serveMillrace(['--config', file], {
      MILLRACE_API_KEY: key,
    });
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const chat = (model: string, stream: boolean) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Hi' }] }),
      });
    const ids = async () => {
      const { data } = (await (await fetch(`${url}/v1/models`, { headers })).json()) as {
        data: { id: string }[];
      };
      return data.map(({ id }) => id);
    };
    assert.deepEqual(await ids(), ['old-id']);
    const running = await chat('old-id', true);
    assert.equal(running.headers.get('x-served-by'), 'slow');

    writeFileSync(file, toFile('new-id', [['quick', quick.url]]));
    child.kill('SIGHUP');
    await until('the new model is there', async () => (await ids())[0] === 'new-id');
    const plain = await chat('new-id', false);
    assert.equal(plain.status, 200);
    assert.equal(plain.headers.get('x-served-by'), 'quick');
    assert.equal((await chat('old-id', false)).status, 404);

    writeFileSync(file, 'models:\n  catalgo: {}\n');
    child.kill('SIGHUP');
    await until('the reason is logged', () => stderr().includes('models.catalgo is not a setting'));
    assert.deepEqual(await ids(), ['new-id']);
    assert.equal((await chat('new-id', false)).status, 200);

    assert.match(await running.text(), /"finish_reason":"(stop|length)".*\[DONE\]\s*$/s);
    // Its backend is gone from the file, so its connection may be closed once the last event was read.
    await until('it is over', () => slow.requests[0]?.state !== 'running');
    assert.equal(child.exitCode, null);
  });
});
