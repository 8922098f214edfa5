// Builds dist/ for the npm package: the sources without their types, because Node strips none under node_modules, and
// the dashboard. A clone runs the sources and needs no build. `npm run package` runs it.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { toBuildFolder } from '#server/dashboard-build.ts';

const root = join(import.meta.dirname, '..');
const source = join(root, 'src');
const target = join(root, 'dist');

rmSync(target, { recursive: true, force: true });
for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || entry.name.endsWith('.md')) continue;
  const file = join(entry.parentPath, entry.name);
  const to = join(target, relative(source, file));
  mkdirSync(dirname(to), { recursive: true });
  if (!/\.[jt]s$/.test(file)) {
    cpSync(file, to);
    continue;
  }
  const text = readFileSync(file, 'utf8');
  const plain = file.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
  writeFileSync(to.replace(/\.ts$/, '.js'), toBuiltImports(plain, file));
}
execFileSync(process.execPath, [join(root, 'web/build.ts')], { stdio: 'inherit' });
cpSync(toBuildFolder(), join(target, 'dashboard'), { recursive: true });

/** `#lib/clock.ts` becomes a relative path: `#` means the sources, whose files have another extension. */
function toBuiltImports(text: string, file: string): string {
  return text.replaceAll(/(['"])(#|\.{1,2}\/)([\w./-]+)\.ts\1/g, (_, quote, start, path) => {
    const name = start === '#' ? relative(dirname(file), join(source, path)) : `${start}${path}`;
    return `${quote}${name.startsWith('.') ? name : `./${name}`}.js${quote}`;
  });
}
