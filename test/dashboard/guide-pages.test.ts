// The guide's pages as they are rendered and searched, without a browser.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeFolder } from '#test/support/process.ts';
import { findSections, type Section } from '../../web/help/browser/sections.ts';
import { type RenderedPage, toAddress } from '../../web/help/page.ts';

const root = join(import.meta.dirname, '../..');
/** With an import, the types of browsers would apply to all tests and contradict those of Node. */
const load = (file: string) => import(join(root, 'web/help', file));
const { renderPage } = (await load('rendered-page.ts')) as {
  renderPage(markdown: string, name: string, isPage: (path: string) => boolean): RenderedPage;
};
const { renderPages } = (await load('guide.ts')) as {
  renderPages(): Promise<Map<string, RenderedPage>>;
};
const isPage = (path: string) => path === 'models.md' || path === 'index.md';
const render = (markdown: string) => renderPage(markdown, 'page', isPage);

describe('a page of the guide', () => {
  test('has a title, a description, and headings that are links to themselves', () => {
    const page = render('# Limits\n\nWhat `keys` may do.\n\n## A & b\n\nText.\n\n## A & b\n');
    assert.equal(page.title, 'Limits');
    assert.equal(page.description, 'What keys may do.');
    assert.deepEqual(
      page.headings.map(({ id }) => id),
      ['limits', 'a--b', 'a--b-1'],
    );
    assert.match(
      page.html,
      /<h2 id="a--b-1"><a href="#a--b-1" class="anchor">A &amp; b<\/a><\/h2>/,
    );
  });

  test('links to pages, headings and other sites, but to no file that the guide lacks', () => {
    const { html } = render(
      '[a](models.md#prices) [b](index.md) [c](../README.md) [d](#here) [e](https://example.com/x.md)',
    );
    assert.match(html, /<a href="models.html#prices">a<\/a>/);
    assert.match(html, /<a href=".\/">b<\/a>/);
    assert.match(html, /<span>c<\/span>/);
    assert.match(html, /<a href="#here">d<\/a>/);
    assert.match(html, /<a href="https:\/\/example.com\/x.md">e<\/a>/);
  });

  test('has no HTML of its own and no style attribute, which the content security policy refuses', () => {
    const { html } = render(
      '<!-- note -->\n<b>x</b>\n\n| a |\n|--:|\n| <script>alert()</script>b |\n',
    );
    assert.doesNotMatch(html, /<b>|<script|style=|note/);
    assert.match(html, /<td class="align-right">/);
  });

  test('lets code and tables scroll by keyboard, in lists too', () => {
    const { html } = render('- x\n\n  ```sh\n  echo "$A"\n  ```\n\n| a |\n|---|\n| b |\n');
    assert.match(html, /<div class="code"><pre tabindex="0"><code class="hljs language-sh">/);
    assert.match(html, /<div class="table" role="group" aria-label="Table" tabindex="0"><table>/);
    assert.match(html, /<span class="hljs-string">/);
  });

  test('every link of every page leads to a page and a heading of the guide', async () => {
    const pages = await renderPages();
    const targets = new Set(
      [...pages].flatMap(([name, { headings }]) => {
        const address = toAddress(name);
        return [address, ...headings.map(({ id }) => `${address}#${id}`)];
      }),
    );
    const broken = [...pages].flatMap(([name, { html }]) =>
      [...html.matchAll(/<a href="([^"]+)"/g)]
        .map(([, href = '']) => (href.startsWith('#') ? `${name}.html${href}` : href))
        .map((href) => href.replace(/^index.html#/, './#'))
        .filter((href) => !/^[a-z]+:/.test(href) && !targets.has(href)),
    );
    assert.deepEqual(broken, []);
  });
});

describe('the search of the guide', () => {
  const section = (page: string, heading: string, text: string): Section => ({
    page,
    heading,
    text,
    address: `${page}#${heading}`,
  });
  const sections = [
    section('Operations', 'Backup', 'Run a restore drill. The drill is short.'),
    section('Operations', 'Restore drill', 'Once a month.'),
    section('Restore', '', 'A page about archives.'),
    section('Settings', 'server', '`server.peer_url` is the address. restored'),
  ];
  const search = (query: string) => findSections(sections, query).map(({ address }) => address);

  test('finds sections that have all words, and headings before texts', () => {
    assert.deepEqual(search('restore drill'), ['Operations#Restore drill', 'Operations#Backup']);
    assert.deepEqual(search('RESTORE  archives'), ['Restore#']);
    assert.equal(search('restore')[0], 'Restore#');
    assert.deepEqual(search('peer_url'), ['Settings#server']);
    assert.deepEqual(search('drill nothing'), []);
    assert.deepEqual(search('  '), []);
  });

  test('shows at most twenty', () => {
    const many = Array.from({ length: 50 }, (_, index) => section('Page', String(index), 'word'));
    assert.equal(findSections(many, 'word').length, 20);
  });

  test('finds the section about a word in the pages of docs/', async () => {
    const all = [...(await renderPages()).values()].flatMap((page) => page.sections);
    const found = (query: string) => findSections(all, query).map(({ address }) => address);
    assert.equal(found('restore drill')[0], 'operations.html#restore-drill');
    assert.equal(found('claude code')[0], 'claude-code.html');
    assert(found('server.peer_url').includes('settings.html#server'));
  });
});

describe('a published guide', () => {
  const publish = (folder: string) =>
    execFileSync(process.execPath, ['web/help/publish.ts', folder], {
      cwd: root,
      encoding: 'utf8',
      stdio: 'pipe',
    });

  test('has relative addresses alone, and no links to a server', () => {
    const folder = join(makeFolder(), 'site');
    publish(folder);
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const pages = files.filter((file) => file.endsWith('.html'));
    assert(pages.includes('index.html') && pages.includes('models.html'));
    for (const page of pages) {
      const html = readFileSync(join(folder, page), 'utf8');
      assert.deepEqual(html.match(/(?:href|src|data-sections)="\/[^"]*"/g), null, page);
      for (const [, asset] of html.matchAll(/"(assets\/[^"]+|favicon.svg)"/g)) {
        assert(files.includes(asset as string), `${page} names ${asset}`);
      }
    }
    const styles = files.filter((file) => file.endsWith('.css'));
    assert.equal(styles.length, 1);
    const css = readFileSync(join(folder, styles[0] as string), 'utf8');
    assert.doesNotMatch(css, /url\(\/|url\(data:|url\(https?:/);
  });

  test('is not written over other files', () => {
    const folder = makeFolder();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'keep'), '');
    assert.throws(() => publish(folder), /is not empty/);
    assert.deepEqual(readdirSync(folder), ['keep']);
  });
});
