// Builds the dashboard and the API reference. For development run `npx vite web`, with a Millrace server on port 8080.

import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { noncePlaceholder } from '#server/dashboard-build.ts';
import { apiReference } from './api-reference-plugin.ts';
import { earlyRequests } from './early-requests-plugin.ts';

const server = 'http://127.0.0.1:8080';
const pages = ['index.html', 'docs.html'];

/** What every page of the dashboard needs, in one file instead of twenty. The API reference needs none of it. */
const shell = {
  name: 'shell',
  tags: ['$initial' as const],
  test: (id: string) => !/^\0|\.html|api-reference|@scalar|introduction\.ts$/.test(id),
  priority: 2,
};

/** Small modules of several pages, in one file: a browser fetches at most six at a time. Charts are large. */
const shared = {
  name: 'shared',
  minShareCount: 3,
  test: (id: string) =>
    /[\\/]web[\\/]src[\\/]|[\\/]src[\\/]lib[\\/]|@mantine[\\/](core|hooks)|@tabler|@tanstack/.test(
      id,
    ) && !id.includes('usage-chart'),
  priority: 1,
};

export default defineConfig(({ command }) => ({
  plugins: [react(), apiReference(), earlyRequests()],
  html: command === 'build' ? { cspNonce: noncePlaceholder } : {},
  // Nothing is inlined: the content security policy allows no data: scripts or fonts.
  build: {
    target: 'es2023',
    // These browsers support light-dark(). Rewritten for older ones it would ignore a color scheme set at run time.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
    rolldownOptions: {
      input: pages.map((page) => join(import.meta.dirname, page)),
      output: { codeSplitting: { groups: [shell, shared] } },
    },
  },
  server: { proxy: { '/v1': server, '/api': server, '/dashboard': server } },
}));
