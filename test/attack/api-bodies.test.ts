// Bodies generated from the schema of every inference endpoint: whatever they hold, the response is never a fault of the
// server, and an error is in the format of its API.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { endpoints } from '#inference/apis/apis.ts';
import { NewBatch } from '#inference/apis/batches/schema.ts';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { assertErrorFormat } from '#test/support/hostile/error-formats.ts';
import { hostileRequest, mutate } from '#test/support/hostile/input.ts';
import { spoil, spoiling, toBody } from '#test/support/hostile/schema-bodies.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const targets = [...endpoints, { url: '/v1/batches', body: NewBatch }];
const types = ['text/plain', 'application/json; charset=utf-16', 'multipart/form-data', ''];

/** Members that are rarely valid by chance. Three bodies in four have them. */
const sound: Record<string, object> = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'Hi' }] },
};

describe('any body', () => {
  let server: TestServer;
  let upstream: ScriptedUpstream;
  before(async () => {
    upstream = await startScriptedUpstream({ words: 2 });
    const backends = [{ name: 'a', url: upstream.url, model: 'scripted', server: 'vllm' }];
    const models = { catalog: { mill: { backends } }, health: { probe_seconds: 3600 } };
    server = await startTestServer({ config: { models } as object });
  });
  after(async () => {
    await server.stop();
    await upstream.close();
  });

  /** Returns true if the body got past its schema. */
  async function attack(path: string, body: Buffer, type: string): Promise<boolean> {
    const headers = type === '' ? {} : { 'content-type': type };
    const response = await server.fetch(path, {
      method: 'POST',
      body: new Uint8Array(body),
      headers,
    });
    const answer = await response.text();
    const shown = `${path} ${body.subarray(0, 600)} → ${response.status} ${answer.slice(0, 300)}`;
    assert(response.status < 500, shown);
    assert.doesNotMatch(answer, /internal_error|server_error|node_modules/, shown);
    if (response.status >= 400) assertErrorFormat(path, answer);
    else if (!/event-stream|ndjson/.test(response.headers.get('content-type') ?? ''))
      assert.doesNotThrow(() => JSON.parse(answer), shown);
    return response.status === 200 || response.status === 404;
  }

  for (const { url, body: schema } of targets) {
    test(`of ${url} is served or refused`, async () => {
      let valid = 0;
      const request = fc.record({
        body: toBody(schema),
        keepsModel: fc.constantFrom(true, true, true, false),
        changes: hostileRequest.map(({ changes }) => changes ?? []),
        isChanged: fc.constantFrom(false, false, true),
        how: spoiling,
        at: fc.nat(5_000),
        type: fc.constantFrom(...Array(8).fill('application/json'), ...types),
      });
      const property = fc.asyncProperty(
        fc.array(request, { minLength: 10, maxLength: 10 }),
        async (all) => {
          const passed = await Promise.all(
            all.map(({ body, keepsModel, changes, isChanged, how, at, type }) => {
              const own = keepsModel && { model: 'mill', ...sound[url] };
              const whole = { ...(body as object), ...own };
              const sent = isChanged ? mutate(whole, changes) : whole;
              return attack(url, spoil(sent, how, at), type);
            }),
          );
          valid += passed.filter(Boolean).length;
        },
      );
      await fc.assert(property, {
        seed: propertySeed,
        numRuns: propertyRuns(15),
        endOnFailure: true,
      });
      assert(valid > 0, 'no body was valid');
    });
  }
});
