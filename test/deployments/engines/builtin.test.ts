// The process of the built-in engine, as a server starts it.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { recipes } from '#deployments/engines/recipes.ts';
import { toSpec } from '#deployments/ground/spec.ts';
import type { Engine } from '#inference/engine.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { createUpstreamEngine } from '#inference/engines/upstream/upstream.ts';
import { describeEngine } from '#test/support/conformance/engine.ts';
import { newCall } from '#test/support/engine-call.ts';
import { until } from '#test/support/until.ts';
import { upstreamOptions } from '#test/support/upstream.ts';

const key = 'the-key-of-this-engine';
const main = join(import.meta.dirname, '../../../src/main.js');
const mib = 2 ** 20;

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
  log(): string;
  fetch(path: string, json?: object, authorization?: string): Promise<Response>;
}

const children: ChildProcess[] = [];

async function startEngine(given: { source?: string; args?: string[] } = {}): Promise<Started> {
  const port = await findFreePort();
  const spec = toSpec({ name: 'tested', model: 'hermes3-8b', engine: 'builtin', ...given });
  const place = { port, key, millrace: [process.execPath, main] };
  const [program = '', ...args] = recipes.builtin.toCommand(spec, place);
  const env = { PATH: process.env.PATH ?? '', ...recipes.builtin.toEnvironment(spec, place) };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      text += chunk;
    });
  const url = `http://127.0.0.1:${port}`;
  return {
    child,
    url,
    log: () => text,
    fetch: (path, json, authorization = `Bearer ${key}`) =>
      fetch(`${url}${path}`, {
        headers: { authorization, 'content-type': 'application/json' },
        ...(json !== undefined && { method: 'POST', body: JSON.stringify(json) }),
      }),
  };
}

