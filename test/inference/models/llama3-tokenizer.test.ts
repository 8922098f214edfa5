// Our counts of the Llama-3 vocabulary, held against those of another tokenizer with another copy of the vocabulary.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fromBytes } from 'hypertok';
import { createLlama3Tokenizer } from '#inference/models/llama3-tokenizer.ts';
import { readLlama3Vocabulary } from '#inference/models/llama3-vocabulary.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

const file = await readFile(new URL(import.meta.resolve('@hypertok/vocab-llama3/vocab.htk')));
const other = await fromBytes(file, { tier: 'single' });
const countTokens = createLlama3Tokenizer(await readLlama3Vocabulary());

const assertSame = (text: string) =>
  assert.equal(
    countTokens(text),
    other.encodeSync(text).length,
    JSON.stringify(text.slice(0, 200)),
  );

describe('tokens of the Llama-3 vocabulary', () => {
  it('are counted as hypertok counts them in prose and code', async () => {
    const root = new URL('../../../', import.meta.url).pathname;
    const paths = globSync(['*.md', 'docs/**/*.md', 'src/http/**/*.ts'], { cwd: root });
    assert(paths.length > 20);
    for (const path of paths) assertSame(await readFile(root + path, 'utf8'));
  });

  it('are counted as hypertok counts them in any text', () => {
    const groups = [
      'etaoin',
      ' \n\r\t\u00a0\u3000\u0085\ufeff',
      '0123456789',
      "'sSdDtTreELlVvm ",
      'äßéſ\u0301',
      '水車の中',
      'Жя',
    ];
    const mark = fc.constantFrom(
      ...groups.flatMap((group) => [...group]),
      '👩‍🔧',
      '\ud800',
      '<|eot_id|>',
      '<|',
    );
    const run = fc
      .tuple(mark, fc.integer({ min: 1, max: 5 }))
      .map(([one, times]) => one.repeat(times));
    const text = fc.array(run, { maxLength: 40 }).map((runs) => runs.join(''));
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: 'binary', maxLength: 60 })), assertSame),
      { numRuns: propertyRuns(3_000), seed: propertySeed },
    );
  });

  it('are counted as hypertok counts them in pieces longer than any token', () => {
    for (const one of ['a', 'ab', ' ', '=', '水', 'Zq']) assertSame(one.repeat(20_000));
  });

  it('a special token in a text is one token', () => {
    assert.equal(countTokens('<|eot_id|><|reserved_special_token_7|>'), 2);
    assert.ok(countTokens('<|no_token|>') > 1);
  });
});
