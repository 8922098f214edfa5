// The API description is complete: descriptions, examples in three languages, and every error that the code can return.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as cloud from '#cloud/errors.ts';
import { endpoints } from '#inference/apis/apis.ts';
import * as inference from '#inference/errors.ts';
import { Refusal, type RefusalCode } from '#lib/errors.ts';
import { createValidator } from '#lib/schema/validator.ts';
import {
  cloudErrors,
  type DescribedError,
  inferenceErrors,
} from '#server/openapi/error-catalog.ts';
import { operationTexts } from '#server/openapi/operations.ts';
import { startTestServer } from '#test/support/server.ts';

interface Operation {
  operationId: string;
  description?: string;
  requestBody?: { content: Record<string, { example?: unknown }> };
  responses: Record<string, { description: string }>;
  'x-codeSamples': { lang: string; source: string }[];
}

async function readDocument() {
  const server = await startTestServer();
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    servers: { url: string }[];
    tags: { name: string; description: string }[];
    paths: Record<string, Record<string, Operation>>;
  };
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  return { server, document, operations };
}

const root = join(import.meta.dirname, '../..');

/** Every pair of status and code of the errors that all APIs share. */
function sharedPairs(format: typeof cloud.cloudErrorFormat): string[] {
  const source = readFileSync(join(root, 'src/lib/errors.ts'), 'utf8');
  const union = source.slice(source.indexOf('RefusalCode ='), source.indexOf(';'));
  const codes = [...union.matchAll(/'([a-z_]+)'/g)].map(([, code]) => code as RefusalCode);
  assert(codes.length > 15, 'the codes were found');
  return codes.map((code) => {
    const { status, body } = format.renderRefusal(new Refusal(code, ''));
    return `${status} ${(body as { error: { code: string | null } }).error.code}`;
  });
}

const toPairs = (errors: readonly DescribedError[]) =>
  new Set(errors.map(({ status, code }) => `${status} ${code}`));

describe('API description', () => {
  test('every operation has a description, examples in three languages and described errors', async () => {
    const { server, document, operations } = await readDocument();
    assert.equal(document.servers[0]?.url, server.url);
    for (const { path, method, operation } of operations) {
      const name = `${method} ${path}`;
      assert(
        operation.description,
        `${name}: ${operation.operationId} is in operations.ts, or its endpoint has a text`,
      );
      const samples = operation['x-codeSamples'];
      assert.deepEqual(
        samples.map(({ lang }) => lang),
        ['shell', 'python', 'typescript'],
      );
      assert(
        samples.every(({ source }) => source.includes(server.url)),
        name,
      );
      const body = operation.requestBody?.content['application/json'];
      assert(body === undefined || body.example !== undefined, `${name} has an example body`);
      const statuses = Object.keys(operation.responses);
      assert(
        ['400', '401', '403', '404', '429', '500', '503'].every((one) => statuses.includes(one)),
        name,
      );
    }
    const known = new Set(operations.map(({ operation }) => operation.operationId));
    assert.deepEqual(
      Object.keys(operationTexts).filter((name) => !known.has(name)),
      [],
      'no description is left over',
    );
  });

  test('every TypeScript example is valid', async () => {
    const { operations } = await readDocument();
    for (const { operation } of operations) {
      const source = operation['x-codeSamples'].find(({ lang }) => lang === 'typescript')?.source;
      stripTypeScriptTypes(source ?? assert.fail());
    }
  });

  test('every example body is accepted by the schema of its operation', async () => {
    const { server, operations } = await readDocument();
    for (const { path, method, operation } of operations) {
      const example = operation.requestBody?.content['application/json']?.example;
      if (example === undefined || path.startsWith('/v1/')) continue;
      const url = path.replaceAll(/\{\w+\}/g, '0920582c7ff041399e34823a0be62549');
      const response = await server.fetch(url, { method: method.toUpperCase(), json: example });
      const text = await response.text();
      assert(!text.includes('Error in request'), `${method} ${path}: ${text}`);
    }
  });

  test('every inference endpoint describes itself, with an example that its schema accepts', () => {
    assert(endpoints.length > 10);
    for (const { url, text, body } of endpoints) {
      assert(text.description.endsWith('.'), url);
      const validate = createValidator(body);
      assert(validate(text.body), `${url}: ${JSON.stringify(validate.errors)}`);
    }
  });

  test('every error of the cloud API is described', () => {
    const source = readFileSync(join(root, 'src/cloud/errors.ts'), 'utf8');
    const codes = [...source.matchAll(/'((?:global|provider|[a-z-]+(?:\/[a-z-]+)*)\/[a-z-]+)'/g)];
    const described = new Set(cloudErrors.map(({ code }) => code));
    assert(codes.length > 20, 'the codes were found');
    assert.deepEqual(
      codes.map(([, code]) => code as string).filter((code) => !described.has(code)),
      [],
    );
    const pairs = toPairs(cloudErrors);
    assert.deepEqual(
      sharedPairs(cloud.cloudErrorFormat).filter((pair) => !pairs.has(pair)),
      [],
    );
  });

  test('every error of the inference API is described', () => {
    const pairs = toPairs(inferenceErrors);
    assert.deepEqual(
      sharedPairs(inference.inferenceErrorFormat).filter((pair) => !pairs.has(pair)),
      [],
    );
    const described = new Set(inferenceErrors.map(({ code }) => code));
    const codes = readdirSync(join(root, 'src/inference'), { recursive: true, encoding: 'utf8' })
      .filter((file) =>
        /(errors|failures|constraint-members|router|grammar-choice|check)\.ts$/.test(file),
      )
      .filter((file) => !/^(weights|backends)\//.test(file))
      .flatMap((file) => [
        ...readFileSync(join(root, 'src/inference', file), 'utf8').matchAll(
          /(?:code: |invalidRequest\(\s*)'([a-z]+_[a-z_]+)'|'((?:string|array|integer|missing|invalid|unsupported|context)_[a-z_]+)'/g,
        ),
      ])
      .map(([, one, other]) => one ?? other ?? '');
    assert(codes.length > 20, 'the codes were found');
    const unknown = new Set(codes.filter((code) => !described.has(code)));
    // Types of OpenAI's format, not codes.
    for (const type of ['invalid_request_error']) unknown.delete(type);
    assert.deepEqual([...unknown], []);
  });
});
