// Writes a Llama-shaped GGUF with random weights: as slow as a real model of its size and free of charge.
// Usage: node bench/make-gguf.ts <file>

import { closeSync, openSync, writeSync } from 'node:fs';
import { argv } from 'node:process';

export interface Shape {
  layers: number;
  width: number;
  heads: number;
  sharedHeads: number;
  hidden: number;
  vocabulary: number;
  window: number;
}

/** 125.8 million parameters, 135 MB at 8 bits. */
export const shape125m: Shape = {
  layers: 12,
  width: 768,
  heads: 12,
  sharedHeads: 4,
  hidden: 2048,
  vocabulary: 32_768,
  window: 2048,
};

interface Tensor {
  name: string;
  dimensions: number[];
  eightBit: boolean;
}

const alignment = 32;
const blockWeights = 32;
const blockBytes = 34;
const specials = ['<|begin_of_text|>', '<|end_of_text|>', '<|eot_id|>'];
const template =
  "{{- bos_token }}{%- for message in messages %}{{- message['role'] + ': ' + message['content'] + '<|eot_id|>' }}{%- endfor %}{%- if add_generation_prompt %}{{- 'assistant: ' }}{%- endif %}";

export function writeModel(file: string, shape: Shape): void {
  const tensors = toTensors(shape);
  let offset = 0;
  const infos = tensors.map((tensor) => {
    const info = Buffer.concat([
      string(tensor.name),
      u32(tensor.dimensions.length),
      ...tensor.dimensions.map(u64),
      u32(tensor.eightBit ? 8 : 0),
      u64(offset),
    ]);
    offset += aligned(toBytes(tensor));
    return info;
  });
  const metadata = toMetadata(shape);
  const head = Buffer.concat([
    Buffer.from('GGUF'),
    u32(3),
    u64(tensors.length),
    u64(metadata.length),
    ...metadata,
    ...infos,
  ]);
  const output = openSync(file, 'w');
  writeSync(output, Buffer.concat([head, Buffer.alloc(aligned(head.length) - head.length)]));
  const noise = toNoise(4096);
  for (const tensor of tensors) writeSync(output, toData(tensor, noise));
  closeSync(output);
}

function toTensors({ layers, width, heads, sharedHeads, hidden, vocabulary }: Shape): Tensor[] {
  const shared = (width / heads) * sharedHeads;
  const matrix = (name: string, ...dimensions: number[]) => ({ name, dimensions, eightBit: true });
  const norm = (name: string) => ({ name, dimensions: [width], eightBit: false });
  const layer = (at: number) => [
    norm(`blk.${at}.attn_norm.weight`),
    matrix(`blk.${at}.attn_q.weight`, width, width),
    matrix(`blk.${at}.attn_k.weight`, width, shared),
    matrix(`blk.${at}.attn_v.weight`, width, shared),
    matrix(`blk.${at}.attn_output.weight`, width, width),
    norm(`blk.${at}.ffn_norm.weight`),
    matrix(`blk.${at}.ffn_gate.weight`, width, hidden),
    matrix(`blk.${at}.ffn_up.weight`, width, hidden),
    matrix(`blk.${at}.ffn_down.weight`, hidden, width),
  ];
  return [
    matrix('token_embd.weight', width, vocabulary),
    norm('output_norm.weight'),
    matrix('output.weight', width, vocabulary),
    ...Array.from({ length: layers }, (_, at) => layer(at)).flat(),
  ];
}

