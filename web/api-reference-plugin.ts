// Adds Scalar's API reference to docs.html as a script of its own. The package carries a build for browsers, with all
// it needs; the sources it is built from would bring 270 more packages.

import { createHash } from 'node:crypto';
import scalar from '@scalar/fastify-api-reference';
import Fastify from 'fastify';
import type { Plugin } from 'vite';

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
    transformIndexHtml: (_html, { filename }) =>
      filename.endsWith(page)
        ? [{ tag: 'script', attrs: { src: `/${fileName}`, defer: true } }]
        : undefined,
  };
}

async function readScript(): Promise<string> {
  const app = Fastify();
  await app.register(scalar, { routePrefix: '/', configuration: { content: {} } });
  const { statusCode, body } = await app.inject('/js/scalar.js');
  await app.close();
  if (statusCode !== 200) throw new Error('The package of the API reference has no script.');
  return body;
}
