// How the dashboard is built. Also `npx vite web` for working on it, with a server on port 8080 behind it.

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { noncePlaceholder } from '#server/dashboard-build.ts';

const server = 'http://127.0.0.1:8080';

export default defineConfig(({ command }) => ({
  plugins: [react()],
  html: command === 'build' ? { cspNonce: noncePlaceholder } : {},
  // Nothing inline: the page's policy allows no data: scripts or fonts.
  build: {
    target: 'es2023',
    // All know light-dark(); rewritten for older ones it would miss the scheme that is set while running.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700,
  },
  server: { proxy: { '/v1': server, '/api': server, '/dashboard': server } },
}));
