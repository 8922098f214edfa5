// The weights on this machine's disk: a folder per repository, and beside each model's first file, or the folder of its
// files, a manifest that records its source and the expected size and checksum of each file. A file gets its final name
// only once it is complete and verified; until then its name ends in `.part`.

import {
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { newId } from '#lib/ids.ts';
import { type ChosenFile, flatten, isFolder } from './choose.ts';

export interface StoredFile extends ChosenFile {
  /** Final path on disk. */
  readonly target: string;
  /** Path of the partial file until then. */
  readonly part: string;
  /** Bytes of the file that are on disk, from 0 to `size`. */
  readonly bytesOnDisk: number;
  readonly isWhole: boolean;
}

export interface Weights {
  /** That of the first part if there are several. */
  readonly name: string;
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly StoredFile[];
  readonly bytes: number;
  readonly bytesOnDisk: number;
  readonly isWhole: boolean;
  /** What an engine opens: a folder, or the first file. It finds the other parts by their names. */
  readonly path: string;
}

export interface Manifest {
  readonly name: string;
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly ChosenFile[];
}

const manifestEnding = '.json';
const manifestPattern = /^[^/]+\/(?:[^/]+\.gguf|safetensors)\.json$/i;
const maxEntries = 10_000;

export async function openStore(folder: string): Promise<Store> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return new Store(folder, await readId(folder));
}

export class Store {
  /** Stored in the folder, so that servers on one database know which disk holds which weights. */
  readonly id: string;
  readonly #folder: string;

  constructor(folder: string, id: string) {
    this.#folder = folder;
    this.id = id;
  }

  async list(): Promise<Weights[]> {
    const entries = await readdir(this.#folder, { recursive: true });
    const manifests = entries.filter((entry) => manifestPattern.test(entry)).sort();
    const found: Weights[] = [];
    for (const manifest of manifests.slice(0, maxEntries)) {
      const weights = await readManifest(this.#folder, manifest);
      if (weights !== undefined) found.push(weights);
    }
    return found;
  }

  /** Undefined if nothing of it is on disk, not even a partial file. */
  async find(name: string): Promise<Weights | undefined> {
    // Looked up in the list, so that a name from outside is only ever compared and never becomes a path.
    return (await this.list()).find((weights) => weights.name === name);
  }

  /** Reports which of the manifest's files are already on disk. */
  async inspect(manifest: Manifest): Promise<Weights> {
    const there = await readManifest(this.#folder, `${manifest.name}${manifestEnding}`);
    const known = new Map(there?.files.map((file) => [file.path, toChecksum(file)]));
    return toWeights(this.#folder, manifest, (file) => known.get(file.path) === toChecksum(file));
  }

  /** Writes the manifest, so that the weights are listed from now on. Deletes files of any other version. */
  async prepare(manifest: Manifest): Promise<Weights> {
    const weights = await this.inspect(manifest);
    const folder = isFolder(weights.name) ? weights.path : dirname(weights.path);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const file of weights.files) if (file.bytesOnDisk === 0) await removeFile(file);
    const { repo, commit, files } = manifest;
    const text = `${JSON.stringify({ repo, commit, files }, null, 2)}\n`;
    await replace(join(this.#folder, `${weights.name}${manifestEnding}`), text);
    return weights;
  }

  /** Deletes partial files. If no file is complete, deletes the weights altogether. */
  async removeParts(weights: Weights): Promise<void> {
    for (const { part } of weights.files) await rm(part, { force: true });
    const left = await toWeights(this.#folder, weights);
    if (left.bytesOnDisk === 0) await this.#forget(weights);
  }

  async remove(weights: Weights): Promise<void> {
    for (const file of weights.files) await removeFile(file);
    await this.#forget(weights);
  }

  /** Removes the manifest last, so that an interrupted removal stays visible and can be repeated. */
  async #forget({ name, path }: Weights): Promise<void> {
    // An engine may have written there.
    if (isFolder(name)) await rm(path, { recursive: true, force: true });
    await rm(join(this.#folder, `${name}${manifestEnding}`), { force: true });
    await rmdir(dirname(path)).catch(() => {});
  }
}

async function toWeights(
  folder: string,
  { name, repo, commit, files }: Manifest,
  isSame = (_file: ChosenFile) => true,
): Promise<Weights> {
  const stored = await Promise.all(
    files.map(async (file): Promise<StoredFile> => {
      const target = isFolder(name)
        ? join(folder, name, file.path)
        : join(folder, dirname(name), flatten(file.path));
      const part = `${target}.part`;
      const isWhole = isSame(file) && (await sizeOf(target)) === file.size;
      const partBytes = isSame(file) ? Math.min(await sizeOf(part), file.size) : 0;
      const bytesOnDisk = isWhole ? file.size : partBytes;
      return { ...file, target, part, isWhole, bytesOnDisk };
    }),
  );
  const [first] = stored;
  if (first === undefined) throw new Error('weights without a file');
  return {
    name,
    repo,
    commit,
    files: stored,
    bytes: stored.reduce((sum, { size }) => sum + size, 0),
    bytesOnDisk: stored.reduce((sum, { bytesOnDisk }) => sum + bytesOnDisk, 0),
    isWhole: stored.every(({ isWhole }) => isWhole),
    path: isFolder(name) ? join(folder, name) : first.target,
  };
}

async function removeFile({ target, part }: StoredFile): Promise<void> {
  await rm(target, { force: true });
  await rm(part, { force: true });
}

async function readManifest(folder: string, file: string): Promise<Weights | undefined> {
  const manifest = await readFile(join(folder, file), 'utf8').then(findManifest, () => undefined);
  const name = file.slice(0, -manifestEnding.length);
  return manifest === undefined ? undefined : toWeights(folder, { ...manifest, name });
}

/** A damaged manifest is ignored, because it must not keep the server from starting. */
function findManifest(text: string): Omit<Manifest, 'name'> | undefined {
  try {
    const { repo, commit, files } = JSON.parse(text) as Manifest;
    const isSound = typeof repo === 'string' && Array.isArray(files) && files.length > 0;
    return isSound ? { repo, commit, files } : undefined;
  } catch {
    return undefined;
  }
}

const toChecksum = ({ sha256, gitId }: ChosenFile) => sha256 ?? gitId;

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function replace(path: string, text: string): Promise<void> {
  const fresh = `${path}.${newId()}`;
  await writeFile(fresh, text, { mode: 0o600, flush: true });
  await rename(fresh, path);
}

/** Hard-links a complete file, which is atomic even if several servers start on this folder at once. */
async function readId(folder: string): Promise<string> {
  const file = join(folder, 'store-id');
  const fresh = `${file}.${newId()}`;
  await writeFile(fresh, newId(), { mode: 0o600, flush: true });
  await link(fresh, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(fresh);
  return (await readFile(file, 'utf8')).trim();
}
