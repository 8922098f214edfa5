// VitePress's own theme in the dashboard's type and colors, with links to the rest of the server.

import theme from 'vitepress/theme-without-fonts';
import { h } from 'vue';
import './style.css';

const links = [
  ['Dashboard', '/'],
  ['API reference', '/docs'],
] as const;

export default {
  ...theme,
  // Links of the theme's configuration would lead below /help/.
  Layout: () =>
    h(theme.Layout, null, {
      'nav-bar-content-after': () =>
        links.map(([text, href]) => h('a', { class: 'server-link', href, target: '_self' }, text)),
    }),
};
