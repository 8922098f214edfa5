// Builds the npm package in dist/: the sources without their types, because Node strips none under node_modules, the
// dashboard and the guide. A clone runs the sources and needs no build. `npm run package` runs it and packs the folder.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { toBuildFolder, toHelpFolder } from '#server/dashboard-build.ts';

const root = join(import.meta.dirname, '..');
const target = join(root, 'dist');

/** Copied as they are. The launcher finds `src/main.js` here as it does in a clone. */
const copied = [
  ...['CHANGELOG.md', 'LICENSE', 'NOTICE', 'README.md', 'SECURITY.md', 'docs', 'millrace'],
  ...['millrace.example.yaml', 'millrace.schema.json', 'model/README.md'],
  'model/millrace-builtin-23m-q8_0.gguf',
];

/** Its manifest says that it also runs on x64, so that npm would install these 20 MB there. */
const onlyForArm = '@node-llama-cpp/linux-arm64';

rmSync(target, { recursive: true, force: true });
for (const name of copied) cpSync(join(root, name), join(target, name), { recursive: true });
buildSources();
execFileSync(process.execPath, [join(root, 'web/build.ts')], { stdio: 'inherit' });
cpSync(toBuildFolder(), join(target, 'src/dashboard'), { recursive: true });
cpSync(toHelpFolder(), join(target, 'src/help'), { recursive: true });
writeJson('package.json', toManifest(readJson('package.json')));

function buildSources(): void {
  const source = join(root, 'src');
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.endsWith('.md')) continue;
    const file = join(entry.parentPath, entry.name);
    const to = join(target, 'src', relative(source, file));
    mkdirSync(dirname(to), { recursive: true });
    if (/\.[jt]s$/.test(file)) writeFileSync(to.replace(/\.ts$/, '.js'), toJavaScript(file));
    else cpSync(file, to);
  }
}

function toJavaScript(file: string): string {
  const text = readFileSync(file, 'utf8');
  const plain = file.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
  return plain.replaceAll(/(['"](?:#|\.{1,2}\/)[\w./-]+)\.ts(['"])/g, '$1.js$2');
}

type Json = Record<string, unknown>;

function readJson(name: string): Json {
  return JSON.parse(readFileSync(join(root, name), 'utf8')) as Json;
}

function writeJson(name: string, value: Json): void {
  writeFileSync(join(target, name), `${JSON.stringify(value, null, 2)}\n`);
}

/** The clone's manifest is private, because its sources can't run where npm installs it. */
function toManifest(manifest: Json): Json {
  const { private: _, scripts, devDependencies, files, overrides, ...rest } = manifest;
  const { [onlyForArm]: __, ...optionalDependencies } = rest.optionalDependencies as Json;
  return { ...rest, optionalDependencies, imports: { '#*': './src/*' } };
}
