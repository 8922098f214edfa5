// BOUNDARY. Checks the header of a GGUF file before native code reads it: llama.cpp trusts much of
// what a file says about itself. What passes here has only counts, lengths, shapes and offsets that
// fit the file. No other file parses GGUF.

import { type FileHandle, open } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ModelKind } from './pooling.ts';

/** Why a file is no sound GGUF, in words that follow its name: `ends inside its header`. */
export class GgufError extends Error {}

/** What the header of a sound file says. */
export interface GgufHeader {
  readonly parts: number;
  readonly metadata: Metadata;
  /** True if the model ends in a head that ranks or classifies. */
  readonly hasClassifier: boolean;
}

/** Checks a model's file, and the other parts if the model is split. Throws GgufError. */
export async function checkModelFiles(path: string): Promise<GgufHeader> {
  const header = await checkGguf(path);
  const { parts } = header;
  if (parts <= 1) return header;
  const [, stem, , count] = /^(.+)-(\d{5})-of-(\d{5})\.gguf$/.exec(basename(path)) ?? [];
  if (Number(count) !== parts)
    throw new GgufError(`has ${parts} parts, but is not named so: name-00001-of-0000N.gguf`);
  for (let part = 1; part <= parts; part++) {
    const file = `${stem}-${String(part).padStart(5, '0')}-of-${count}.gguf`;
    await checkGguf(join(dirname(path), file));
  }
  return header;
}

/** Checks one file, of which it reads only the header. Throws GgufError, and what the file system throws. */
export async function checkGguf(path: string): Promise<GgufHeader> {
  const handle = await open(path, 'r');
  try {
    const { size } = await handle.stat();
    const reader = new HeaderReader(handle, size);
    return await checkHeader(reader, size);
  } finally {
    await handle.close();
  }
}

/** llama.cpp's numbers: 1 is the mean, 2 the first and 3 the last token, 4 a ranking head; 0 is none. */
const rankPooling = 4;

/** What the model was made for; null if it can neither generate nor embed. */
export function toModelKind({ metadata, hasClassifier }: GgufHeader): ModelKind | null {
  const architecture = metadata.get('general.architecture')?.value;
  const numberOf = (name: string) => Number(metadata.get(`${architecture}.${name}`)?.value ?? NaN);
  const pooling = numberOf('pooling_type');
  if (pooling === rankPooling || hasClassifier) return 'rerank';
  if (pooling > 0) return 'embedding';
  return numberOf('attention.causal') === 0 ? null : 'chat';
}

const maxHeaderBytes = 512 * 2 ** 20;
const maxMetadata = 65_536;
const maxTensors = 65_536;
const maxKeyBytes = 65_535;
const maxStringBytes = 16 * 2 ** 20;
const maxTemplateBytes = 512 * 1024;
const maxElements = 2 ** 24;
/** llama.cpp stores a name in 64 bytes, and its end. */
const maxTensorNameBytes = 63;
const maxDimensions = 4;
const maxAlignment = 2 ** 20;
/** LLAMA_MAX_LAYERS: older versions write beyond their tables if a file has more. */
const maxLayers = 512;
const maxParts = 1000;

/**
 * A value of the metadata. The value of a long text is its beginning. Arrays have a count; their value is the largest
 * number if there is at most one for each layer, and null otherwise.
 */
export interface Metadatum {
  readonly type: number;
  readonly count: number | null;
  readonly value: number | string | null;
}

export type Metadata = ReadonlyMap<string, Metadatum>;

