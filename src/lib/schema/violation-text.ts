// What is wrong with a request, as a sentence for people.

import { toPathText, type Violation, valueAt } from './validation-error.ts';

export function explainViolation(violation: Violation, body: unknown): string {
  const { kind, path, expected, exclusive } = violation;
  const name = path.length === 0 ? 'The body' : toPathText(path);
  const value = valueAt(body, path);
  const bound = expected[0] ?? '';
  switch (kind) {
    case 'missing':
      return `${name} is missing.`;
    case 'type': {
      const got = Array.isArray(value)
        ? 'an array'
        : value == null
          ? 'missing'
          : `a ${typeof value}`;
      const wanted = expected.map((type) => (type === 'integer' ? 'whole number' : type));
      return `${name} is ${got}, but must be ${wanted.join(' or ')}.`;
    }
    case 'too_small':
      return `${name} is ${value}; ${exclusive ? 'it must be more than' : 'the least is'} ${bound}.`;
    case 'too_large':
      return `${name} is ${value}; ${exclusive ? 'it must be less than' : 'the most is'} ${bound}.`;
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
      return `${name} is not known here.`;
    case 'format':
      return bound === 'date-time'
        ? `${name} must be a time such as 2026-01-31T12:00:00Z.`
        : `${name} must match ${bound}.`;
    default:
      return `${name} is not valid.`;
  }
}

const countOf = (bound: string, what: string) => `${bound} ${what}${bound === '1' ? '' : 's'}`;
