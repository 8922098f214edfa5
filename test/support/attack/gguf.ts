// GGUF files that lie about themselves: the classes of published attacks, and random mutations of a sound file.

import {
  type GgufContent,
  type GgufTensor,
  type GgufValue,
  ggufText,
  textList,
  u64,
  zeroList,
} from '#test/support/gguf.ts';

const tokens = ['<s>', '</s>', 'a', 'b'];

/** As small a model as passes for one: metadata, a vocabulary and two tensors. */
export const soundContent: GgufContent = {
  metadata: [
    ['general.architecture', { text: 'llama' }],
    ['llama.block_count', { u32: 1 }],
    ['general.alignment', { u32: 32 }],
    ['tokenizer.ggml.tokens', textList(tokens)],
    ['tokenizer.ggml.scores', zeroList(6, tokens.length)],
    ['tokenizer.ggml.token_type', zeroList(5, tokens.length)],
  ],
  tensors: [
    { name: 'token_embd.weight', shape: [32n, 4n], type: 8, offset: 0n },
    { name: 'output_norm.weight', shape: [32n], type: 0, offset: 160n },
  ],
  data: Buffer.alloc(160 + 128),
};

const [embedding, norm] = soundContent.tensors as [GgufTensor, GgufTensor];

function withEntry(key: string, value: GgufValue): GgufContent {
  const others = soundContent.metadata.filter(([name]) => name !== key);
  return { ...soundContent, metadata: [...others, [key, value]] };
}

const withTensor = (change: Partial<GgufTensor>): GgufContent => ({
  ...soundContent,
  tensors: [{ ...embedding, ...change }, norm],
});

const list = (type: number, count: bigint, bytes = Buffer.alloc(64)): GgufValue => ({
  list: { type, count, bytes },
});

