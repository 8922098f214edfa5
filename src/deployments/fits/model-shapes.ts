// Finds out what a model needs memory for: from the header of a GGUF file, from the config.json of a folder, or from the
// list of known models.

import { open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { checkModelFiles } from '#inference/gguf-check.ts';
import { findKnownModel } from './known-models.ts';
import type { ModelShape } from './memory.ts';

const maxConfigBytes = 1_048_576;

/** Undefined if the source can't be read, or is no model that is known. */
export async function findModelShape(source: string): Promise<ModelShape | undefined> {
  if (!isAbsolute(source)) return toKnownShape(source);
  try {
    return source.endsWith('.gguf') ? await readGguf(source) : await readFolder(source);
  } catch {
    return undefined;
  }
}

function toKnownShape(repository: string): ModelShape | undefined {
  const known = findKnownModel(repository);
  if (known === undefined) return undefined;
  const { weightBytes, layers, cacheWidth, contextWindow } = known;
  return { weightBytes, cacheValues: layers * cacheWidth, contextWindow };
}

async function readGguf(path: string): Promise<ModelShape | undefined> {
  const { metadata, parts } = await checkModelFiles(path);
  const architecture = metadata.get('general.architecture')?.value;
  const read = (name: string) => toCount(metadata.get(`${architecture}.${name}`)?.value);
  const heads = read('attention.head_count');
  const size = divide(read('embedding_length'), heads);
  return toShape({
    weightBytes: await sumSizes(dirname(path), (name) =>
      parts > 1 ? isPartOf(name, basename(path)) : name === basename(path),
    ),
    layers: read('block_count'),
    kvHeads: read('attention.head_count_kv') ?? heads,
    keySize: read('attention.key_length') ?? size,
    valueSize: read('attention.value_length') ?? size,
    contextWindow: read('context_length'),
  });
}

/** All parts of a model are named alike. */
const isPartOf = (name: string, first: string) =>
  name.replace(/-\d{5}-of-/, '') === first.replace(/-\d{5}-of-/, '');

async function readFolder(folder: string): Promise<ModelShape | undefined> {
  const whole = await readJson(join(folder, 'config.json'));
  // Models that also see images have a part for the text.
  const text = (whole.text_config ?? whole) as Record<string, unknown>;
  const read = (name: string) => toCount(text[name]);
  const heads = read('num_attention_heads');
  const size = read('head_dim') ?? divide(read('hidden_size'), heads);
  return toShape({
    weightBytes: await sumSizes(folder, (name) => name.endsWith('.safetensors')),
    layers: read('num_hidden_layers'),
    kvHeads: read('num_key_value_heads') ?? heads,
    keySize: size,
    valueSize: size,
    contextWindow: read('max_position_embeddings'),
  });
}

interface Dimensions {
  weightBytes: number;
  layers: number | null;
  kvHeads: number | null;
  keySize: number | null;
  valueSize: number | null;
  contextWindow: number | null;
}

function toShape(given: Dimensions): ModelShape | undefined {
  const { weightBytes, layers, kvHeads, keySize, valueSize, contextWindow } = given;
  if (weightBytes === 0 || layers === null || kvHeads === null) return undefined;
  if (keySize === null || valueSize === null) return undefined;
  return { weightBytes, cacheValues: layers * kvHeads * (keySize + valueSize), contextWindow };
}

async function sumSizes(folder: string, isWanted: (name: string) => boolean): Promise<number> {
  const names = (await readdir(folder)).filter(isWanted);
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function readJson(path: string): Promise<Record<string, unknown>> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxConfigBytes), 0);
    return JSON.parse(buffer.toString('utf8', 0, bytesRead)) as Record<string, unknown>;
  } finally {
    await file.close();
  }
}

const toCount = (value: unknown) => (typeof value === 'number' && value > 0 ? value : null);

const divide = (one: number | null, other: number | null) =>
  one === null || other === null ? null : one / other;
