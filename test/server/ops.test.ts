// What operators rely on: health, metrics, the API description, clean logs, and a stop that loses nothing.

import assert from 'node:assert';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Ajv } from 'ajv';
import { makeFolder, readFirstSecret, runMillrace, serveMillrace } from '#test/support/process.ts';
import { startTestServer } from '#test/support/server.ts';

describe('operations', () => {
  test('health, readiness and metrics need no key', async () => {
    const server = await startTestServer();
    assert.deepEqual(await (await fetch(`${server.url}/healthz`)).json(), { status: 'ok' });
    assert.deepEqual(await (await fetch(`${server.url}/readyz`)).json(), { status: 'ok' });
    await server.fetch('/v1/models');
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(
      metrics,
      /http_server_request_duration_seconds_count\{http_request_method="GET",http_route="\/v1\/models",http_response_status_code="200"\} 1/,
    );
    assert.match(metrics, /# TYPE gen_ai_server_time_to_first_token_seconds histogram/);
  });

  test('the OpenAPI document describes both APIs by the schemas that validate', async () => {
    const server = await startTestServer();
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      openapi: string;
      paths: Record<
        string,
        Record<
          string,
          {
            operationId: string;
            responses: Record<string, { content?: Record<string, { schema: { $ref?: string } }> }>;
            requestBody?: {
              content: Record<
                string,
                { schema: { properties: Record<string, unknown>; required: string[] } }
              >;
            };
          }
        >
      >;
    };
    assert.match(document.openapi, /^3\.1/);
    for (const path of [
      '/v1/chat/completions',
      '/v1/completions',
      '/v1/models',
      '/api/v1/ssh-keys',
      '/api/v1/instances',
    ]) {
      assert(path in document.paths, path);
    }
    assert(!Object.keys(document.paths).some((path) => path.startsWith('/dashboard')));
    const schema =
      document.paths['/v1/chat/completions']?.post?.requestBody?.content['application/json']
        ?.schema;
    assert.deepEqual(schema?.required, ['model', 'messages']);
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    const names = operations.map(({ operationId }) => operationId);
    assert.equal(new Set(names).size, names.length, 'each operation has a name of its own');
    const failureOf = (path: string, method: string) =>
      document.paths[path]?.[method]?.responses['401']?.content?.['application/json']?.schema.$ref;
    assert.match(failureOf('/v1/models', 'get') ?? '', /InferenceError$/);
    assert.match(failureOf('/api/v1/instances', 'get') ?? '', /CloudError$/);
    assert('tool_choice' in (schema?.properties ?? {}));
  });

  test('the OpenAPI document describes what both main endpoints respond, also as streams', async () => {
    const server = await startTestServer();
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      paths: Record<
        string,
        { post: { responses: { 200: { content: Record<string, { schema: object }> } } } }
      >;
    };
    const stream_options = { include_usage: true };
    const cases = {
      '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hi' }], logprobs: true },
      '/v1/completions': { prompt: 'Once', logprobs: 1 },
    };
    const ajv = new Ajv({ strict: false });
    for (const [path, body] of Object.entries(cases)) {
      const { content } = document.paths[path]?.post.responses[200] ?? assert.fail(path);
      const ask = async (more: object) =>
        server.fetch(path, { json: { model: 'hermes3-8b', max_tokens: 4, ...body, ...more } });
      const plain = ajv.compile(content['application/json']?.schema ?? assert.fail());
      const response = await (await ask({})).json();
      assert(plain(response), JSON.stringify([plain.errors, response]));
      const event = ajv.compile(content['text/event-stream']?.schema ?? assert.fail());
      const text = await (await ask({ stream: true, stream_options })).text();
      const events = text.matchAll(/^data: (\{.*)$/gm).map(([, data = '']) => JSON.parse(data));
      for (const one of events) assert(event(one), JSON.stringify(event.errors));
      assert(!event({ choices: 1 }) && !plain({}));
    }
  });

  test('the cloud API describes itself below its own base address, without a key', async () => {
    const server = await startTestServer();
    assert.equal((await server.fetch('/api/v1//instances')).status, 200, 'a base with a slash');
    const described = await fetch(`${server.url}/api/v1/openapi.json`);
    const { paths } = (await described.json()) as { paths: object };
    assert('/api/v1/instances' in paths);
    assert(Object.keys(paths).every((path) => path.startsWith('/api/v1/')));
  });

  test('each API has its own body limit', async () => {
    const server = await startTestServer();
    const send = async (path: string, bytes: number) => {
      const body = `{"x":"${'a'.repeat(bytes)}"}`;
      const headers = { 'content-type': 'application/json' };
      const { status } = await server.fetch(path, { method: 'POST', body, headers });
      return status;
    };
    assert.equal(
      await send('/v1/completions', 3_000_000),
      400,
      'refused for its members, not its size',
    );
    assert.equal(await send('/v1/completions', 9_000_000), 413);
    const cloud = await server.fetch('/api/v1/ssh-keys', { json: { x: 'a'.repeat(3_000_000) } });
    assert.match(await cloud.text(), /Field required/);
    assert.equal(await send('/dashboard/api/login', 60_000), 400);
    assert.equal(await send('/dashboard/api/login', 70_000), 413);
  });

  test('the logs are JSON with request ids, and hold no key, no password and no prompt', async () => {
    const server = await serveMillrace();
    const key = readFirstSecret(server.stdout(), 'First API key');
    const prompt = 'the-prompt-nobody-may-log';
    const post = (path: string, body: object, authorization = `Bearer ${key}`) =>
      fetch(server.url + path, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const answer = await post('/v1/completions', { model: 'hermes3-8b', prompt, max_tokens: 2 });
    await post('/v1/completions', { model: 'nope', prompt });
    await post('/dashboard/api/login', { email: 'a@b.c', password: 'the-password-nobody-may-log' });
    await post('/api/v1/ssh-keys', {
      name: 'x',
      public_key: '-----BEGIN RSA PRIVATE KEY-----\nthe-private-key\n',
    });
    await post(
      '/v1/completions',
      { model: 'x', prompt },
      'Bearer secret_wrong_key_that_nobody_may_log',
    );
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.equal(code, 0);
    const lines = stderr.split('\n').filter((line) => line.startsWith('{'));
    const requests = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    assert.equal(requests.length, 5);
    assert(requests.some(({ request_id }) => request_id === answer.headers.get('x-request-id')));
    for (const secret of [key, prompt, 'nobody-may-log', 'nobody_may_log', 'the-private-key']) {
      assert(!stderr.includes(secret), `the log holds ${secret}`);
    }
  });

  test('SIGTERM lets a running response finish, refuses new requests, and exits 0', async () => {
    const server = await serveMillrace();
    const key = readFirstSecret(server.stdout(), 'First API key');
    const body = JSON.stringify({
      model: 'hermes3-8b',
      prompt: 'Once',
      max_tokens: 400,
      ignore_eos: true,
      stream: true,
    });
    const sent = request(`${server.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    sent.end(body);
    const [response] = await once(sent, 'response');
    let text = '';
    response.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    await once(response, 'data');
    server.child.kill('SIGTERM');
    await once(response, 'end');
    assert(text.trimEnd().endsWith('data: [DONE]'));
    assert(text.includes('"finish_reason":"length"'));
    assert.equal((await server.ended).code, 0);
  });

  test('a drain ends with the last response, even if a client keeps its connection open', async () => {
    // An hour is longer than this test may take, so a server that waits for the drain time fails it.
    const config = join(makeFolder(), 'millrace.yaml');
    writeFileSync(config, 'server:\n  drain_seconds: 3600\n');
    const server = await serveMillrace(['--config', config]);
    const key = readFirstSecret(server.stdout(), 'First API key');
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const answer = await fetch(`${server.url}/v1/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'hermes3-8b', prompt: 'x', max_tokens: 300, stream: true }),
    });
    server.child.kill('SIGTERM');
    await answer.text();
    assert.equal((await server.ended).code, 0);
  });

  test('a start that fails uses up neither the first key nor the set-up link', async () => {
    const taken = await serveMillrace();
    const { port } = new URL(taken.url);
    const dataDir = makeFolder();
    const failed = await runMillrace(['serve', '--port', port, '--data-dir', dataDir]);
    assert.equal(failed.code, 1);
    const server = await serveMillrace(['--data-dir', dataDir]);
    assert.match(readFirstSecret(server.stdout(), 'First API key'), /^secret_first_/);
    assert.match(readFirstSecret(server.stdout(), 'Set-up link'), /^http/);
  });

  test('a second SIGTERM ends at once', async () => {
    const server = await serveMillrace();
    const key = readFirstSecret(server.stdout(), 'First API key');
    const answer = await fetch(`${server.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'hermes3-8b',
        prompt: 'x',
        max_tokens: 1900,
        ignore_eos: true,
        stream: true,
      }),
    });
    server.child.kill('SIGTERM');
    while (!server.stderr().includes('Stopping.')) await once(server.child.stderr as never, 'data');
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 1);
    await answer.text().catch(() => {});
  });

  test('a taken port is one clear line', async () => {
    const server = await serveMillrace();
    const { port } = new URL(server.url);
    const second = serveMillrace(['--port', port]);
    await assert.rejects(second, new RegExp(`Port ${port} on 127.0.0.1 is already in use`));
  });
});
