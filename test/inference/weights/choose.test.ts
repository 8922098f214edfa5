// Which files a name means, and which names are refused.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chooseFiles, parseSource, quantOf } from '#inference/weights/choose.ts';
import { selectWeights } from '#inference/weights/selection.ts';

const sha256 = 'a'.repeat(64);
const list = (...paths: string[]) => paths.map((path) => ({ path, size: 10, sha256 }));
const choose = (source: string, paths: string[]) =>
  chooseFiles(parseSource(source), list(...paths)).map(({ path }) => path);

describe('naming weights', () => {
  it('a model of too many files is refused, and so are sizes that no file has', () => {
    const select = (files: ReturnType<typeof list>) =>
      selectWeights(
        parseSource('owner/name'),
        'safetensors',
        files.map((file) => ({ ...file, gitId: null })),
      );
    const shards = (count: number, length = 5) =>
      Array.from({ length: count }, (_, at) => `${`${at}`.padStart(length, '0')}.safetensors`);
    assert.equal(select(list('config.json', ...shards(499))).files.length, 500);
    for (const names of [shards(100_000), shards(400, 150)])
      assert.throws(() => select(list('config.json', ...names)), /more than 500 files, or very/);
    const negative = list('config.json', 'a.safetensors').map((file) => ({ ...file, size: -5 }));
    assert.throws(() => select(negative));
  });

  it('a repository, a file in it and a URL of the hub are parsed', () => {
    const whole = { repo: 'owner/name', revision: 'main', file: null, quant: null };
    for (const text of ['owner/name', 'hf.co/owner/name', 'https://huggingface.co/owner/name/']) {
      assert.deepEqual(parseSource(text), whole);
    }
    const file = { ...whole, file: 'sub/x-Q8_0.gguf' };
    for (const text of [
      'owner/name/sub/x-Q8_0.gguf',
      'https://huggingface.co/owner/name/blob/main/sub/x-Q8_0.gguf',
      'https://hf.co/owner/name/resolve/main/sub/x-Q8_0.gguf?download=true',
    ]) {
      assert.deepEqual(parseSource(text), file);
    }
    assert.equal(parseSource('hf.co/owner/name:Q8_0').quant, 'Q8_0');
    for (const text of [
      'owner/name@v1.0/sub/x-Q8_0.gguf',
      'https://huggingface.co/owner/name/resolve/v1.0/sub/x-Q8_0.gguf',
    ]) {
      assert.deepEqual(parseSource(text), { ...file, revision: 'v1.0' });
    }
    assert.deepEqual(parseSource('owner/name@dev:Q8_0'), {
      ...whole,
      ...{ revision: 'dev', quant: 'Q8_0' },
    });
  });

  it('a name that could leave its folder or its host is refused', () => {
    for (const text of [
      '../etc',
      'owner/..',
      'owner/na..me',
      'ow--ner/name',
      '/owner/name',
      'owner',
      'owner/name/../../x.gguf',
      'owner/name/..%2F..%2Fx.gguf',
      'owner/name/.hidden.gguf',
      'owner/name/sub//x.gguf',
      'owner/name/x.gguf\0',
      'owner/name/x.safetensors',
      'owner\\name/x.gguf',
      'https://other.example/owner/name',
      'owner/name@',
      'owner/name@..',
      'owner/name@a/../b',
      'owner/name/%E0%A4%A.gguf',
    ]) {
      assert.throws(() => parseSource(text), { name: 'Refusal', code: 'invalid_body' }, text);
    }
  });

  it('files that the hub lists under such names are not offered', () => {
    assert.throws(() => choose('owner/name', ['../x-Q4_K_M.gguf', 'a/../../x-Q4_K_M.gguf']), {
      message: 'owner/name holds no GGUF weights.',
    });
  });
});

describe('choosing weights', () => {
  const repo = [
    'README.md',
    'm-IQ2_M.gguf',
    'm-Q8_0.gguf',
    'm-Q5_K_M.gguf',
    'mmproj-m-Q4_K_M.gguf',
  ];

  it('Q4_K_M is chosen if there is one, otherwise the next in order', () => {
    assert.deepEqual(choose('o/n', [...repo, 'm-Q4_K_M.gguf']), ['m-Q4_K_M.gguf']);
    assert.deepEqual(choose('o/n', repo), ['m-Q5_K_M.gguf']);
  });

  it('a requested quantisation is chosen or refused, never replaced', () => {
    assert.deepEqual(choose('o/n:q8_0', repo), ['m-Q8_0.gguf']);
    assert.throws(() => choose('o/n:Q6_K', repo), {
      message: 'o/n has no Q6_K. It has: IQ2_M, Q8_0, Q5_K_M.',
    });
  });

  it('unranked quantisations must be named, unless there is only one', () => {
    assert.deepEqual(choose('o/n', ['tiny.gguf']), ['tiny.gguf']);
    assert.throws(() => choose('o/n', ['one.gguf', 'two.gguf']), {
      message: 'Which weights of o/n? Name a file. It has: one.gguf, two.gguf.',
    });
  });

  it('split weights include all their parts, whichever was named', () => {
    const parts = [3, 1, 2].map((part) => `Q4_K_M/m-Q4_K_M-0000${part}-of-00003.gguf`);
    const sorted = [...parts].sort();
    assert.deepEqual(choose('o/n', ['m-Q8_0.gguf', ...parts]), sorted);
    assert.deepEqual(choose(`o/n/${parts[0]}`, parts), sorted);
    assert.throws(() => choose('o/n', parts.slice(1)), /lacks some of the parts/);
  });

  it('a file without a checksum is refused', () => {
    const listed = [{ path: 'x.gguf', size: 10, sha256: null }];
    assert.throws(() => chooseFiles(parseSource('o/n'), listed), /states no checksum/);
  });

  it('the quantisation is read from the name', () => {
    assert.equal(quantOf('Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf'), 'Q4_K_M');
    assert.equal(quantOf('x.q8_0.gguf'), 'Q8_0');
    assert.equal(quantOf('m-IQ4_XS-00001-of-00002.gguf'), 'IQ4_XS');
    assert.equal(quantOf('model.gguf'), null);
  });
});