async function checkHeader(reader: HeaderReader, size: number): Promise<GgufHeader> {
  if ((await reader.u32()) !== 0x46554747) throw new GgufError('does not begin with "GGUF"');
  const version = await reader.u32();
  if (version !== 2 && version !== 3) throw new GgufError(`is of version ${version}, not 2 or 3`);
  const tensors = await reader.count('tensors', maxTensors);
  const entries = await reader.count('metadata entries', maxMetadata);
  const metadata = await readMetadata(reader, entries);
  const alignment = checkMetadata(metadata);
  const found = await readTensors(reader, tensors);
  checkData(found, Math.ceil(reader.position / alignment) * alignment, alignment, size);
  const parts = Number(metadata.get('split.count')?.value ?? 1);
  if (parts > maxParts) throw new GgufError(`claims to have ${parts} parts`);
  const hasClassifier = found.some(({ name }) => classifierTensors.includes(name));
  return { parts, metadata, hasClassifier };
}

const classifierTensors: readonly string[] = ['cls.weight', 'cls.output.weight'];

const text = 8;
const array = 9;
/** Bytes of a value by its type: integers of 8, 16 and 32 bits, a float, a boolean, and numbers of 64 bits. */
const valueBytes = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

async function readMetadata(reader: HeaderReader, entries: number): Promise<Metadata> {
  const metadata = new Map<string, Metadatum>();
  for (let entry = 0; entry < entries; entry++) {
    const key = await reader.text('a metadata key', maxKeyBytes);
    if (key === '') throw new GgufError('has a metadata key without a name');
    if (metadata.has(key)) throw new GgufError(`has the metadata key ${quote(key)} twice`);
    const type = await reader.u32();
    metadata.set(key, await readValue(reader, key, type));
  }
  return metadata;
}

async function readValue(reader: HeaderReader, key: string, type: number): Promise<Metadatum> {
  const bytes = valueBytes[type];
  if (bytes !== undefined) return { type, count: null, value: await reader.number(type, bytes) };
  if (type === text) {
    // A template must be whole.
    const isTemplate = key.startsWith('tokenizer.chat_template');
    const maxBytes = isTemplate ? maxTemplateBytes : maxStringBytes;
    return { type, count: null, value: await reader.text(quote(key), maxBytes) };
  }
  if (type !== array) throw new GgufError(`has a value of unknown type ${type} at ${quote(key)}`);
  const inner = await reader.u32();
  const count = await reader.count(`elements of ${quote(key)}`, maxElements);
  const innerBytes = valueBytes[inner];
  if (innerBytes !== undefined && count <= maxLayers) {
    let largest: number | null = null;
    for (let at = 0; at < count; at++)
      largest = Math.max(largest ?? -Infinity, await reader.number(inner, innerBytes));
    return { type: inner, count, value: largest };
  }
  if (innerBytes !== undefined) reader.skip(count * innerBytes);
  else if (inner === text) {
    for (let at = 0; at < count; at++)
      reader.skip(await reader.count(`bytes of ${quote(key)}`, maxStringBytes));
  } else throw new GgufError(`has an array of type ${inner} at ${quote(key)}`);
  return { type: inner, count, value: null };
}

const uint32 = 4;
const fourBytes: readonly (number | undefined)[] = [4, 5, 6];

/** Returns the alignment of the tensors' data. */
function checkMetadata(metadata: Metadata): number {
  const { type, value } = metadata.get('general.alignment') ?? { type: uint32, value: 32 };
  const alignment = Number(value);
  const isPower = Number.isInteger(Math.log2(alignment)) && alignment <= maxAlignment;
  if (type !== uint32 || value === null || !isPower)
    throw new GgufError(`has the alignment ${value}, not a power of two up to ${maxAlignment}`);
  const layers = metadata.get(`${metadata.get('general.architecture')?.value}.block_count`);
  if (
    layers !== undefined &&
    !(Number(layers.value ?? -1) >= 0 && Number(layers.value) <= maxLayers)
  )
    throw new GgufError(`has ${layers.value} layers; ${maxLayers} is the most`);
  checkVocabulary(metadata);
  return alignment;
}

