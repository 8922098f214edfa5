// Patterns become automata; JavaScript's own regular expressions say whether they are the right ones.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { accepts } from '#inference/engines/local/grammar/regex/automaton.ts';
import { createPatterns } from '#inference/engines/local/grammar/regex/pattern.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

const patterns = [
  '(^x|y)z(?:1|2$)',
  '^(?=.*\\d)(?!.*(?:00|a$))[a-z0-9]{2,6}$',
  '^$|^(?:[0-9a-z]{4})*$',
  'a|b|^c$',
  '^(a|ab)(c|bcd)*$',
  '.+?x{2,}',
  '[^\\d\\W]\\D',
  '^[\\s\\S]{2}$',
  '^(?:\\d{3}-)?\\d{4}$',
  '(a|b)*?c{2}',
  '^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$',
  '\\u{61}[\\x62-\\u0063]',
  '^(?=a)(?=.*b$)[ab]*$',
  '(?:)|a{0}',
  '^(?:a{2,3}){1,2}$',
  '[]',
  '[^]\\/-?$',
  '(x|(y|^z))1',
  '^(?<first>é|😀)+\\.$',
];

const text = fc
  .array(fc.constantFrom(...'abcxyz0123-+. \n_é😀/'), { maxLength: 8 })
  .map((chars) => chars.join(''));
const near = fc
  .array(fc.constantFrom(...'abc1xz'), { maxLength: 6 })
  .map((chars) => chars.join(''));

for (const pattern of patterns) {
  test(`an automaton accepts what the pattern matches: ${pattern}`, () => {
    const automaton = createPatterns(() => {}).compile(pattern);
    const regex = new RegExp(pattern, 'u');
    fc.assert(
      fc.property(fc.oneof(text, near), (value) => {
        assert.equal(accepts(automaton, value), regex.test(value));
      }),
      { numRuns: propertyRuns(400), seed: propertySeed },
    );
  });
}
