// Explains a violation in a sentence: what is wrong and what is allowed.

import { explainPattern } from './pattern-words.ts';
import { toPathText, type Violation, valueAt } from './validation-error.ts';

export function explainViolation(violation: Violation, body: unknown): string {
  const { kind, path, expected, exclusive } = violation;
  const name = path.length === 0 ? 'The body' : toPathText(path);
  const value = valueAt(body, path);
  const bound = expected[0] ?? '';
  switch (kind) {
    case 'missing':
      return `${name} is missing.`;
    case 'type':
      return `${name} must be ${expected.map(withArticle).join(' or ')}, got ${describe(value)}.`;
    case 'too_small':
      return `${name} must be ${exclusive ? 'more than' : 'at least'} ${bound}, got ${value}.`;
    case 'too_large':
      return `${name} must be ${exclusive ? 'less than' : 'at most'} ${bound}, got ${value}.`;
    case 'too_short':
      return `${name} must have at least ${countOf(bound, 'character')}.`;
    case 'too_long':
      return `${name} must have at most ${countOf(bound, 'character')}.`;
    case 'too_few':
      return `${name} must have at least ${countOf(bound, 'member')}.`;
    case 'too_many':
      return `${name} must have at most ${countOf(bound, 'member')}.`;
    case 'not_allowed':
      return `${name} must be one of ${expected.join(', ')}.`;
    case 'unknown_member':
      return `${name} is not a known member.`;
    case 'letter_case':
      return `${name} must be written as ${bound}: names of members are told apart by letter case.`;
    case 'format':
      return bound === 'date-time'
        ? `${name} must be a time such as 2026-01-31T12:00:00Z.`
        : `${name} must ${explainPattern(bound)}.`;
    default:
      return `${name} is not valid.`;
  }
}

const countOf = (bound: string, what: string) => `${bound} ${what}${bound === '1' ? '' : 's'}`;

const articles: Record<string, string> = {
  array: 'an array',
  object: 'an object',
  integer: 'a whole number',
  null: 'null',
};

const withArticle = (type: string) => articles[type] ?? `a ${type}`;

function describe(value: unknown): string {
  if (value === null) return 'null';
  return withArticle(Array.isArray(value) ? 'array' : typeof value);
}
