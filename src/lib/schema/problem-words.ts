// What the cloud API says about one member of a request, in words for the dashboard and the CLI. The API's own
// sentences name regular expressions, because clients match on them.

import { explainPattern } from './pattern-words.ts';

export interface MemberProblem {
  /** Such as `data[2].source_network`. */
  member: string;
  /** A sentence whose subject, if it is the member, is `This`. */
  text: string;
}

const words: [RegExp, (group: string) => string][] = [
  [/^Field required$/, () => 'This is required.'],
  [/^String should have at most (\d+) character/, (most) => `Use at most ${most} characters.`],
  [/^String should have at least (\d+) character/, (least) => `Use at least ${least} characters.`],
  [/^List should have at most (\d+) item/, (most) => `Choose at most ${most}.`],
  [/^List should have at least (\d+) item/, (least) => `Choose at least ${least}.`],
  [/^String should match pattern '(.+)'$/s, (pattern) => `This must ${explainPattern(pattern)}.`],
  [/^Input should be less than or equal to (.+)$/, (most) => `This must be at most ${most}.`],
  [/^Input should be greater than or equal to (.+)$/, (least) => `This must be at least ${least}.`],
  [/^Input should be (.+)$/s, (what) => `This should be ${what}.`],
  [
    /^Input is not a valid IPv4 network$/,
    () => 'This is not a valid IPv4 network. Use one such as 203.0.113.0/24.',
  ],
  [/^Input is (.+)$/s, (what) => `This is ${what}.`],
];

/** Undefined if the message is about no single member. */
export function findMemberProblem(message: string): MemberProblem | undefined {
  const [, member, problem = ''] =
    /^Error in request body at '([^']+)': (.+)$/s.exec(message) ?? [];
  return member === undefined ? undefined : { member, text: toWords(problem) };
}

function toWords(problem: string): string {
  for (const [pattern, toText] of words) {
    const match = pattern.exec(problem);
    if (match !== null) return toText(match[1] ?? '');
  }
  return `${problem.charAt(0).toUpperCase()}${problem.slice(1).replace(/\.$/, '')}.`;
}

/** Splits `rules[2].source_network`. */
export const toMemberPath = (member: string) =>
  member.split(/[.[\]]+/).filter((part) => part !== '');

/** `['limits', 'monthly_budget']` becomes `Monthly budget`. */
export function toFieldName(path: readonly string[]): string {
  const name = (path.findLast((part) => !/^\d+$/.test(part)) ?? '').replaceAll('_', ' ');
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
