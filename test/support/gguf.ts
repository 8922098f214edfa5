// Writes GGUF files for tests: sound ones of any size, and ones that say whatever a test wants about themselves.

import { randomBytes } from 'node:crypto';

export type GgufValue =
  | { readonly u32: number }
  | { readonly text: string }
  /** Elements as they are in the file. */
  | { readonly list: { readonly type: number; readonly count: bigint; readonly bytes: Buffer } }
  | { readonly raw: { readonly type: number; readonly bytes: Buffer } };

export interface GgufTensor {
  readonly name: string;
  readonly shape: readonly bigint[];
  readonly type: number;
  readonly offset: bigint;
}

export interface GgufContent {
  readonly version?: number;
  readonly metadata: readonly (readonly [key: string, value: GgufValue])[];
  readonly tensors: readonly GgufTensor[];
  /** Counts that differ from what follows. */
  readonly claims?: { readonly metadata?: bigint; readonly tensors?: bigint };
  /** Bytes of tensor data. */
  readonly data: Buffer;
}

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

export const u64 = (value: bigint) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
  return bytes;
};

export const ggufText = (value: string) => {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(BigInt(bytes.length)), bytes]);
};

function toValue(value: GgufValue): Buffer {
  if ('u32' in value) return Buffer.concat([u32(4), u32(value.u32)]);
  if ('text' in value) return Buffer.concat([u32(8), ggufText(value.text)]);
  if ('raw' in value) return Buffer.concat([u32(value.raw.type), value.raw.bytes]);
  const { type, count, bytes } = value.list;
  return Buffer.concat([u32(9), u32(type), u64(count), bytes]);
}

const toTensor = ({ name, shape, type, offset }: GgufTensor): Buffer =>
  Buffer.concat([ggufText(name), u32(shape.length), ...shape.map(u64), u32(type), u64(offset)]);

export function toGguf({ version = 3, metadata, tensors, claims = {}, data }: GgufContent): Buffer {
  const header = Buffer.concat([
    Buffer.from('GGUF'),
    u32(version),
    u64(claims.tensors ?? BigInt(tensors.length)),
    u64(claims.metadata ?? BigInt(metadata.length)),
    ...metadata.flatMap(([key, value]) => [ggufText(key), toValue(value)]),
    ...tensors.map(toTensor),
  ]);
  const padding = Buffer.alloc((32 - (header.length % 32)) % 32);
  return Buffer.concat([header, padding, data]);
}

/** A list of texts, as `tokenizer.ggml.tokens` is one. */
export const textList = (texts: readonly string[]): GgufValue => ({
  list: { type: 8, count: BigInt(texts.length), bytes: Buffer.concat(texts.map(ggufText)) },
});

/** A list of zeros with four bytes each: floats, or integers. */
export const zeroList = (type: 4 | 5 | 6, count: number): GgufValue => ({
  list: { type, count: BigInt(count), bytes: Buffer.alloc(count * 4) },
});

/** A sound file of that many bytes with random weights. No model can be made of it. */
export function randomGguf(bytes: number): Buffer {
  const tensor = { name: 'weights', shape: [1n], type: 24, offset: 0n };
  const empty = toGguf({ metadata: [], tensors: [tensor], data: Buffer.alloc(0) });
  const data = randomBytes(bytes - empty.length);
  return toGguf({ metadata: [], tensors: [{ ...tensor, shape: [BigInt(data.length)] }], data });
}
