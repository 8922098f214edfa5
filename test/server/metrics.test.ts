// What monitoring relies on: metrics that Prometheus accepts, a board and alerts that name existing ones, and log lines that
// say who asked for what.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Registry } from 'prom-client';
import { createMeter } from '#inference/serving/meter.ts';
import { readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { needs } from '#test/support/programs.ts';
import { startTestServer } from '#test/support/server.ts';

const alerts = 'deploy/prometheus/alerts.yaml';
const board = 'deploy/grafana/millrace.json';

const chat = { model: 'hermes3-8b', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 2 };

async function readMetrics(): Promise<string> {
  const server = await startTestServer();
  assert.equal((await server.fetch('/v1/chat/completions', { json: chat })).status, 200);
  return (await fetch(`${server.url}/metrics`)).text();
}

describe('monitoring', () => {
  test('promtool finds nothing in the metrics', { skip: needs('promtool') }, async () => {
    const found = execFileSync('promtool', ['check', 'metrics'], { input: await readMetrics() });
    assert.equal(found.toString(), '');
  });

  test('promtool accepts the alert rules', { skip: needs('promtool') }, () => {
    const found = execFileSync('promtool', ['check', 'rules', alerts]).toString();
    assert.match(found, /SUCCESS: \d+ rules found/);
  });

  test('the board and the alerts name only metrics that exist', async () => {
    const metrics = await readMetrics();
    const known = new Set([...metrics.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    for (const file of [alerts, board]) {
      const text = readFileSync(file, 'utf8');
      const named = text.match(/\b(millrace|gen_ai|http|process)_\w+(?=[{[)]| [<>=]|"|$)/gm) ?? [];
      const series = named.filter((name) =>
        /_(seconds|total|bytes|requests|health|up|failed|replicas|info|dropped)(_\w+)?$/.test(name),
      );
      assert(series.length > 5, file);
      for (const name of series)
        assert(known.has(name.replace(/_(bucket|count|sum)$/, '')), `${file} names ${name}`);
    }
    assert.match(
      metrics,
      /^millrace_build_info\{version="\d+\.\d+\.\d+",node_version="[\d.]+"\} 1$/m,
    );
    assert.match(
      metrics,
      /^millrace_key_requests_total\{millrace_account="\w+",millrace_key="\w+",millrace_outcome="done"\} 1$/m,
    );
  });

  test('keys beyond the first thousand are counted together', async () => {
    const registry = new Registry();
    const meter = createMeter(registry);
    const request = {
      operation: 'chat',
      asked: 'm',
      served: 'm',
      backend: 'b',
      outcome: 'done',
    } as const;
    const served = {
      ...request,
      usage: null,
      firstTokenMs: null,
      durationMs: 1,
      queuedMs: 0,
      overheadMs: 0,
    };
    for (let key = 0; key < 1_500; key++)
      meter.record(served, { accountId: 'a', keyId: `k${key}` });
    const metrics = await registry.metrics();
    assert.equal(metrics.match(/^millrace_key_requests_total\{/gm)?.length, 1_001);
    assert.match(metrics, /^millrace_key_requests_total\{.*millrace_key="other".*\} 500$/m);
  });

  test('a line of the access log says who asked for which model, and what it took', async () => {
    const server = await serveMillrace();
    const key = readFirstSecret(server.stdout(), 'First API key');
    const post = (path: string, json: object, authorization = `Bearer ${key}`) =>
      fetch(server.url + path, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify(json),
      });
    await (await post('/v1/chat/completions', chat)).text();
    await (await post('/v1/chat/completions', { ...chat, stream: true })).text();
    await (await post('/v1/chat/completions', chat, 'Bearer wrong')).text();
    server.child.kill('SIGTERM');
    const { stderr } = await server.ended;
    const lines = stderr.split('\n').filter((line) => line.includes('"msg":"request"'));
    const [plain, stream, unknown] = lines.map((line) => JSON.parse(line));
    for (const line of [plain, stream]) {
      assert.match(line.key_id, /^[0-9a-f]{32}$/);
      assert.match(line.account_id, /^[0-9a-f]{32}$/);
      const { address, model, backend, completion_tokens } = line;
      assert.deepEqual(
        [address, model, backend, completion_tokens],
        ['127.0.0.1', chat.model, 'builtin', 2],
      );
      assert(line.prompt_tokens > 0 && line.server.length > 0);
    }
    assert.equal(unknown.status, 401);
    assert.deepEqual(
      [unknown.address, unknown.key_id, unknown.model],
      ['127.0.0.1', undefined, undefined],
    );
  });
});