/** llama.cpp reads a score and a type for each token, without a look at how many there are. */
function checkVocabulary(metadata: Metadata): void {
  const tokens = metadata.get('tokenizer.ggml.tokens');
  if (tokens !== undefined && (tokens.count === null || tokens.type !== text))
    throw new GgufError('has tokens that are not a list of texts');
  for (const name of ['scores', 'token_type']) {
    const list = metadata.get(`tokenizer.ggml.${name}`);
    if (list === undefined) continue;
    if (list.count === null || list.count !== tokens?.count || !fourBytes.includes(list.type))
      throw new GgufError(`has ${tokens?.count ?? 0} tokens, but ${name} for ${list.count ?? 0}`);
  }
}

interface Tensor {
  readonly name: string;
  readonly bytes: number;
  readonly offset: number;
}

async function readTensors(reader: HeaderReader, count: number): Promise<Tensor[]> {
  const tensors: Tensor[] = [];
  const names = new Set<string>();
  for (let at = 0; at < count; at++) {
    const name = await reader.text('the name of a tensor', maxTensorNameBytes);
    if (name === '' || name.includes('\0'))
      throw new GgufError(`has a tensor with the name ${quote(name)}`);
    if (names.has(name)) throw new GgufError(`has the tensor ${quote(name)} twice`);
    names.add(name);
    const dimensions = await reader.u32();
    if (dimensions < 1 || dimensions > maxDimensions)
      throw new GgufError(`has a tensor ${quote(name)} of ${dimensions} dimensions`);
    const shape: bigint[] = [];
    for (let dimension = 0; dimension < dimensions; dimension++) shape.push(await reader.u64());
    const bytes = toBytes(name, shape, await reader.u32());
    tensors.push({ name, bytes, offset: Number(await reader.u64()) });
  }
  return tensors;
}

/** Elements and bytes of a block by type, as in ggml. Types that ggml has removed are not listed. */
const blocks: Readonly<Record<number, readonly [elements: number, bytes: number]>> = {
  // F32, F16, F64, BF16 and the integers of 8, 16, 32 and 64 bits.
  ...{ 0: [1, 4], 1: [1, 2], 28: [1, 8], 30: [1, 2] },
  ...{ 24: [1, 1], 25: [1, 2], 26: [1, 4], 27: [1, 8] },
  // Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1.
  ...{ 2: [32, 18], 3: [32, 20], 6: [32, 22], 7: [32, 24], 8: [32, 34], 9: [32, 36] },
  // Q2_K to Q6_K, Q8_K.
  ...{ 10: [256, 84], 11: [256, 110], 12: [256, 144], 13: [256, 176], 14: [256, 210] },
  ...{ 15: [256, 292] },
  // IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, IQ1_M.
  ...{ 16: [256, 66], 17: [256, 74], 18: [256, 98], 19: [256, 50], 20: [32, 18] },
  ...{ 21: [256, 110], 22: [256, 82], 23: [256, 136], 29: [256, 56] },
  // TQ1_0, TQ2_0, MXFP4, NVFP4, Q1_0, Q2_0.
  ...{ 34: [256, 54], 35: [256, 66], 39: [32, 17], 40: [64, 36], 41: [128, 18], 42: [64, 18] },
};

/** Counted in big integers: a product of four dimensions can exceed 64 bits and come out small. */
function toBytes(name: string, shape: readonly bigint[], type: number): number {
  const [elements, bytes] = blocks[type] ?? [];
  if (elements === undefined || bytes === undefined)
    throw new GgufError(`has a tensor ${quote(name)} of unknown type ${type}`);
  if (shape.includes(0n)) throw new GgufError(`has a tensor ${quote(name)} without elements`);
  if ((shape[0] ?? 0n) % BigInt(elements) !== 0n)
    throw new GgufError(`has a tensor ${quote(name)} whose rows are not whole blocks`);
  const all = shape.reduce((product, dimension) => product * dimension, 1n);
  return Number((all / BigInt(elements)) * BigInt(bytes));
}

