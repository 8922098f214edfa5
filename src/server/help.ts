// Serves the guide at /help: pages built from docs/, with a search that runs in the browser.

import { readdirSync } from 'node:fs';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { unknownUrl } from '#lib/errors.ts';
import { sendWaitingPage } from './dashboard.ts';
import type { DashboardBuild } from './dashboard-build.ts';

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Registered below the dashboard's scope, which brings `sendFile` and headers for browsers. */
export function helpRoutes(app: FastifyInstance, build: DashboardBuild): void {
  let built: { folder: string; files: Set<string> } | undefined;
  function findBuilt() {
    const folder = build.findHelp();
    if (folder === null) return undefined;
    built ??= {
      folder,
      files: new Set(readdirSync(folder, { recursive: true, encoding: 'utf8' })),
    };
    return built;
  }

  app.get('/help', (request, reply) => {
    // The page's own links begin with /help/.
    if (!request.url.startsWith('/help/')) return reply.redirect('/help/');
    return send(request.url, 'index.html', reply);
  });
  app.get<{ Params: { '*': string } }>('/help/*', ({ params, url }, reply) =>
    send(url, params['*'], reply),
  );

  function send(url: string, name: string, reply: FastifyReply) {
    const found = findBuilt();
    if (found === undefined) return sendWaitingPage(reply, 'guide', build.hasFailed());
    const file = found.files.has(`${name}.html`) ? `${name}.html` : name;
    if (!found.files.has(file) || !/\.[a-z0-9]+$/.test(file)) throw unknownUrl('GET', url);
    const isAsset = file.startsWith('assets/');
    return reply
      .headers({
        'cache-control': isAsset ? 'public, max-age=31536000, immutable' : 'no-cache',
        'content-security-policy': policy,
      })
      .sendFile(file, found.folder);
  }
}