/** Each file with what must be said of it. */
export const hostileFiles: [name: string, content: GgufContent, reason: RegExp][] = [
  // CVE-2026-7482: the declared tensor is larger than the file, and memory beyond it is read.
  ['data beyond the end', { ...soundContent, data: Buffer.alloc(160) }, /ends inside the tensor/],
  [
    'a tensor larger than the file',
    withTensor({ shape: [32n, 1n << 40n] }),
    /ends inside the tensor/,
  ],
  ['an offset beyond the end', withTensor({ offset: 1n << 40n }), /0 comes next/],
  ['an offset that wraps around', withTensor({ offset: (1n << 64n) - 32n }), /0 comes next/],
  ['an offset off the alignment', withTensor({ offset: 1n }), /0 comes next/],
  // CVE-2026-27940: a size that overflows, so that too little memory is allocated.
  ['2^64 elements', withTensor({ shape: [1n << 32n, 1n << 32n] }), /ends inside the tensor/],
  ['a row count that wraps around', withTensor({ shape: [32n, (1n << 59n) + 1n] }), /ends inside/],
  ['negative dimensions', withTensor({ shape: [32n, -1n] }), /ends inside the tensor/],
  ['four dimensions of 2^63', withTensor({ shape: Array(4).fill(1n << 63n) }), /ends inside/],
  [
    '2^63 tensors',
    { ...soundContent, claims: { tensors: 1n << 63n } },
    /tensors; 65536 is the most/,
  ],
  ['2^60 entries', { ...soundContent, claims: { metadata: 1n << 60n } }, /entries; 65536 is the/],
  [
    'more tensors than follow',
    { ...soundContent, claims: { tensors: 9n } },
    /ends inside its header|has a tensor|bytes in/,
  ],
  ['a zero dimension', withTensor({ shape: [32n, 0n] }), /without elements/],
  ['no dimension', withTensor({ shape: [] }), /of 0 dimensions/],
  ['five dimensions', withTensor({ shape: [32n, 1n, 1n, 1n, 1n] }), /of 5 dimensions/],
  ['part of a block', withTensor({ shape: [31n, 4n] }), /not whole blocks/],
  ['a removed type', withTensor({ type: 4 }), /unknown type 4/],
  ['a type out of range', withTensor({ type: 0xffffffff }), /unknown type 4294967295/],
  ['a long name', withTensor({ name: 'x'.repeat(64) }), /63 is the most/],
  ['one name twice', withTensor({ name: norm.name }), /twice/],
  ['a name with a NUL', withTensor({ name: 'a\0b' }), /with the name/],
  [
    'one key twice',
    { ...soundContent, metadata: [...soundContent.metadata, ['llama.block_count', { u32: 1 }]] },
    /twice/,
  ],
  ['a key without a name', withEntry('', { u32: 1 }), /without a name/],
  ['a key of 64 KiB', withEntry('k'.repeat(65_536), { u32: 1 }), /65535 is the most/],
  [
    'a text beyond the end',
    withEntry('t', { raw: { type: 8, bytes: u64(1n << 20n) } }),
    /ends inside its header/,
  ],
  [
    'a text of 2^64 - 1',
    withEntry('t', { raw: { type: 8, bytes: u64(-1n) } }),
    /bytes in "t"; 16777216/,
  ],
  ['an array of arrays', withEntry('a', list(9, 1n)), /an array of type 9/],
  ['an array of an unknown type', withEntry('a', list(13, 1n)), /an array of type 13/],
  ['an array beyond the end', withEntry('a', list(4, 1n << 20n)), /ends inside its header/],
  ['an array that wraps around', withEntry('a', list(12, (1n << 61n) + 1n)), /is the most/],
  ['texts beyond the end', withEntry('a', list(8, 3n, ggufText('x'))), /ends inside|is the most/],
  [
    'a value of an unknown type',
    withEntry('v', { raw: { type: 13, bytes: Buffer.alloc(8) } }),
    /unknown type 13/,
  ],
  ['no alignment', withEntry('general.alignment', { u32: 0 }), /the alignment 0/],
  ['an alignment of 24', withEntry('general.alignment', { u32: 24 }), /the alignment 24/],
  [
    'an alignment of 2 GiB',
    withEntry('general.alignment', { u32: 2 ** 31 }),
    /the alignment 2147483648/,
  ],
  [
    'an alignment of another type',
    withEntry('general.alignment', { raw: { type: 10, bytes: u64(32n) } }),
    /the alignment 32/,
  ],
  ['600 layers', withEntry('llama.block_count', { u32: 600 }), /600 layers/],
  [
    'fewer scores than tokens',
    withEntry('tokenizer.ggml.scores', zeroList(6, 2)),
    /4 tokens, but scores for 2/,
  ],
  [
    'more types than tokens',
    withEntry('tokenizer.ggml.token_type', zeroList(5, 5)),
    /but token_type for 5/,
  ],
  [
    'scores of one byte',
    withEntry('tokenizer.ggml.scores', list(0, 4n, Buffer.alloc(4))),
    /but scores/,
  ],
  [
    'tokens that are numbers',
    withEntry('tokenizer.ggml.tokens', zeroList(5, 4)),
    /not a list of texts/,
  ],
  ['version 1', { ...soundContent, version: 1 }, /version 1/],
  ['another byte order', { ...soundContent, version: 0x03000000 }, /version 50331648/],
];

/** Changes a few bytes, numbers or lengths of a file, or cuts it off. `random(n)` is below n. */
export function mutate(bytes: Buffer, random: (limit: number) => number): Buffer {
  const changed = Buffer.from(bytes);
  const numbers = [0n, 1n, 31n, 0xffn, 0xffffn, 1n << 31n, 1n << 32n, 1n << 63n, (1n << 64n) - 1n];
  for (let change = 0; change <= random(4); change++) {
    const at = random(changed.length - 8);
    const number = numbers[random(numbers.length)] ?? 0n;
    if (random(3) === 0) changed[at] = random(256);
    else if (random(2) === 0) changed.writeUInt32LE(Number(number & 0xffffffffn), at);
    else changed.writeBigUInt64LE(number, at);
  }
  return random(10) === 0 ? changed.subarray(0, random(changed.length)) : changed;
}