function toMetadata(shape: Shape): Buffer[] {
  const { tokens, merges } = toVocabulary(shape.vocabulary);
  const types = tokens.map((token) => (specials.includes(token) ? 3 : 1));
  const count = tokens.length;
  return [
    entry('general.architecture', 8, string('llama')),
    entry('general.name', 8, string('random')),
    entry('general.file_type', 4, u32(7)),
    entry('general.quantization_version', 4, u32(2)),
    entry('llama.context_length', 4, u32(shape.window)),
    entry('llama.embedding_length', 4, u32(shape.width)),
    entry('llama.block_count', 4, u32(shape.layers)),
    entry('llama.feed_forward_length', 4, u32(shape.hidden)),
    entry('llama.attention.head_count', 4, u32(shape.heads)),
    entry('llama.attention.head_count_kv', 4, u32(shape.sharedHeads)),
    entry('llama.attention.layer_norm_rms_epsilon', 6, f32(1e-5)),
    entry('llama.rope.dimension_count', 4, u32(shape.width / shape.heads)),
    entry('llama.rope.freq_base', 6, f32(500_000)),
    entry('llama.vocab_size', 4, u32(shape.vocabulary)),
    entry('tokenizer.ggml.model', 8, string('gpt2')),
    entry('tokenizer.ggml.pre', 8, string('llama-bpe')),
    entry('tokenizer.ggml.tokens', 9, list(8, tokens.map(string))),
    entry('tokenizer.ggml.token_type', 9, list(5, types.map(u32))),
    entry('tokenizer.ggml.merges', 9, list(8, merges.map(string))),
    entry('tokenizer.ggml.bos_token_id', 4, u32(count - 3)),
    entry('tokenizer.ggml.eos_token_id', 4, u32(count - 2)),
    entry('tokenizer.ggml.eot_token_id', 4, u32(count - 1)),
    entry('tokenizer.ggml.add_bos_token', 7, Buffer.of(1)),
    entry('tokenizer.chat_template', 8, string(template)),
  ];
}

/** Single bytes, then every pair, triple and so on of letters until the vocabulary is full. */
function toVocabulary(size: number): { tokens: string[]; merges: string[] } {
  const tokens: string[] = [];
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable =
      (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
    tokens.push(String.fromCodePoint(printable ? byte : next++));
  }
  const letters = Array.from({ length: 26 }, (_, at) => String.fromCharCode(97 + at));
  const merges: string[] = [];
  let words = letters;
  while (tokens.length < size - specials.length) {
    const longer: string[] = [];
    for (const word of words)
      for (const letter of letters) {
        if (tokens.length >= size - specials.length) break;
        longer.push(word + letter);
        tokens.push(word + letter);
        merges.push(`${word} ${letter}`);
      }
    words = longer;
  }
  return { tokens: [...tokens, ...specials], merges };
}

/** A megabyte of random blocks is enough: they are laid over the weights again and again. */
function toNoise(blocks: number): Int8Array {
  let state = 12_345;
  const random = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  return Int8Array.from({ length: blocks * blockWeights }, () => {
    const bell = (random() + random() + random() + random() - 2) * 73;
    return Math.max(-127, Math.min(127, Math.round(bell)));
  });
}

function toData(tensor: Tensor, noise: Int8Array): Buffer {
  const weights = tensor.dimensions.reduce((product, size) => product * size, 1);
  const data = Buffer.alloc(aligned(toBytes(tensor)));
  if (!tensor.eightBit) {
    for (let at = 0; at < weights; at++) data.writeFloatLE(1, at * 4);
    return data;
  }
  const spread = tensor.name === 'token_embd.weight' ? 1 : 1 / Math.sqrt(tensor.dimensions[0] ?? 1);
  const scale = toHalf((spread * 3) / 127);
  const bytes = new Uint8Array(noise.buffer);
  for (let block = 0; block < weights / blockWeights; block++) {
    data.writeUInt16LE(scale, block * blockBytes);
    // A prime stride, so that rows do not repeat each other.
    const from = ((block * 1021) % (noise.length / blockWeights)) * blockWeights;
    data.set(bytes.subarray(from, from + blockWeights), block * blockBytes + 2);
  }
  return data;
}

function toBytes({ dimensions, eightBit }: Tensor): number {
  const weights = dimensions.reduce((product, size) => product * size, 1);
  return eightBit ? (weights / blockWeights) * blockBytes : weights * 4;
}

function toHalf(value: number): number {
  const bits = new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0;
  const exponent = ((bits >>> 23) & 255) - 112;
  const mantissa = bits & 0x7fffff;
  return exponent > 0
    ? (exponent << 10) | (mantissa >> 13)
    : (mantissa | 0x800000) >> (14 - exponent);
}

function entry(key: string, type: number, value: Buffer): Buffer {
  return Buffer.concat([string(key), u32(type), value]);
}

function list(type: number, items: readonly Buffer[]): Buffer {
  return Buffer.concat([u32(type), u64(items.length), ...items]);
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

if (import.meta.main) {
  const file = argv[2];
  if (file === undefined) throw new Error('Usage: node bench/make-gguf.ts <file>');
  writeModel(file, shape125m);
}