async function startReady(given: { source?: string; args?: string[] } = {}): Promise<Started> {
  const engine = await startEngine(given);
  await until('the model is loaded', () => /tokens, .* threads/.test(engine.log()));
  return engine;
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Memory of the process that is not in files, and so its own. */
function readMemory({ child }: Started): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

const upstreamOf = ({ url }: Started) =>
  createUpstreamEngine(upstreamOptions(`${url}/v1`, { apiKey: key, model: 'm', server: 'vllm' }));

const messages = [{ role: 'user' as const, content: 'Hello!' }];
const endless = { model: 'm', prompt: 'Once', max_tokens: 1_000, ignore_eos: true };

// Before the first suite: once the suites that exist have ended, the runner closes what was started.
const conforming = await startReady();

describeEngine('built-in, in a process of its own', upstreamOf(conforming));

describe('the process of the built-in engine', () => {
  let engine: Started;
  let upstream: Engine;
  before(async () => {
    engine = await startReady();
    upstream = upstreamOf(engine);
  });
  after(() => {
    for (const child of children) child.kill('SIGKILL');
  });

  test('answers nothing without its key', async () => {
    for (const path of ['/health', '/v1/models', '/v1/chat/completions'])
      for (const authorization of ['', 'Bearer another']) {
        const response = await engine.fetch(path, undefined, authorization);
        assert.equal(response.status, 401, path);
      }
  });

  test('refuses what it does not know, and bodies that are not JSON', async () => {
    assert.equal((await engine.fetch('/v1/files')).status, 404);
    const headers = { authorization: `Bearer ${key}` };
    const url = `${engine.url}/v1/chat/completions`;
    const response = await fetch(url, { method: 'POST', headers, body: '{' });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /not valid JSON/);
    const empty = await engine.fetch('/v1/chat/completions', {});
    assert(empty.status >= 400, 'and it lives on');
    assert.equal((await engine.fetch('/health')).status, 200);
  });

  test('enforces constraints in the dialect that the server sends', async () => {
    const body = { model: 'm', messages, guided_choice: ['yes', 'no'] };
    const { choices } = await upstream.respond({ kind: 'chat', body }, newCall());
    const [choice] = choices;
    assert(choice !== undefined && 'message' in choice);
    assert.match(choice.message.content ?? '', /^(yes|no)$/);
  });

  test('keeps the seed of a request, however long it is', async () => {
    const ask = async (seed: bigint) => {
      const body = { model: 'm', prompt: 'Once', max_tokens: 12, temperature: 2, seed };
      const task = { kind: 'completion', body } as const;
      const { choices } = await upstream.respond(task, newCall({}, 'completion'));
      return JSON.stringify(choices);
    };
    const seed = 9_007_199_254_740_993n;
    assert.equal(await ask(seed), await ask(seed));
    assert.notEqual(await ask(seed), await ask(seed - 1n));
  });

  test('turns texts into tokens and back, and counts them', async () => {
    const { signal } = new AbortController();
    const source = { prompt: 'A mill wheel' };
    const given = await upstream.tokenize?.(
      { source, addsSpecial: false, withTexts: true },
      signal,
    );
    assert.equal(given?.texts?.join(''), source.prompt);
    assert.equal(await upstream.detokenize?.(given.tokens, signal), source.prompt);
    assert.equal(await upstream.countText?.(source.prompt), given.tokens.length);
    const chat = { kind: 'chat', body: { model: 'm', messages } } as const;
    assert(Number(await upstream.countPromptTokens(chat, signal)) > 2);
  });

  test('says that its model does not embed', async () => {
    const asked = upstream.embed?.({ kind: 'embed', inputs: ['A mill'] }, newCall());
    await assert.rejects(async () => asked, { failure: 'rejected' });
  });

  test('reads the end of a prompt that is longer than the window of the built-in model', async () => {
    const content = 'word '.repeat(5_000);
    const body = { model: 'm', messages: [{ role: 'user' as const, content }], max_tokens: 4 };
    const { usage } = await upstream.respond({ kind: 'chat', body }, newCall());
    assert(usage.prompt_tokens > 5_000);
  });

  test('stops to generate when its client leaves', async () => {
    const left = new AbortController();
    const call = newCall({ signal: left.signal }, 'completion');
    const stream = await upstream.stream({ kind: 'completion', body: endless }, call);
    const reading = (async () => {
      for await (const _ of stream) left.abort(new Error('left'));
    })();
    await assert.rejects(reading, /left/);
    // It sleeps only without requests.
    await until('it has none', async () => (await engine.fetch('/sleep', {})).ok);
  });

  test('sleeps without the memory of weights and cache, and wakes for a request', async () => {
    await engine.fetch('/v1/completions', { ...endless, max_tokens: 1 });
    const awake = readMemory(engine);
    assert.equal((await engine.fetch('/sleep', {})).status, 200);
    await until('its memory is free', () => awake - readMemory(engine) > 80 * mib);
    assert.equal((await engine.fetch('/health')).status, 200);
    assert.equal((await engine.fetch('/v1/models')).status, 200);
    assert.match(engine.log(), /the model was unloaded\s*$/);
    const response = await engine.fetch('/v1/completions', { ...endless, max_tokens: 1 });
    assert.equal(response.status, 200, await response.text());
    assert.match(engine.log(), /the model is loaded\s*$/);
  });

  test('does not sleep while it generates', async () => {
    const response = await engine.fetch('/v1/completions', { ...endless, stream: true });
    const refused = await engine.fetch('/sleep', {});
    assert.equal(refused.status, 409);
    await response.body?.cancel();
  });

  test('uses at most 150 MB beside weights and cache', async () => {
    const fresh = await startReady();
    const body = { model: 'm', messages, max_tokens: 32 };
    assert.equal((await fresh.fetch('/v1/chat/completions', body)).status, 200);
    const [, weightsAndCache] = /(\d+) MiB/.exec(fresh.log()) ?? [];
    const ownBytes = readMemory(fresh) - Number(weightsAndCache) * mib;
    assert(ownBytes < 150e6, `${Math.round(ownBytes / 1e6)} MB`);
  });

  test('with a file refuses prompts beyond the window that it reports', async () => {
    const args = ['--ctx-size', '256'];
    const engine = await startReady({ source: builtinModel.modelPath, args });
    const { data } = (await (await engine.fetch('/v1/models')).json()) as {
      data: { max_model_len: number }[];
    };
    assert.deepEqual(
      data.map(({ max_model_len }) => max_model_len),
      [256],
    );
    const body = { model: 'm', prompt: 'word '.repeat(500) };
    const response = await engine.fetch('/v1/completions', body);
    assert.equal(response.status, 400);
    assert.match(await response.text(), /context_length_exceeded/);
  });

  for (const [what, given, reason] of [
    ['weights that are not there', { source: '/none.gguf' }, /no such weights/],
    ['weights that are no GGUF file', { source: main }, /not a sound GGUF file/],
    ['an argument that it does not have', { args: ['--nonsense'] }, /one of its arguments/],
  ] as const)
    test(`ends and says why: ${what}`, async () => {
      const engine = await startEngine(structuredClone(given) as { source?: string });
      await once(engine.child, 'close');
      assert.notEqual(engine.child.exitCode, 0);
      const lines = engine.log().split('\n');
      const { failures } = recipes.builtin;
      const found = failures.find(([pattern]) => lines.some((line) => pattern.test(line)));
      assert.match(found?.[1] ?? engine.log(), reason);
    });
});
