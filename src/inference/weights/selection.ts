// What a pull fetches, and its name on disk: one model in GGUF, or all files of a model that vLLM
// and SGLang load. Pure.

import {
  type ChosenFile,
  chooseFiles,
  flatten,
  isFolder,
  isSafeSegment,
  type Source,
  toStoredFolder,
} from './choose.ts';
import { noChecksum, noModel, tooManyFiles } from './errors.ts';
import type { HubFile } from './hub.ts';
import type { Manifest, Weights } from './store.ts';

export type Format = 'gguf' | 'safetensors';

export interface Selection {
  /** `owner--repository/file.gguf` or `owner--repository/safetensors`; `@revision` follows the repository's name. */
  readonly name: string;
  readonly files: readonly ChosenFile[];
}

/** Settings, tokenizers, chat templates, and code that an engine runs only if it is told to trust it. */
const otherFiles = /\.(json|txt|model|tiktoken|jinja|py)$/;
/** Mistral's own copy of the same weights. */
const secondCopy = /^consolidated/;
const maxFiles = 500;
/** Length of all names together: a machine gets them in a variable, whose length Linux limits. */
const maxNameBytes = 32_768;

/** Throws a Refusal if the repository has no such weights. */
export function selectWeights(
  source: Source,
  format: Format,
  listed: readonly HubFile[],
): Selection {
  const folder = toStoredFolder(source);
  if (format === 'safetensors')
    return { name: `${folder}/${format}`, files: chooseModel(source.repo, listed) };
  const files = chooseFiles(source, listed);
  return { name: `${folder}/${flatten(files[0]?.path ?? '')}`, files };
}

/** The weights on disk that the source names; undefined if they are not there, or not whole. */
export const findStored = (source: Source, format: Format, stored: readonly Weights[]) =>
  findNamed(
    source,
    format,
    stored.filter(({ isWhole }) => isWhole),
  );

/** Weights that are on disk, or will be. */
export type Candidate = Pick<Manifest, 'name' | 'files'>;

/** Those of the candidates that the source names. */
export function findNamed<One extends Candidate>(
  source: Source,
  format: Format,
  candidates: readonly One[],
): One | undefined {
  const folder = `${toStoredFolder(source)}/`;
  const all = candidates.filter(({ name }) => name.startsWith(folder));
  if (format === 'safetensors') return all.find(({ name }) => name === `${folder}${format}`);
  const files = all.filter(({ name }) => !isFolder(name)).flatMap((one) => one.files);
  try {
    const { name } = selectWeights(source, format, files.map(toListed));
    return all.find((one) => one.name === name);
  } catch {
    return undefined;
  }
}

function chooseModel(repo: string, listed: readonly HubFile[]): readonly ChosenFile[] {
  const top = listed.filter(({ path, size }) => isSafeSegment(path) && size !== 0);
  const weights = new Set(findWeights(top.map(({ path }) => path)));
  const files = top.filter(({ path }) => weights.has(path) || otherFiles.test(path));
  const hasConfig = files.some(({ path }) => path === 'config.json' || path === 'params.json');
  if (weights.size === 0 || !hasConfig) throw noModel(repo);
  const nameBytes = files.reduce((sum, { path }) => sum + path.length, 0);
  if (files.length > maxFiles || nameBytes > maxNameBytes) throw tooManyFiles(repo, maxFiles);
  return files.map(({ path, size, sha256, gitId }) => {
    if (size === null || size < 0 || (sha256 ?? gitId) === null) throw noChecksum(path);
    return { path, size, sha256, gitId };
  });
}

function findWeights(paths: readonly string[]): readonly string[] {
  const all = paths.filter((path) => path.endsWith('.safetensors'));
  const first = all.filter((path) => !secondCopy.test(path));
  if (all.length > 0) return first.length > 0 ? first : all;
  return paths.filter((path) => /^pytorch_model.*\.bin$/.test(path));
}

const toListed = ({ path, size, sha256 }: ChosenFile): HubFile => ({
  path,
  size,
  sha256,
  gitId: null,
});
