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

/** What the packages of Linux were built with. */
const leastGlibc = '2.34';

/** Throws if llama.cpp is not built or not installed for this platform, or does not run on its C library. */
export function findLlamaLibraries(): string {
  const platform = `${process.platform}-${process.arch}`;
  const name = packages[platform];
  if (name === undefined)
    throw new Error(`Models can't run on ${platform}: llama.cpp is not built for it.`);
  const glibc = findGlibc();
  if (process.platform === 'linux' && !isAtLeast(glibc, leastGlibc))
    throw new Error(
      `Models can't run here: llama.cpp needs glibc ${leastGlibc} or later, and this system has ${glibc || 'none'}.`,
    );
  try {
    const entry = fileURLToPath(import.meta.resolve(`@node-llama-cpp/${name}`));
    return join(dirname(entry), '..', 'bins', name);
  } catch {
    throw new Error(
      `llama.cpp is not installed. Run \`npm install --global @node-llama-cpp/${name}@${llamaVersion}\`, or \`npm ci\` in a clone.`,
    );
  }
}

/** Why no model runs on this computer; empty if nothing is known to prevent it. */
export function findModelObstacle(): string {
  try {
    findLlamaLibraries();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

/** The version of the GNU C library, such as `2.36`; empty on a system with another one. */
function findGlibc(): string {
  // With the network, a report looks up the names of all connected addresses, and waits for them.
  Object.assign(process.report, { excludeNetwork: true });
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime ?? '';
}

function isAtLeast(version: string, least: string): boolean {
  return version.localeCompare(least, 'en', { numeric: true }) >= 0;
}

/** The release of llama.cpp, such as `v0.5.0`. GPU kernels must be of the same one. */
export function readLlamaRelease(): string {
  const text = readFileSync(join(findLlamaLibraries(), '_nlcBuildMetadata.json'), 'utf8');
  const metadata = JSON.parse(text) as { buildOptions: { llamaCpp: { release: string } } };
  return metadata.buildOptions.llamaCpp.release;
}
