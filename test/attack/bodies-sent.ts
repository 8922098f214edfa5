// Bodies that cost a server more than they cost their sender.

export interface Attack {
  readonly path: string;
  body(): Buffer;
}

const chat = '/v1/chat/completions';
const head = '{"model":"attacked","max_tokens":5,"messages":[{"role":"user","content":"Go"}]';

/** As many bytes of `unit` as a body of 7.8 MB takes, after the head of a valid request. */
const fill = (unit: string, megabytes = 7.8) =>
  Buffer.from(`${head},"zz":[${unit}${`,${unit}`.repeat((megabytes * 1e6) / (unit.length + 1))}]}`);

/** So many values, with as many bytes of text. */
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
  // Valid, and as large as is allowed.
  text: { path: chat, body: () => long(text) },
  unicode: { path: chat, body: () => long('Привет, мир. ') },
  escapes: { path: chat, body: () => long('\\"') },
  // Valid, with nearly as many values as are allowed.
  bound: { path: chat, body: () => dense(65_000, (index) => `{"k${index % 9999}":${index}}`) },
  names: { path: chat, body: () => dense(65_000, (index) => `{"name${index}":1}`) },
  mixed: {
    path: chat,
    body: () => dense(65_000, (index) => `{"k${index}":"${'x'.repeat(90)}"}`),
  },
};
