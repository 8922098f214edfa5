// Lets the dashboard's page request at once what its code would ask for only after it has been loaded and run: the font
// of all texts, and who is signed in.

import type { Plugin } from 'vite';

const page = 'index.html';
const font = /geist-latin-wght-normal.*\.woff2$/;

export const earlyRequests = (): Plugin => ({
  name: 'early-requests',
  transformIndexHtml: {
    order: 'post',
    handler(_html, { filename, bundle }) {
      if (!filename.endsWith(page) || bundle === undefined) return undefined;
      const file = Object.keys(bundle).find((name) => font.test(name));
      if (file === undefined) throw new Error('The build has no font of this name.');
      const preload = (attrs: Record<string, string>) => ({
        tag: 'link',
        attrs: { rel: 'preload', crossorigin: true, ...attrs },
      });
      return [
        preload({ href: '/dashboard/api/me', as: 'fetch' }),
        preload({ href: `/${file}`, as: 'font', type: 'font/woff2' }),
      ];
    },
  },
});
