// Adds Scalar's API reference to docs.html as a script of its own. The package carries a build for browsers, with all
// it needs; the sources it is built from would bring 270 more packages. The script takes seconds to load and run, so
// the page has the introduction as HTML until the reference replaces it.

import { createHash } from 'node:crypto';
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import ReactMarkdown from 'react-markdown';
import remarkGfm from 'remark-gfm';
import type { Plugin } from 'vite';
import { introduction, title } from '#server/openapi/introduction.ts';

const page = 'docs.html';

export async function apiReference(): Promise<Plugin> {
  const source = await readScript();
  const hash = createHash('sha256').update(source).digest('base64url').slice(0, 8);
  const fileName = `assets/scalar-${hash}.js`;
  return {
    name: 'api-reference',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName, source });
    },
    transformIndexHtml: (html, { filename }) =>
      filename.endsWith(page)
        ? {
            html: html.replace(empty, () => renderIntroduction() + empty),
            tags: [{ tag: 'script', attrs: { src: `/${fileName}`, defer: true } }],
          }
        : undefined,
  };
}

/** Stays empty: the reference would take what is inside for its own rendering. */
const empty = '<div id="reference"></div>';

function renderIntroduction(): string {
  const text = createElement(ReactMarkdown, { remarkPlugins: [remarkGfm] }, introduction);
  return renderToStaticMarkup(
    createElement('main', { className: 'introduction' }, createElement('h1', {}, title), text),
  );
}

async function readScript(): Promise<string> {
  const app = Fastify();
  await app.register(scalar, { routePrefix: '/', configuration: { content: {} } });
  const { statusCode, body } = await app.inject('/js/scalar.js');
  await app.close();
  if (statusCode !== 200) throw new Error('The package of the API reference has no script.');
  return body;
}
