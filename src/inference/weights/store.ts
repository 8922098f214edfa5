// The weights on this machine's disk: a folder per repository, and beside each model's first file a
// manifest that says where it came from and what it must be. A file has its name only once it is whole
// and verified; until then it ends in `.part`.

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
import { type ChosenFile, toStoredName } from './choose.ts';

export interface StoredFile extends ChosenFile {
  /** Where it is, or will be, on disk. */
  readonly target: string;
  /** Where it grows until then. */
  readonly part: string;
  /** 0 to `size`. */
  readonly bytesOnDisk: number;
  readonly isWhole: boolean;
}

export interface Weights {
  /** `owner--repository/file.gguf`; of the first part when there are several. */
  readonly name: string;
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly StoredFile[];
  readonly bytes: number;
  readonly bytesOnDisk: number;
  readonly isWhole: boolean;
  /** What an engine opens: the first file. It finds the other parts by their names. */
  readonly path: string;
}

export interface Manifest {
  readonly repo: string;
  readonly commit: string;
  readonly files: readonly ChosenFile[];
}

export interface Store {
  /** Stays with the folder, so that servers on one database know whose disk holds what. */
  readonly id: string;
  list(): Promise<Weights[]>;
  /** Undefined when there is nothing of it, not even a part. */
  find(name: string): Promise<Weights | undefined>;
  /** What is there already of files that are wanted. */
  inspect(manifest: Manifest): Promise<Weights>;
  /** Writes down what will come: from now on it is listed. What is there of another version goes. */
  prepare(manifest: Manifest): Promise<Weights>;
  /** Leaves what is whole; nothing is left of weights of which no file is. */
  removeParts(weights: Weights): Promise<void>;
  remove(weights: Weights): Promise<void>;
}

const manifestEnding = '.json';
const maxEntries = 10_000;

export async function openStore(folder: string): Promise<Store> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const manifestOf = (name: string) => join(folder, `${name}${manifestEnding}`);

  async function toWeights(
    { repo, commit, files }: Manifest,
    isSame = (_file: ChosenFile) => true,
  ): Promise<Weights> {
    const stored = await Promise.all(
      files.map(async (file): Promise<StoredFile> => {
        const target = join(folder, toStoredName(repo, file.path));
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
      name: toStoredName(repo, first.path),
      repo,
      commit,
      files: stored,
      bytes: stored.reduce((sum, { size }) => sum + size, 0),
      bytesOnDisk: stored.reduce((sum, { bytesOnDisk }) => sum + bytesOnDisk, 0),
      isWhole: stored.every(({ isWhole }) => isWhole),
      path: first.target,
    };
  }

  async function readManifest(file: string): Promise<Weights | undefined> {
    const manifest = await readFile(file, 'utf8').then(findManifest, () => undefined);
    return manifest === undefined ? undefined : toWeights(manifest);
  }

  async function inspect(manifest: Manifest): Promise<Weights> {
    const [first] = manifest.files;
    const name = first === undefined ? '' : toStoredName(manifest.repo, first.path);
    const there = await readManifest(manifestOf(name));
    const known = new Map(there?.files.map(({ path, sha256 }) => [path, sha256]));
    return toWeights(manifest, ({ path, sha256 }) => known.get(path) === sha256);
  }

  async function list(): Promise<Weights[]> {
    const entries = await readdir(folder, { recursive: true });
    const manifests = entries.filter((entry) => entry.endsWith(`.gguf${manifestEnding}`)).sort();
    const found: Weights[] = [];
    for (const manifest of manifests.slice(0, maxEntries)) {
      const weights = await readManifest(join(folder, manifest));
      if (weights !== undefined) found.push(weights);
    }
    return found;
  }

  return {
    id: await readId(folder),
    list,
    // By way of the list, so that a name from outside is only ever compared.
    find: async (name) => (await list()).find((weights) => weights.name === name),

    inspect,
    async prepare(manifest) {
      const weights = await inspect(manifest);
      await mkdir(dirname(weights.path), { recursive: true, mode: 0o700 });
      for (const file of weights.files) if (file.bytesOnDisk === 0) await removeFile(file);
      const { repo, commit, files } = manifest;
      await replace(
        manifestOf(weights.name),
        `${JSON.stringify({ repo, commit, files }, null, 2)}\n`,
      );
      return weights;
    },

    async removeParts(weights) {
      for (const { part } of weights.files) await rm(part, { force: true });
      const left = await toWeights(weights);
      if (left.bytesOnDisk === 0) await forget(weights);
    },

    async remove(weights) {
      for (const file of weights.files) await removeFile(file);
      await forget(weights);
    },
  };

  async function removeFile({ target, part }: StoredFile): Promise<void> {
    await rm(target, { force: true });
    await rm(part, { force: true });
  }

  /** The manifest goes last: until then a removal that was cut short can be seen and repeated. */
  async function forget({ name, path }: Weights): Promise<void> {
    await rm(manifestOf(name), { force: true });
    await rmdir(dirname(path)).catch(() => {});
  }
}

/** One that somebody damaged counts as none, rather than keep the server from starting. */
function findManifest(text: string): Manifest | undefined {
  try {
    const { repo, commit, files } = JSON.parse(text) as Manifest;
    const isSound = typeof repo === 'string' && Array.isArray(files) && files.length > 0;
    return isSound ? { repo, commit, files } : undefined;
  } catch {
    return undefined;
  }
}

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

/** A link appears whole or not at all, whoever else starts on this folder now. */
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
