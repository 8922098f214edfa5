// Serves the dashboard and the API reference: a page for each, and their hashed assets. The pages only change the part
// of their URL after the #, so the APIs refuse every other unknown path.

import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, isAbsolute, join } from 'node:path';
import staticFiles from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { programName } from '#config/environment.ts';
import { unknownUrl } from '#lib/errors.ts';
import { type DashboardBuild, noncePlaceholder } from './dashboard-build.ts';

type Page = 'index' | 'docs';

export async function dashboardRoutes(app: FastifyInstance, build: DashboardBuild): Promise<void> {
  // Every response names its folder. A package doesn't have `web/`, and a missing root would be logged as a warning.
  await app.register(staticFiles, {
    serve: false,
    preCompressed: true,
    cacheControl: false,
  });
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers({
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
    done();
  });

  let built: { folder: string; pages: Record<Page, string>; assets: Set<string> } | undefined;
  function findBuilt() {
    const folder = build.find();
    if (folder === null) return undefined;
    built ??= {
      folder,
      pages: {
        index: nameProgram(readFileSync(join(folder, 'index.html'), 'utf8')),
        docs: readFileSync(join(folder, 'docs.html'), 'utf8'),
      },
      assets: new Set(readdirSync(join(folder, 'assets'))),
    };
    return built;
  }

  const pageAt = (url: string, name: Page) =>
    app.get(url, (request, reply) => {
      const { pages } = findBuilt() ?? {};
      // Clients that look for Ollama ask for this text. Browsers name the type that they want.
      if (url === '/' && !request.headers.accept?.includes('text/html'))
        reply.type('text/plain; charset=utf-8').send('Ollama is running');
      else if (pages === undefined) sendWaitingPage(reply, 'dashboard', build.hasFailed());
      else sendPage(reply, pages[name], styles[name]);
    });
  pageAt('/', 'index');
  pageAt('/docs', 'docs');
  // Clients of the original cloud look for its description here.
  pageAt('/api/v1/docs', 'docs');
  app.get('/favicon.svg', (request, reply) => {
    const { folder } = findBuilt() ?? {};
    if (folder === undefined) throw unknownUrl('GET', request.url);
    return reply.header('cache-control', 'public, max-age=86400').sendFile('favicon.svg', folder);
  });
  app.get<{ Params: { name: string } }>('/assets/:name', ({ params, url }, reply) => {
    const { folder, assets } = findBuilt() ?? {};
    if (folder === undefined || !assets?.has(params.name)) throw unknownUrl('GET', url);
    return reply
      .header('cache-control', 'public, max-age=31536000, immutable')
      .sendFile(params.name, join(folder, 'assets'));
  });
}

/** Tells the dashboard how commands begin on this computer. Visitors are not told the folder of an absolute path. */
function nameProgram(page: string): string {
  const name = programName();
  const shown = (isAbsolute(name) ? basename(name) : name).replaceAll(/[&"<>]/g, '');
  const meta = (content: string) => `<meta name="millrace-program" content="${content}"`;
  return page.replace(meta('millrace'), () => meta(shown));
}

/** Which styles a page may have besides those from files. Scalar writes style attributes, which can't carry a nonce. */
const styles: Record<Page, string> = {
  index: `'nonce-${noncePlaceholder}'`,
  docs: "'unsafe-inline'",
};

/** Allows scripts from files only. Styles that components create at runtime carry the response's nonce. */
function sendPage(reply: FastifyReply, page: string, style: string): void {
  const nonce = randomBytes(16).toString('base64');
  reply
    .headers({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-security-policy':
        `default-src 'none'; script-src 'self'; style-src 'self' ${style.replace(noncePlaceholder, nonce)}; ` +
        "img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
        "frame-ancestors 'none'",
    })
    .send(page.replaceAll(noncePlaceholder, nonce));
}

const waitingStyle =
  ':root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}' +
  'body{max-width:32rem;margin:20vh auto 0;padding:0 1rem}';

/** What a browser shows at an address that leads nowhere. Other clients get an error. */
export function sendUnknownPage(reply: FastifyReply): void {
  const nonce = randomBytes(16).toString('base64');
  reply
    .code(404)
    .headers({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': `default-src 'none'; style-src 'nonce-${nonce}'; base-uri 'none'; frame-ancestors 'none'`,
    })
    .send(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page not found · Millrace</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="${nonce}">${waitingStyle}</style></head>
<body><main><h1>Page not found</h1><p>There is nothing at this address. Go to the
<a href="/">dashboard</a>, the <a href="/help/">guide</a> or the <a href="/docs">API reference</a>.</p></main>
</body></html>`,
    );
}

export function sendWaitingPage(
  reply: FastifyReply,
  what: 'dashboard' | 'guide',
  failed: boolean,
): void {
  const nonce = randomBytes(16).toString('base64');
  const [title, text] = failed
    ? [
        `The ${what} is not available`,
        'It could not be built; the server’s log says why. <code>npm ci &amp;&amp; npm run build:web</code> ' +
          'builds it by hand. Both APIs work meanwhile.',
      ]
    : [
        `The ${what} is being prepared`,
        'This happens once, on the first start. It takes a few seconds, or a minute or two if the build tools must be ' +
          'downloaded. The page opens by itself. Both APIs work already.',
      ];
  // A script rather than a refresh header: only a reload keeps the part after the #, such as an invitation.
  reply
    .code(503)
    .headers({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'retry-after': '2',
      'content-security-policy': `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; base-uri 'none'; frame-ancestors 'none'`,
    })
    .send(
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Millrace</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style nonce="${nonce}">${waitingStyle}</style></head>
<body><main><h1>${title}</h1><p>${text}</p></main>
<script nonce="${nonce}">setTimeout(() => location.reload(), ${failed ? 10_000 : 1500})</script>
</body></html>`,
    );
}