/** As in llama.cpp, tensors follow each other without gaps, each padded to the alignment. */
function checkData(
  tensors: readonly Tensor[],
  start: number,
  alignment: number,
  size: number,
): void {
  let expected = 0;
  for (const { name, bytes, offset } of tensors) {
    if (offset !== expected)
      throw new GgufError(`has the tensor ${quote(name)} at ${offset}; ${expected} comes next`);
    if (start + offset + bytes > size)
      throw new GgufError(`ends inside the tensor ${quote(name)}: it is cut off or not sound`);
    expected = Math.ceil((offset + bytes) / alignment) * alignment;
  }
}

const quote = (name: string) => JSON.stringify(name.slice(0, 80));

const windowBytes = 2 ** 20;

/** Reads the header through a window. Every length is checked against the file before it is used. */
class HeaderReader {
  /** Bytes read or skipped so far. */
  position = 0;
  readonly #handle: FileHandle;
  readonly #size: number;
  readonly #window = Buffer.allocUnsafe(windowBytes);
  #start = 0;
  #end = 0;

  constructor(handle: FileHandle, size: number) {
    this.#handle = handle;
    this.#size = size;
  }

  async u32(): Promise<number> {
    const at = await this.#take(4);
    return this.#window.readUInt32LE(at);
  }

  async u64(): Promise<bigint> {
    const at = await this.#take(8);
    return this.#window.readBigUInt64LE(at);
  }

  /** A 64-bit number of things, of which each takes at least a byte of the file. */
  async count(things: string, max: number): Promise<number> {
    const count = await this.u64();
    if (count > BigInt(max)) throw new GgufError(`has ${count} ${things}; ${max} is the most`);
    this.#reserve(Number(count));
    return Number(count);
  }

  async number(type: number, bytes: number): Promise<number> {
    const at = await this.#take(bytes);
    if (type === 6) return this.#window.readFloatLE(at);
    if (type === 12) return this.#window.readDoubleLE(at);
    if (type === 10) return Number(this.#window.readBigUInt64LE(at));
    if (type === 11) return Number(this.#window.readBigInt64LE(at));
    const isSigned = type % 2 === 1 && type !== 7;
    return isSigned ? this.#window.readIntLE(at, bytes) : this.#window.readUIntLE(at, bytes);
  }

  /** The text's beginning, if it is long. */
  async text(what: string, maxBytes: number): Promise<string> {
    const bytes = await this.count(`bytes in ${what}`, maxBytes);
    const kept = Math.min(bytes, maxBytes > maxTemplateBytes ? maxKeyBytes : maxBytes);
    const at = await this.#take(kept);
    const beginning = this.#window.toString('utf8', at, at + kept);
    this.skip(bytes - kept);
    return beginning;
  }

  skip(bytes: number): void {
    this.#reserve(bytes);
    this.position += bytes;
  }

  #reserve(bytes: number): void {
    const end = this.position + bytes;
    if (end > this.#size) throw new GgufError('ends inside its header: it is cut off or not sound');
    if (end > maxHeaderBytes) throw new GgufError(`has a header of over ${maxHeaderBytes} bytes`);
  }

  /** Returns where in the window the next bytes are. */
  async #take(bytes: number): Promise<number> {
    this.#reserve(bytes);
    if (this.position < this.#start || this.position + bytes > this.#end) await this.#fill();
    const at = this.position - this.#start;
    this.position += bytes;
    return at;
  }

  async #fill(): Promise<void> {
    this.#start = this.position;
    this.#end = this.position;
    while (this.#end < this.#size && this.#end - this.#start < windowBytes) {
      const at = this.#end - this.#start;
      const { bytesRead } = await this.#handle.read(this.#window, at, windowBytes - at, this.#end);
      if (bytesRead === 0) throw new GgufError('became shorter while it was read');
      this.#end += bytesRead;
    }
  }
}
