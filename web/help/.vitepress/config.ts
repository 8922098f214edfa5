// The guide at /help: the pages of docs/, built by VitePress with a search that needs no service.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitepress';
import { chapters } from './chapters.ts';

const docs = join(import.meta.dirname, '../../../docs');

export default defineConfig({
  srcDir: docs,
  srcExclude: ['contributing/**'],
  base: '/help/',
  title: 'Millrace',
  description: 'A GPU cloud and model API that you run on your own machines.',
  cleanUrls: false,
  // Otherwise each page has an inline script, which the content security policy would have to list.
  metaChunk: true,
  vite: {
    publicDir: join(import.meta.dirname, '../../public'),
    build: { reportCompressedSize: false, assetsInlineLimit: 0 },
    logLevel: 'warn',
  },
  // The home page of the theme has no main landmark.
  transformHtml: (html) => html.replace('class="VPContent is-home"', '$& role="main"'),
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/help/favicon.svg' }]],
  markdown: {
    config: (markdown) => {
      // Links to files of the repository, which the guide has not, become plain text.
      markdown.core.ruler.push('links-outside', ({ tokens, env }) => {
        for (const { children } of tokens) unlink(children ?? [], env.path as string);
      });
    },
  },
  themeConfig: {
    logo: { src: '/favicon.svg', alt: '' },
    search: { provider: 'local' },
    sidebar: chapters,
    outline: [2, 3],
    docFooter: { prev: false, next: false },
  },
});

interface Token {
  type: string;
  tag: string;
  attrs: [string, string][] | null;
  attrGet(name: string): string | null;
}

function unlink(tokens: Token[], page: string): void {
  let isOutside = false;
  for (const token of tokens) {
    if (token.type === 'link_open') {
      const path = (token.attrGet('href') ?? '').split('#')[0] as string;
      const target = join(dirname(page), path);
      isOutside =
        path !== '' &&
        !/^\w+:/.test(path) &&
        (!target.startsWith(`${docs}/`) ||
          target.startsWith(`${docs}/contributing/`) ||
          !existsSync(target));
    }
    if (!isOutside) continue;
    if (token.type === 'link_open' || token.type === 'link_close') {
      token.tag = 'span';
      token.attrs = null;
    }
    if (token.type === 'link_close') isOutside = false;
  }
}
