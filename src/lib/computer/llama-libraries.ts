// Where npm installed llama.cpp: the package of this platform, with an addon and the libraries beside it.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** As in package.json. */
export const llamaVersion = '3.22.1';

/** Packages by platform. The one for Macs brings Metal. */
const packages: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64',
  'linux-arm64': 'linux-arm64',
  'darwin-arm64': 'mac-arm64-metal',
};

/** Throws if llama.cpp is not built or not installed for this platform. */
export function findLlamaLibraries(): string {
  const platform = `${process.platform}-${process.arch}`;
  const name = packages[platform];
  if (name === undefined)
    throw new Error(`Models can't run on ${platform}: llama.cpp is not built for it.`);
  try {
    const entry = fileURLToPath(import.meta.resolve(`@node-llama-cpp/${name}`));
    return join(dirname(entry), '..', 'bins', name);
  } catch {
    throw new Error(
      `llama.cpp is not installed. Run \`npm install --global @node-llama-cpp/${name}@${llamaVersion}\`, or \`npm ci\` in a clone.`,
    );
  }
}

/** The release of llama.cpp, such as `v0.5.0`. GPU kernels must be of the same one. */
export function readLlamaRelease(): string {
  const text = readFileSync(join(findLlamaLibraries(), '_nlcBuildMetadata.json'), 'utf8');
  const metadata = JSON.parse(text) as { buildOptions: { llamaCpp: { release: string } } };
  return metadata.buildOptions.llamaCpp.release;
}
