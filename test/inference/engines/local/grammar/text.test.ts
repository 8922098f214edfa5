// Grammars of plain text: regular expressions, which JavaScript's own judge, and choices.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileGrammar } from '#inference/engines/local/grammar-thread/compile-grammar.ts';
import type { GrammarRequest } from '#inference/engines/local/grammar-thread/grammar-compiler.ts';
import { readGrammar } from '#test/support/grammar/gbnf.ts';
import { belongs, createWriter } from '#test/support/grammar/gbnf-text.ts';
import { createRandom } from '#test/support/random.ts';

function grammarOf(request: GrammarRequest) {
  const compiled = compileGrammar(request);
  assert('grammar' in compiled, JSON.stringify(compiled));
  return readGrammar(compiled.grammar);
}

function refusalOf(request: GrammarRequest): string {
  const compiled = compileGrammar(request);
  assert('refusal' in compiled, JSON.stringify(compiled));
  return compiled.refusal;
}

describe('a regular expression', () => {
  const patterns: [string, accepted: string[], rejected: string[]][] = [
    ['[A-Z][a-z]{2,4}', ['Ada', 'Alice'], ['ada', 'xAda', 'Adaxxx', 'Ada!', '']],
    ['^yes$|^no$', ['yes', 'no'], ['yes ', 'nono', 'yesno']],
    ['(?=.*\\d)[a-f\\d]{3}', ['a1b', '123'], ['abc', 'a1', 'a1bx']],
    ['"[^"\\n]*"', ['""', '"quoted \\ text"'], ['"', '"a', '"a\n"']],
    ['\\d{3}\\-\\d{4}\\@\\_', ['555-1234@_'], ['5551234@_', '555-1234']],
    ['a*', ['', 'aaa'], ['b', 'aab']],
    ['é|😀+', ['é', '😀😀'], ['e', '😀é']],
  ];
  for (const [value, accepted, rejected] of patterns)
    test(`matches the whole output: ${value}`, () => {
      const grammar = grammarOf({ kind: 'regex', value });
      for (const text of accepted) assert(belongs(grammar, text), text);
      for (const text of rejected) assert(!belongs(grammar, text), text);
      const next = createRandom(7);
      const random = () => next(2 ** 20) / 2 ** 20;
      const write = createWriter(grammar);
      // Without the flag, needless escapes are allowed.
      const whole = new RegExp(`^(?:${value})$`, /\\[-@_]/.test(value) ? '' : 'u');
      for (let round = 0; round < 50; round++)
        assert.match(write({ random, length: 20, repeat: 5, extreme: round % 2 === 0 }), whole);
    });

  test('that can’t be used is refused with a reason', () => {
    assert.equal(
      refusalOf({ kind: 'regex', value: '(' }),
      'the pattern is not a regular expression',
    );
    assert.equal(refusalOf({ kind: 'regex', value: '(a)\\1' }), 'the pattern uses \\1');
    assert.match(refusalOf({ kind: 'regex', value: '(?:ab){2000}' }), /too complex/);
    assert.match(refusalOf({ kind: 'regex', value: '[]' }), /no finite/);
  });
});

describe('a choice', () => {
  test('allows each of its texts and nothing else', () => {
    const value = ['yes', 'yes, but', 'no', '', 'a "b"\\\n', 'é'];
    const long = Array.from({ length: 100 }, (_, index) => `option ${index}`);
    for (const texts of [value, long]) {
      const grammar = grammarOf({ kind: 'choice', value: texts });
      for (const text of texts) assert(belongs(grammar, text), text);
      for (const text of ['ye', 'yesno', 'option', 'option 100', 'x'])
        assert(!belongs(grammar, text), text);
    }
  });

  test('of a text that no model can write is refused', () => {
    assert.match(refusalOf({ kind: 'choice', value: ['a\0'] }), /no model can write/);
    assert.match(refusalOf({ kind: 'choice', value: ['\ud800'] }), /no model can write/);
  });
});
