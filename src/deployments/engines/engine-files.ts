// Checks what an engine is started with, its program and its weights, as far as they are on this computer. What is missing
// or unsound now is so at the next start too.

import { access, constants, readdir, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import { checkModelFiles, GgufError } from '#inference/gguf-check.ts';
import { type Failure, toFailure } from './engine.ts';
import { systemPath } from './engine-process.ts';
import { ownProgram, recipes } from './recipes.ts';

/** The setting that names something of no use, and why no engine starts with it. */
export interface Flaw extends Failure {
  readonly setting: 'program' | 'source';
}

/** Thrown by a start that would fail each time. */
export class FlawedStart extends Error {
  readonly failure: Failure;

  constructor(flaw: Flaw) {
    super(flaw.reason);
    this.failure = flaw;
  }
}

type Started = Pick<DeploymentSpec, 'engine' | 'program' | 'source' | 'env' | 'runs_on'>;

/** Undefined if there is none. Weights that are not on this computer may be inside the machine. */
export async function findFlaw(spec: DeploymentSpec): Promise<Flaw | undefined> {
  const isHere = spec.runs_on === 'host';
  if (isHere && !(await hasProgram(spec)))
    return toFlaw('program', 'Its program was not found.', toAdvice(toProgram(spec)));
  const { source, engine } = spec;
  // Only the program knows what its weights are.
  if (source === null || !isAbsolute(source) || engine === 'command') return undefined;
  const found = await stat(source).catch(() => null);
  if (found === null)
    return isHere
      ? toFlaw('source', 'There are no such weights.', `It names ${source}.`)
      : undefined;
  const takesFolders = engine === 'vllm' || engine === 'sglang';
  if (found.isDirectory() && takesFolders) return findFolderFlaw(source);
  if (takesFolders && !source.endsWith('.gguf')) return undefined;
  try {
    await checkModelFiles(source);
    return undefined;
  } catch (error) {
    const detail = error instanceof GgufError ? error.message : "can't be read";
    return toFlaw('source', 'The weights are not a sound GGUF file.', `${source} ${detail}.`);
  }
}

/** Whether an engine's own program is on this computer. */
export const hasProgram = async (spec: Started): Promise<boolean> => {
  const program = toProgram(spec);
  const folders = (spec.env.PATH ?? systemPath).split(':');
  const paths = isAbsolute(program) ? [program] : folders.map((folder) => join(folder, program));
  const found = paths.map((path) =>
    access(path, constants.X_OK).then(
      () => true,
      () => false,
    ),
  );
  return (await Promise.all(found)).includes(true);
};

/** The arguments do not matter. */
const toProgram = (spec: Started): string => {
  const place = { port: 0, key: '', millrace: ownProgram };
  const unset = { model: '', args: [], ladder: { asleep: null, stopped: null, gone: null } };
  return recipes[spec.engine].toCommand({ ...spec, ...unset } as never, place)[0] ?? '';
};

const toAdvice = (program: string) =>
  `${program || 'It'} is not an executable file of the server's computer. Install it, or name its absolute path.`;

async function findFolderFlaw(folder: string): Promise<Flaw | undefined> {
  const names = await readdir(folder).catch((): string[] => []);
  if (names.includes('config.json') || names.some((name) => name.endsWith('.gguf')))
    return undefined;
  return toFlaw('source', 'The weights are not those of a model.', `${folder} has no config.json.`);
}

const toFlaw = (setting: Flaw['setting'], publicMessage: string, detail: string): Flaw => ({
  ...toFailure(publicMessage, detail),
  isPermanent: true,
  setting,
});
