// The entry point: checks the Node version, then hands argv to the CLI. It is plain JavaScript so that an old
// Node can run it and print the error below.

import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

const [major = 0] = process.versions.node.split('.').map(Number);
if (major < 24) {
  console.error(
    `Millrace needs Node 24 or later, but this is Node ${process.versions.node}. Run "npm ci", then start Millrace ` +
      'with "npm start" or "./millrace". They find a Node that is new enough.',
  );
  process.exit(1);
}

// Caches the stripped and compiled sources. Later starts take 30 MB and half a second less. Portable, because machines
// see the same files under another path.
const directory = fileURLToPath(new URL('../node_modules/.cache/millrace', import.meta.url));
enableCompileCache({ directory, portable: true });

await import('#lib/memory/v8-tick-shape-workaround.ts');
const { runCli } = await import('#cli/program.ts');
const exitCode = await runCli(process.argv);
// An exit drops what a pipe has not taken yet.
await Promise.all([flush(process.stdout), flush(process.stderr)]);
process.exit(exitCode);

/** Resolves once everything is written, or the reader has closed its end. */
function flush(/** @type {NodeJS.WriteStream} */ stream) {
  return new Promise((done) => {
    stream.once('error', done);
    stream.write('', done);
  });
}
