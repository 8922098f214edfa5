// What a request demands of the form of its output, in whichever dialect it says so: OpenAI's
// `response_format`, vLLM's `structured_outputs` and `guided_*`, llama-server's `grammar` and
// `json_schema`, SGLang's `regex` and `ebnf`. An engine enforces a constraint or refuses the
// request; none is dropped.

import type { ChatRequest, CompletionRequest } from './schema.ts';

export type Constraint = { readonly param: string } & (
  | { readonly kind: 'json_object' }
  /** `schema` is undefined if it was given as text that is not JSON. */
  | { readonly kind: 'json_schema'; readonly schema: unknown }
  | { readonly kind: 'regex'; readonly value: string }
  | { readonly kind: 'choice'; readonly value: readonly string[] }
  /** GBNF, which vLLM and SGLang call EBNF. */
  | { readonly kind: 'grammar'; readonly value: string }
  | { readonly kind: 'structural_tag'; readonly value: unknown }
);

type Body = ChatRequest | CompletionRequest;

/** The members of a request that may hold a constraint. */
export const constraintMembers = [
  'response_format',
  'structured_outputs',
  'guided_json',
  'guided_regex',
  'guided_choice',
  'guided_grammar',
  'grammar',
  'json_schema',
  'regex',
  'ebnf',
] as const satisfies (keyof Body)[];

/** The request's constraint; null if it has none. A request with more than one was refused before. */
export const findConstraint = (body: Body): Constraint | null => findConstraints(body)[0] ?? null;

const memberNames: ReadonlySet<string> = new Set(constraintMembers);

export function findConstraints(body: Body): readonly Constraint[] {
  // Most requests have a handful of members. Each is looked up here, because a member that is missing is found slowly.
  if (!Object.keys(body).some((name) => memberNames.has(name))) return [];
  const given = body.structured_outputs ?? {};
  const at = (name: string) => `structured_outputs.${name}`;
  return [
    ...fromFormat(body.response_format),
    ...toSchema('guided_json', body.guided_json),
    ...toSchema('json_schema', body.json_schema),
    ...toSchema(at('json'), given.json),
    ...(given.json_object === true
      ? [{ kind: 'json_object', param: at('json_object') } as const]
      : []),
    ...toConstraint('regex', 'guided_regex', body.guided_regex),
    ...toConstraint('regex', 'regex', body.regex),
    ...toConstraint('regex', at('regex'), given.regex),
    ...toConstraint('choice', 'guided_choice', body.guided_choice),
    ...toConstraint('choice', at('choice'), given.choice),
    ...toConstraint('grammar', 'guided_grammar', body.guided_grammar),
    ...toConstraint('grammar', 'grammar', body.grammar),
    ...toConstraint('grammar', 'ebnf', body.ebnf),
    ...toConstraint('grammar', at('grammar'), given.grammar),
    ...toConstraint('structural_tag', at('structural_tag'), given.structural_tag),
  ];
}

function fromFormat(format: Body['response_format']): Constraint[] {
  if (format == null || format.type === 'text') return [];
  const { json_schema: named, schema } = format;
  if (named?.schema != null) return toSchema('response_format.json_schema.schema', named.schema);
  // llama-server, Together and Fireworks take a schema here, for both types.
  if (schema != null) return toSchema('response_format.schema', schema);
  return format.type === 'json_object' ? [{ kind: 'json_object', param: 'response_format' }] : [];
}

function toSchema(param: string, given: unknown): Constraint[] {
  if (given == null) return [];
  const schema = typeof given === 'string' ? parseText(given) : given;
  return [{ kind: 'json_schema', param, schema }];
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function toConstraint<Kind extends Constraint['kind'], Value>(
  kind: Kind,
  param: string,
  value: Value | null | undefined,
): { kind: Kind; param: string; value: Value }[] {
  return value == null ? [] : [{ kind, param, value }];
}
