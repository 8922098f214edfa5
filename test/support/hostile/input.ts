// Hostile requests, generated: odd methods, addresses, headers and credentials, valid bodies with members
// changed, and noise.

import fc from 'fast-check';

/** Real member names with wrong values get deeper than noise does. */
const names = [
  'model',
  'messages',
  'prompt',
  'role',
  'content',
  'name',
  'stop',
  'email',
  'password',
  'token',
  'instance_ids',
  'rules',
  'data',
  '__proto__',
  'constructor',
  'toString',
];

const strings = [
  '',
  'user',
  '\u0000',
  'a\u0000b',
  'a\u0000@example.com',
  '\ud800',
  'a\udfff',
  '../../etc/passwd',
  '0'.repeat(32),
  "' or 1=1 --",
  '2026-12-31T23:59:60Z',
  '2026-02-30T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999999+23:59',
  '٣',
];

const text = fc.oneof(
  fc.constantFrom(...strings),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.integer({ min: 1000, max: 20_000 }).map((length) => 'a'.repeat(length)),
);
const leaf = fc.oneof(
  text,
  fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308, -1e308, Number.MAX_SAFE_INTEGER, [], {}),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 4 }) },
    {
      weight: 1,
      arbitrary: fc.dictionary(fc.oneof(fc.constantFrom(...names), text), tie('value'), {
        maxKeys: 5,
      }),
    },
  ),
}));

const toBytes = (any: unknown) => Buffer.from(JSON.stringify(any));
const noise = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 8 }).map(toBytes),
  },
  { weight: 1, arbitrary: value.map(toBytes) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 100, max: 50_000 }).map((depth) => Buffer.from('['.repeat(depth))),
  },
);

/** What is done to one member: replaced, removed, or, when it is a text, spoiled within. */
const change = fc.record({
  at: fc.nat(),
  to: fc.oneof(
    { weight: 4, arbitrary: value.map((other) => () => other) },
    { weight: 1, arbitrary: fc.constant(() => undefined) },
    {
      weight: 3,
      arbitrary: fc
        .constantFrom('\u0000', '\ud800', '\n', ' ', 'é', '\u202e')
        .map((mark) => (old: unknown) => (typeof old === 'string' ? `${old}${mark}` : mark)),
    },
  ),
});

export const hostileRequest = fc.record({
  route: fc.nat(),
  method: fc.option(
    fc.constantFrom(
      ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'],
      ...['QUERY', 'OPTIONS', 'TRACE', 'PROPFIND'],
    ),
    { freq: 6, nil: null },
  ),
  segment: fc.oneof(
    { weight: 2, arbitrary: fc.nat() },
    {
      weight: 1,
      arbitrary: text.map((raw) => encodeURIComponent(raw.toWellFormed()).slice(0, 600)),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom('%', '%zz', '..', '%00', '%2e%2e%2f', 'a'.repeat(2000)),
    },
  ),
  query: fc.option(
    fc.constantFrom(
      'limit=-1',
      'limit=500&before=0',
      'limit=x&limit=y',
      '__proto__[x]=1',
      'before=%00',
      'action=%00',
      'action=%ED%A0%80',
      'start=x',
      'start=2026-12-31T23:59:60Z',
      'page_token=%00',
      'resource_type=%00',
      'keep=%00',
      'from=2026-01-01T00:00:00Z&to=2026-12-31T23:59:60Z',
      'from=0000-01-01T00:00:00Z&to=9999-12-31T23:59:59Z',
    ),
    { nil: null },
  ),
  changes: fc.option(fc.array(change, { maxLength: 2 }), { freq: 3, nil: null }),
  noise,
  type: fc.oneof(
    { weight: 6, arbitrary: fc.constant('application/json') },
    {
      weight: 1,
      arbitrary: fc.constantFrom('text/plain', 'application/json; charset=utf-16', 'x', ''),
    },
  ),
  credentials: fc.oneof(
    { weight: 6, arbitrary: fc.constant('right') },
    {
      weight: 1,
      arbitrary: fc.constantFrom('key', 'session', 'none', 'Bearer', 'Basic ::::', 'Digest x'),
    },
    { weight: 1, arbitrary: fc.constant(`Bearer ${'k'.repeat(3000)}`) },
  ),
});

export type HostileRequest =
  typeof hostileRequest extends fc.Arbitrary<infer Value> ? Value : never;
type Change = NonNullable<HostileRequest['changes']>[number];

/** A copy of the body with the changes made, each somewhere in it. */
export function mutate(example: unknown, changes: readonly Change[]): Record<string, unknown> {
  const body = structuredClone(example) as Record<string, unknown>;
  for (const { at, to } of changes) {
    const places = membersOf(body);
    const place = places[at % places.length];
    if (place !== undefined) place.parent[place.name] = to(place.parent[place.name]);
  }
  return body;
}

function membersOf(node: unknown): { parent: Record<string, unknown>; name: string }[] {
  if (typeof node !== 'object' || node === null) return [];
  const parent = node as Record<string, unknown>;
  return Object.keys(parent).flatMap((name) => [{ parent, name }, ...membersOf(parent[name])]);
}
