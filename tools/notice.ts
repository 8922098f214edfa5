// Writes NOTICE: the licences of everything that a release contains besides Millrace's own code, which is every
// production dependency and every package in the dashboard's bundle. Run it by `npm run notice`.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');

interface LockedPackage {
  version: string;
  license?: string;
  dev?: boolean;
  /** Set if the package is only installed on some computers. */
  os?: string[];
  cpu?: string[];
  dependencies?: Record<string, string>;
}

interface Listed {
  /** Name and version. */
  title: string;
  licence: string;
  /** Empty if the package contains none, or is not installed on every computer. */
  text: string;
}

export function renderNotice(): string {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const packages = new Map(Object.entries(lock.packages as Record<string, LockedPackage>));
  const production = [...packages].filter(([path, { dev }]) => path !== '' && dev !== true);
  const paths = new Set([...production.map(([path]) => path), ...findBundled(packages)]);
  const listed = [...paths].map((path) => toListed(path, packages.get(path) as LockedPackage));
  const unique = [...new Map(listed.map((one) => [one.title, one])).values()];
  unique.sort((a, b) => (a.title < b.title ? -1 : 1));
  const table = unique.map(({ title, licence }) => `  ${title}: ${licence}\n`).join('');
  return `${opening}\n${table}\n${renderTexts(unique)}`;
}

const opening = `Millrace
Licensed under the Apache License, Version 2.0. See LICENSE.

This file is written by \`npm run notice\`. It lists the third-party packages that Millrace installs or serves to
browsers, and their licences. The built-in model has its own card in model/.
`;

/** Packages that the dashboard and the other pages import, and their dependencies: browsers receive copies of them. */
function findBundled(packages: ReadonlyMap<string, LockedPackage>): Set<string> {
  const found = new Set<string>();
  const visit = (from: string, name: string) => {
    const path = resolve(packages, from, name);
    if (path === undefined || found.has(path)) return;
    found.add(path);
    for (const next of Object.keys(packages.get(path)?.dependencies ?? {})) visit(path, next);
  };
  for (const file of listSources()) {
    const text = readFileSync(file, 'utf8');
    const imports = /(?:from|import)\s*\(?['"]((?:@[\w-]+\/)?[a-z][\w-]*)/g;
    for (const [, name] of text.matchAll(imports)) visit('', name as string);
  }
  // The build takes the script of the API reference from this package. What the package depends on is not in it.
  found.add('node_modules/@scalar/fastify-api-reference');
  return found;
}

/** What the dashboard and the guide run in browsers, and their styles. */
const listSources = () =>
  ['web/src', 'web/help/browser'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /\.(?:tsx?|css)$/.test(file))
      .map((file) => join(root, folder, file)),
  );

/** The package that `name` means to the package at `from`: the nearest one on the way up. */
function resolve(
  packages: ReadonlyMap<string, LockedPackage>,
  from: string,
  name: string,
): string | undefined {
  const path = `${from === '' ? '' : `${from}/`}node_modules/${name}`;
  if (packages.has(path) || from === '') return packages.has(path) ? path : undefined;
  return resolve(packages, from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), name);
}

function toListed(path: string, locked: LockedPackage): Listed {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const everywhere = locked.os === undefined && locked.cpu === undefined;
  const folder = join(root, path);
  return {
    title: `${name} ${locked.version}`,
    licence: locked.license ?? readLicence(folder),
    text: everywhere && existsSync(folder) ? readTexts(folder) : '',
  };
}

/** Old packages name their licence in a list. */
function readLicence(folder: string): string {
  const { licenses } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return (licenses as { type: string }[]).map(({ type }) => type).join(' OR ');
}

function readTexts(folder: string): string {
  const files = readdirSync(folder, { withFileTypes: true })
    .filter((file) => file.isFile() && /^(licen[cs]e|notice|copying)/i.test(file.name))
    .map(({ name }) => name)
    .sort();
  const texts = files.map((name) => readFileSync(join(folder, name), 'utf8'));
  return texts
    .map((text) =>
      text
        .replaceAll('\r', '')
        .replaceAll(/[ \t]+$/gm, '')
        .trim(),
    )
    .join('\n\n');
}

/** Each text once, below the packages that it belongs to. */
function renderTexts(listed: readonly Listed[]): string {
  const titles = new Map<string, string[]>();
  for (const { title, text } of listed) {
    if (text !== '') titles.set(text, [...(titles.get(text) ?? []), title]);
  }
  const line = '-'.repeat(80);
  return [...titles].map(([text, of]) => `${line}\n${of.join(', ')}\n\n${text}\n`).join('\n');
}

if (import.meta.main) writeFileSync(join(root, 'NOTICE'), renderNotice());
