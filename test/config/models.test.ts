// The section models: defaults, checks beyond the schema, and that errors never repeat a secret.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { ConfigError } from '#config/error.ts';
import { loadConfig } from '#config/load.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { toBackendSettings, toCatalogSettings } from '#server/options/models.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-models-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function load(catalog: string, environment = {}, more = '') {
  const indented = catalog.replaceAll(/^/gm, '    ');
  const file = join(folder, 'millrace.yaml');
  writeFileSync(file, `models:\n  catalog:\n${indented}\n${more}`);
  return loadConfig({ config: file }, environment).config.models;
}

function problems(catalog: string, environment = {}, more = ''): string[] {
  try {
    load(catalog, environment, more);
  } catch (error) {
    assert(error instanceof ConfigError);
    return error.problems.map((problem) => problem.replace(`${folder}/`, ''));
  }
  return [];
}

const toCatalog = (...given: Parameters<typeof load>) =>
  createCatalog(toCatalogSettings(load(...given)));

describe('models in the configuration', () => {
  it('a backend needs a name and a URL; everything else has a default', () => {
    const models = load('hermes3-8b:\n  backends: [{ name: a, url: "http://h:8000/v1" }]');
    assert.deepEqual(toBackendSettings(models), {
      specs: [
        {
          source: 'file',
          model: 'hermes3-8b',
          name: 'a',
          url: 'http://h:8000/v1',
          apiKey: null,
          upstreamModel: 'hermes3-8b',
          server: 'openai',
          headers: {},
          weight: 1,
          concurrency: null,
          timeouts: { connectMs: 2_000, firstByteMs: 120_000, idleMs: 60_000 },
          continueStreams: null,
        },
      ],
      health: { ejectAfter: 3, ejectMs: 5_000, maxEjectMs: 300_000 },
      probeMs: 10_000,
    });
    assert.deepEqual(problems('hermes3-8b:\n  backends: [{ weight: 2 }]'), [
      'millrace.yaml:4: models.catalog.hermes3-8b.backends[0].name is missing.',
      'millrace.yaml:4: models.catalog.hermes3-8b.backends[0].url is missing.',
    ]);
  });

  it('an entry for a built-in model changes only what it sets', () => {
    const before = createCatalog().find('hermes3-8b');
    const catalog = toCatalog('hermes3-8b:\n  price: { input: 1, output: 2 }\n  listed: false');
    assert.deepEqual(catalog.find('hermes3-8b'), {
      ...before,
      price: { input: 1, output: 2 },
      listed: false,
    });
    assert.equal(catalog.list().length, 11);
    assert.equal(catalog.all().length, 13);
  });

  it('a new model follows the built-in ones, and with builtin_ids: false only the catalog is offered', () => {
    const text = 'my-model:\n  owned_by: acme\n  context_window: 32768\nhermes3-8b:';
    const ids = (more: string) =>
      toCatalog(text, {}, more)
        .list()
        .map(({ id }) => id);
    assert.equal(ids('').length, 13);
    assert.equal(ids('').at(-1), 'my-model');
    assert.deepEqual(ids('  builtin_ids: false\n'), ['hermes3-8b', 'my-model']);
    const entry = toCatalog(text).find('my-model');
    assert.deepEqual([entry?.ownedBy, entry?.contextWindow], ['acme', 32_768]);
  });

  it('an alias leads to a model that exists', () => {
    const aliases = (to: string) => `  aliases: { "claude-*": ${to} }\n`;
    assert.equal(
      createCatalog(toCatalogSettings(load('mine:', {}, aliases('mine')))).find('claude-4')?.id,
      'mine',
    );
    assert.deepEqual(problems('mine:', {}, aliases('mien')), [
      'millrace.yaml:4: models.aliases.claude-* refers to mien, which is not a model. Did you mean mine?',
    ]);
    assert.deepEqual(problems('mine:', {}, '  aliases: { "no spaces": mine }\n'), [
      'millrace.yaml:4: models.aliases has an invalid alias. An alias begins with a letter or *, and has at most 100 characters: letters, digits and . _ : / @ - *.',
    ]);
  });

  it('the fallback of a model must exist and must not form a cycle', () => {
    const fallback = (from: string, to: string) =>
      `${from}:\n  context_fallback: { above: 100, to: ${to} }\n`;
    const catalog = toCatalog(`${fallback('hermes3-8b', 'mine')}mine:`);
    assert.deepEqual(catalog.find('hermes3-8b')?.contextFallback, { above: 100, to: 'mine' });
    assert.equal(
      toCatalog('hermes3-405b:\n  context_fallback: null').find('hermes3-405b')?.contextFallback,
      null,
    );
    assert.deepEqual(problems(fallback('hermes3-8b', 'hermes3-70c')), [
      'millrace.yaml:4: models.catalog.hermes3-8b.context_fallback refers to hermes3-70c, which is not a model. Did you mean hermes3-70b?',
    ]);
    assert.deepEqual(problems(fallback('a', 'b') + fallback('b', 'c') + fallback('c', 'a')), [
      'millrace.yaml:4: models.catalog.a.context_fallback leads back to a. Fallbacks must not form a cycle.',
      'millrace.yaml:6: models.catalog.b.context_fallback leads back to b. Fallbacks must not form a cycle.',
      'millrace.yaml:8: models.catalog.c.context_fallback leads back to c. Fallbacks must not form a cycle.',
    ]);
    assert.match(problems(fallback('a', 'a'))[0] ?? '', /leads back to a/);
    assert.match(
      problems(fallback('hermes-3-llama-3.1-405b-fp8-128k', 'hermes3-405b'))[0] ?? '',
      /leads back/,
    );
  });

  it('a wrong name is reported with its line and the nearest setting, also inside lists', () => {
    assert.deepEqual(problems('mine:\n  context_windw: 5'), [
      'millrace.yaml:4: models.catalog.mine.context_windw is not a setting. Did you mean models.catalog.mine.context_window?',
    ]);
    assert.deepEqual(
      problems('mine:\n  backends:\n    - name: a\n      url: http://h/v1\n      wieght: 5'),
      [
        'millrace.yaml:7: models.catalog.mine.backends[0].wieght is not a setting. Did you mean models.catalog.mine.backends[0].weight?',
      ],
    );
  });

  it('names of backends are unique per model, and URLs are valid', () => {
    const one = (name: string, url = 'http://h/v1') => `    - { name: ${name}, url: "${url}" }\n`;
    const list = (...backends: string[]) => problems(`m:\n  backends:\n${backends.join('')}`);
    assert.deepEqual(list(one('a'), one('b')), []);
    assert.deepEqual(list(one('a'), one('a')), [
      'millrace.yaml:6: another backend of m is called a. Names must be unique.',
    ]);
    assert.match(
      list(one('builtin'))[0] ?? '',
      /must not be builtin, which is reserved for the stand-in/,
    );
    assert.match(list(one('a', 'http://h:99999/v1'))[0] ?? '', /url must be a URL such as/);
    assert.match(list(one('a', 'h:8000'))[0] ?? '', /begins with http/);
    assert.match(problems('"a b":')[0] ?? '', /models\.catalog has an invalid model id\./);
  });

  it('api_key_env must refer to a variable that is set', () => {
    const text = 'm:\n  backends:\n    - { name: a, url: "http://h/v1", api_key_env: KEY }';
    assert.equal(load(text, { KEY: 'sk-1' }).catalog.m?.backends?.[0]?.api_key, 'sk-1');
    assert.deepEqual(problems(text), [
      'millrace.yaml:5: models.catalog.m.backends[0].api_key_env refers to KEY, which the environment does not set to an API key.',
    ]);
    assert.match(
      problems(text.replace('api_key_env', 'api_key: sk-2, api_key_env'), { KEY: 'sk-1' })[0] ?? '',
      /or its api_key_env, not both/,
    );
  });

  it('no error repeats a key or a header', () => {
    const secret = 'sk-not-to-be-seen';
    for (const wrong of [
      `[{ name: a, url: "http://h/v1", api_key: "${secret} x" }]`,
      `[{ name: a, url: "http://h/v1", api_key: [${secret}] }]`,
      `[{ name: a, url: "http://h/v1", headers: ${secret} }]`,
      `[{ name: a, url: "http://h/v1", headers: { x-a: [${secret}] } }]`,
      `{ name: a, api_key: ${secret} }`,
    ]) {
      const found = problems(`m:\n  backends: ${wrong}`);
      assert(found.length > 0, wrong);
      assert(!found.join('\n').includes(secret), found.join('\n'));
    }
    assert(!problems('m:', { MILLRACE_SECRET_KEY: secret }).join('\n').includes(secret));
  });

  it('the first ejection must not be longer than the longest, and the old name is explained', () => {
    assert.deepEqual(problems('m:', {}, '  health: { eject_seconds: 9, max_eject_seconds: 3 }\n'), [
      'millrace.yaml:4: models.health.eject_seconds must not be more than max_eject_seconds.',
    ]);
    assert.deepEqual(problems('m:', {}, '  health: { eject_seconds_most: 3 }\n'), [
      'millrace.yaml:4: models.health.eject_seconds_most was renamed. Use models.health.max_eject_seconds.',
    ]);
  });
});
