// Chooses the GGUF files of a repository to pull: parses the ways people name weights, and applies
// an order of preference if no file is named. Pure, and the only place where a name from outside
// becomes part of a path.

import {
  badFile,
  badRepo,
  incompleteSplit,
  noChecksum,
  noGguf,
  noSuchFile,
  noSuchQuant,
} from './errors.ts';
import type { HubFile } from './hub.ts';

export interface Source {
  readonly repo: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
  readonly file: string | null;
  readonly quant: string | null;
}

export interface ChosenFile {
  /** Path inside the repository. */
  readonly path: string;
  readonly size: number;
  /** Null for a small file, which has a `gitId`. */
  readonly sha256: string | null;
  /** Id of the file as a git object, which is a checksum too. */
  readonly gitId?: string | null;
}

/**
 * Quantisations with good answers for their size come first; those that fit few machines or answer badly come
 * last.
 */
const preference = [
  'Q4_K_M',
  'Q5_K_M',
  'Q8_0',
  'Q6_K',
  'Q5_K_S',
  'Q4_K_S',
  'IQ4_XS',
  'Q4_0',
  'Q3_K_M',
  'BF16',
  'F16',
];
const maxParts = 500;
const word = '[A-Za-z0-9_][A-Za-z0-9._-]{0,95}';
const repoPattern = new RegExp(`^${word}/${word}$`);
const wordPattern = new RegExp(`^${word}$`);
const segmentPattern = /^[A-Za-z0-9_][A-Za-z0-9._+ ()[\]-]*$/;
const splitPattern = /-(\d{5})-of-(\d{5})\.gguf$/i;
const quantPattern =
  /(?:^|[-._/])((?:UD-)?(?:I?Q\d+(?:_[A-Z0-9]+)*|BF16|F16|F32|FP16|FP32|MXFP4(?:_[A-Z]+)?))(?:-\d{5}-of-\d{5})?\.gguf$/i;

/**
 * Accepts `owner/name`, `owner/name@revision`, `owner/name/file.gguf`, `hf.co/owner/name:Q8_0`, or
 * a URL copied from the hub.
 */
export function parseSource(text: string): Source {
  const short = text
    .trim()
    .replace(/^(https?:\/\/)?(hf\.co|huggingface\.co)\//i, '')
    .replace(/\?.*$/, '');
  const [, path = '', quant] = /^([^:]*)(?::([A-Za-z0-9_-]{1,32}))?$/.exec(short) ?? [];
  const [owner = '', atRevision = '', ...rest] = path.replace(/\/+$/, '').split('/');
  const [, name = '', named] = /^([^@]*)(?:@(.*))?$/.exec(atRevision) ?? [];
  const repo = `${owner}/${name}`;
  // The hub allows neither, and "--" replaces the slash on disk.
  if (!repoPattern.test(repo) || repo.includes('..') || repo.includes('--')) throw badRepo(text);
  const isAddress = ['resolve', 'blob', 'tree'].includes(rest[0] ?? '') && rest.length >= 2;
  const revision = named ?? (isAddress ? rest[1] : null) ?? 'main';
  if (!wordPattern.test(revision) || revision.includes('..')) throw badRepo(text);
  const file = (isAddress ? rest.slice(2) : rest).join('/');
  return {
    repo,
    revision,
    file: file === '' ? null : parseFile(decode(file)),
    quant: quant ?? null,
  };
}

export function parseFile(text: string): string {
  if (!isSafe(text)) throw badFile(text);
  return text;
}

/** Returns all parts if the weights are split, the first part first. */
export function chooseFiles(
  { repo, file, quant }: Source,
  listed: readonly Listed[],
): readonly ChosenFile[] {
  const groups = Map.groupBy(listed.filter(isWeights), ({ path }) => toGroup(path));
  if (groups.size === 0) throw noGguf(repo);
  const files =
    file === null
      ? byQuant(repo, quant, groups)
      : (groups.get(toGroup(file)) ?? noFile(repo, file, groups));
  const parts = [...files].sort((a, b) => (a.path < b.path ? -1 : 1));
  const count = Number(splitPattern.exec(parts[0]?.path ?? '')?.[2] ?? 1);
  const isWhole = parts.every(
    ({ path }, index) => count === 1 || Number(splitPattern.exec(path)?.[1]) === index + 1,
  );
  if (parts.length !== count || count > maxParts || !isWhole) {
    throw incompleteSplit(repo, parts[0]?.path ?? '');
  }
  return parts.map(({ path, size, sha256 }) => {
    if (size === null || size <= 0 || sha256 === null) throw noChecksum(path);
    return { path, size, sha256 };
  });
}

/** Returns `Q4_K_M` for `Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf`; null if the name contains no quantisation. */
export const quantOf = (path: string): string | null =>
  quantPattern.exec(path)?.[1]?.toUpperCase() ?? null;

/** Folder on disk: one for each revision of a repository. */
export const toStoredFolder = ({ repo, revision }: Pick<Source, 'repo' | 'revision'>): string =>
  `${repo.replace('/', '--')}${revision === 'main' ? '' : `@${revision}`}`;

/** Folders inside the repository are flattened. */
export const flatten = (path: string): string => path.replaceAll('/', '--');

/** True for weights that are a folder with the files of a model, and not a GGUF file. */
export const isFolder = (name: string): boolean => name.endsWith('/safetensors');

type Listed = Pick<HubFile, 'path' | 'size' | 'sha256'>;
type Groups = Map<string, Listed[]>;

function byQuant(repo: string, quant: string | null, groups: Groups): Listed[] {
  const found = new Map<string, Listed[]>();
  for (const [group, files] of groups) {
    const name = quantOf(group);
    if (name !== null && !found.has(name)) found.set(name, files);
  }
  const wanted = quant === null ? preference : [quant.toUpperCase()];
  const choice = wanted.find((name) => found.has(name));
  if (choice !== undefined) return found.get(choice) as Listed[];
  const [only] = groups.values();
  if (quant === null && groups.size === 1 && only !== undefined) return only;
  throw noSuchQuant(
    repo,
    quant,
    found.size > 0 && quant !== null ? [...found.keys()] : [...groups.keys()],
  );
}

function noFile(repo: string, file: string, groups: Groups): never {
  throw noSuchFile(repo, file, [...groups.keys()]);
}

/** Path of the first part; a file that is not split is its own group. */
const toGroup = (path: string) => path.replace(splitPattern, '-00001-of-$2.gguf');

/** Projectors and importance matrices are not models of their own. */
const isWeights = ({ path }: Listed) =>
  isSafe(path) && !/(^|\/)(mmproj|imatrix)|[-._]imatrix\.gguf$/i.test(path);

function isSafe(path: string): boolean {
  return (
    path.length <= 200 &&
    path.toLowerCase().endsWith('.gguf') &&
    path.split('/').every(isSafeSegment)
  );
}

/** True for the name of a file or folder that stays in its folder. */
export const isSafeSegment = (name: string): boolean =>
  name.length <= 200 && segmentPattern.test(name) && !name.includes('..');

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw badFile(text);
  }
}
