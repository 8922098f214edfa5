// Writes the guide, the pages of docs/ as a site of plain files. All addresses are relative, so that it can be published
// at any path. Vite builds its styles and scripts.

import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Rolldown } from 'vite';
import { type Assets, renderFrame } from './frame.ts';
import type { RenderedPage } from './page.ts';
import { renderPage } from './rendered-page.ts';

const docs = join(import.meta.dirname, '../../docs');
const browser = join(import.meta.dirname, 'browser');

/** A guide that a server serves links to the server's other pages. */
export async function buildGuide(outDir: string, onServer: boolean): Promise<void> {
  const pages = await renderPages();
  const sections = JSON.stringify([...pages.values()].flatMap((page) => page.sections));
  const hash = createHash('sha256').update(sections).digest('base64url').slice(0, 8);
  const assets = { ...(await buildAssets(outDir)), sections: `assets/sections-${hash}.json` };
  await mkdir(join(outDir, 'assets'), { recursive: true });
  await writeFile(join(outDir, assets.sections), sections);
  for (const [name, page] of pages) {
    await writeFile(join(outDir, `${name}.html`), renderFrame(page, { name, assets, onServer }));
  }
}

/** By their names, which are those of the files without the extension. */
export async function renderPages(): Promise<Map<string, RenderedPage>> {
  const files = (await readdir(docs)).filter((file) => file.endsWith('.md')).sort();
  const pages = new Map<string, RenderedPage>();
  for (const file of files) {
    const name = file.slice(0, -'.md'.length);
    const markdown = await readFile(join(docs, file), 'utf8');
    pages.set(
      name,
      renderPage(markdown, name, (path) => files.includes(path)),
    );
  }
  return pages;
}

async function buildAssets(outDir: string): Promise<Omit<Assets, 'sections'>> {
  const built = await build({
    configFile: false,
    root: browser,
    base: './',
    publicDir: join(import.meta.dirname, '../public'),
    logLevel: 'warn',
    build: {
      outDir,
      // Both callers name a folder of their own, which is outside of the root.
      emptyOutDir: true,
      target: 'es2023',
      // As for the dashboard: rewritten light-dark() would ignore a color scheme that is set at run time.
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      assetsInlineLimit: 0,
      modulePreload: false,
      reportCompressedSize: false,
      rolldownOptions: { input: [join(browser, 'guide.ts'), join(browser, 'color-scheme.ts')] },
    },
  });
  const files = (built as Rolldown.RolldownOutput).output.map(({ fileName }) => fileName);
  const findAll = (pattern: RegExp) => files.filter((file) => pattern.test(file));
  const find = (pattern: RegExp) => {
    const [file] = findAll(pattern);
    if (file === undefined) throw new Error(`The build has no file like ${pattern}.`);
    return file;
  };
  return {
    colorScheme: find(/color-scheme-.*\.js$/),
    script: find(/guide-.*\.js$/),
    styles: findAll(/\.css$/),
    font: find(/geist-latin-wght-normal.*\.woff2$/),
  };
}
