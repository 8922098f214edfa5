// Request bodies that cost the server more than they cost their sender.

export interface Attack {
  readonly path: string;
  body(): Buffer;
}

const chat = '/v1/chat/completions';
const head = '{"model":"attacked","max_tokens":5,"messages":[{"role":"user","content":"Go"}]';

/** A valid request with an array of `unit`s, 7.8 MB long by default. */
const fill = (unit: string, megabytes = 7.8) =>
  Buffer.from(`${head},"zz":[${unit}${`,${unit}`.repeat((megabytes * 1e6) / (unit.length + 1))}]}`);

/** A valid request with an array of `values` members. */
const dense = (values: number, member: (index: number) => string) =>
  Buffer.from(
    `${head},"zz":[${Array.from({ length: values }, (_, index) => member(index)).join()}]}`,
  );

const text = 'The quick brown fox jumps over the lazy dog.\\n';

const long = (unit: string) =>
  Buffer.from(
    `{"model":"attacked","max_tokens":5,"messages":[{"role":"user","content":"${unit.repeat(7.8e6 / Buffer.byteLength(unit))}"}]}`,
  );

export const attacks: Readonly<Record<string, Attack>> = {
  values: { path: chat, body: () => fill('{}') },
  numbers: { path: chat, body: () => fill('1') },
  deep: { path: chat, body: () => Buffer.from(`${head},"zz":${'['.repeat(4e6)}`) },
  // Valid, and nearly as large as allowed.
  text: { path: chat, body: () => long(text) },
  unicode: { path: chat, body: () => long('Привет, мир. ') },
  escapes: { path: chat, body: () => long('\\"') },
  // Valid, with nearly as many values as allowed.
  bound: { path: chat, body: () => dense(65_000, (index) => `{"k${index % 9999}":${index}}`) },
  names: { path: chat, body: () => dense(65_000, (index) => `{"name${index}":1}`) },
  mixed: {
    path: chat,
    body: () => dense(65_000, (index) => `{"k${index}":"${'x'.repeat(90)}"}`),
  },
};
