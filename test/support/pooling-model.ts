// Writes tiny GGUF models with random weights for tests: one that embeds texts and one that ranks documents. Their
// architecture is BERT's, so that llama.cpp loads them as it does real ones.

import { writeFile } from 'node:fs/promises';
import { type GgufTensor, type GgufValue, textList, toGguf } from './gguf.ts';
import { createRandom } from './random.ts';

export interface PoolingModelOptions {
  /** Default: an embedding model. */
  readonly ranks?: boolean;
  /** Length of the model's vectors. Default 32. */
  readonly dimensions?: number;
  /** Tokens of the longest text. Default 64. */
  readonly window?: number;
}

const special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];
const words = ['red', 'green', 'blue', 'apple', 'sky', 'river', 'is', 'the', 'of'];
const letters = [...'abcdefghijklmnopqrstuvwxyz0123456789.,!?'];

/** Words and letters that begin a word are marked; letters without a mark continue one. */
const vocabulary = [
  ...special,
  ...words.map((word) => `\u2581${word}`),
  ...letters.map((letter) => `\u2581${letter}`),
  ...letters,
];

const meanPooling = 1;
const rankPooling = 4;
const feedForward = 64;

/** Writes a model of some 50 kB. Equal options give equal files. */
export async function writePoolingModel(
  path: string,
  { ranks = false, dimensions = 32, window = 64 }: PoolingModelOptions = {},
): Promise<void> {
  const { tensors, data } = toTensors(toShapes(dimensions, window, ranks));
  const metadata = toMetadata(dimensions, window, ranks ? rankPooling : meanPooling);
  await writeFile(path, toGguf({ metadata, tensors, data }));
}

function toMetadata(dimensions: number, window: number, pooling: number) {
  const types = Buffer.alloc(vocabulary.length * 4);
  for (let token = 0; token < vocabulary.length; token++)
    types.writeInt32LE(token < special.length ? 3 : 1, token * 4);
  const epsilon = Buffer.alloc(4);
  epsilon.writeFloatLE(1e-12);
  const metadata: (readonly [string, GgufValue])[] = [
    ['general.architecture', { text: 'bert' }],
    ['bert.context_length', { u32: window }],
    ['bert.embedding_length', { u32: dimensions }],
    ['bert.block_count', { u32: 1 }],
    ['bert.feed_forward_length', { u32: feedForward }],
    ['bert.attention.head_count', { u32: 2 }],
    ['bert.attention.layer_norm_epsilon', { raw: { type: 6, bytes: epsilon } }],
    ['bert.attention.causal', { raw: { type: 7, bytes: Buffer.of(0) } }],
    ['bert.pooling_type', { u32: pooling }],
    ['tokenizer.ggml.model', { text: 'bert' }],
    ['tokenizer.ggml.token_type_count', { u32: 2 }],
    ['tokenizer.ggml.tokens', textList(vocabulary)],
    [
      'tokenizer.ggml.token_type',
      { list: { type: 5, count: BigInt(vocabulary.length), bytes: types } },
    ],
    ['tokenizer.ggml.padding_token_id', { u32: 0 }],
    ['tokenizer.ggml.unknown_token_id', { u32: 1 }],
    ['tokenizer.ggml.bos_token_id', { u32: 2 }],
    ['tokenizer.ggml.eos_token_id', { u32: 3 }],
    ['tokenizer.ggml.seperator_token_id', { u32: 3 }],
    ['tokenizer.ggml.mask_token_id', { u32: 4 }],
  ];
  return metadata;
}

type Shape = readonly [name: string, ...shape: number[]];

function toShapes(dimensions: number, window: number, ranks: boolean): Shape[] {
  const layer = (name: string, input: number, output: number): Shape[] => [
    [`${name}.weight`, input, output],
    [`${name}.bias`, output],
  ];
  const norm = (name: string): Shape[] => [
    [`${name}.weight`, dimensions],
    [`${name}.bias`, dimensions],
  ];
  return [
    ['token_embd.weight', dimensions, vocabulary.length],
    ['token_types.weight', dimensions, 2],
    ['position_embd.weight', dimensions, window],
    ...norm('token_embd_norm'),
    ...['q', 'k', 'v', 'output'].flatMap((name) =>
      layer(`blk.0.attn_${name}`, dimensions, dimensions),
    ),
    ...norm('blk.0.attn_output_norm'),
    ...layer('blk.0.ffn_up', dimensions, feedForward),
    ...layer('blk.0.ffn_down', feedForward, dimensions),
    ...norm('blk.0.layer_output_norm'),
    ...(ranks
      ? [...layer('cls', dimensions, dimensions), ...layer('cls.output', dimensions, 1)]
      : []),
  ];
}

function toTensors(shapes: readonly Shape[]): { tensors: GgufTensor[]; data: Buffer } {
  const random = createRandom(22);
  const tensors: GgufTensor[] = [];
  const pieces: Buffer[] = [];
  let offset = 0;
  for (const [name, ...shape] of shapes) {
    const count = shape.reduce((product, length) => product * length, 1);
    const bytes = Math.ceil((count * 4) / 32) * 32;
    const piece = Buffer.alloc(bytes);
    const isNorm = name.endsWith('norm.weight');
    for (let at = 0; at < count; at++)
      piece.writeFloatLE(isNorm ? 1 : random(1000) / 1000 - 0.5, at * 4);
    tensors.push({ name, shape: shape.map(BigInt), type: 0, offset: BigInt(offset) });
    pieces.push(piece);
    offset += bytes;
  }
  return { tensors, data: Buffer.concat(pieces) };
}
