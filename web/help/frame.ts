// The HTML around each page of the guide: the bar at the top, the list of pages, the page's outline and the search.

import { chapters } from './chapters.ts';
import { type RenderedPage, toAddress } from './page.ts';

/** Addresses of the built files, relative to the guide. */
export interface Assets {
  colorScheme: string;
  script: string;
  styles: string[];
  /** The font of all texts, which the browser would ask for only after it has read the styles. */
  font: string;
  sections: string;
}

/** Links from the bar to the server's other pages. A guide that is published by itself has none. */
const serverLinks = [
  ['Dashboard', '/'],
  ['API reference', '/docs'],
] as const;

interface FrameOptions {
  name: string;
  assets: Assets;
  onServer: boolean;
}

export const renderFrame = (
  page: RenderedPage,
  { name, assets, onServer }: FrameOptions,
): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${toTitle(page.title, name)}</title>
<meta name="description" content="${escapeHtml(page.description)}">
<link rel="icon" type="image/svg+xml" href="favicon.svg">
<script src="${assets.colorScheme}"></script>
<link rel="preload" href="${assets.font}" as="font" type="font/woff2" crossorigin>
${assets.styles.map((href) => `<link rel="stylesheet" href="${href}">`).join('\n')}
<script type="module" src="${assets.script}"></script>
</head>
<body>
<a class="skip-link" href="#page">Skip to the page</a>
${renderBar(onServer)}
<div class="columns">
<nav id="pages" popover aria-label="Pages">${chapters.map((one) => renderChapter(one, name)).join('')}</nav>
<main id="page" tabindex="-1">${page.html}</main>
${renderOutline(page)}
</div>
${renderSearch(assets.sections)}
</body>
</html>
`;

const toTitle = (title: string, name: string) =>
  name === 'index' ? `${escapeHtml(title)} guide` : `${escapeHtml(title)} · Millrace`;

const renderBar = (onServer: boolean) => `<header class="bar">
<button class="open-pages" popovertarget="pages">Menu</button>
<a class="home" href="./"><img src="favicon.svg" alt="" width="24" height="24">Millrace</a>
<button class="open-search" data-needs-script hidden>Search <kbd>Ctrl K</kbd></button>
${onServer ? `<nav class="server-links" aria-label="Server">${serverLinks.map(([text, href]) => `<a href="${href}">${text}</a>`).join('')}</nav>` : ''}
<button id="color-scheme" data-needs-script hidden aria-label="Switch between light and dark"></button>
</header>`;

const renderChapter = ({ text, items }: (typeof chapters)[number], current: string) =>
  `<h2>${text}</h2><ul>${items.map((one) => renderItem(one, current)).join('')}</ul>`;

const renderItem = ({ text, name }: { text: string; name: string }, current: string) =>
  `<li><a href="${toAddress(name)}"${name === current ? ' aria-current="page"' : ''}>${text}</a></li>`;

function renderOutline({ headings }: RenderedPage): string {
  const shown = headings.filter(({ level }) => level === 2 || level === 3);
  if (shown.length < 2) return '';
  const items = shown.map(
    ({ level, id, text }) =>
      `<li class="level-${level}"><a href="#${id}">${escapeHtml(text)}</a></li>`,
  );
  return `<nav class="outline" aria-labelledby="outline"><h2 id="outline">On this page</h2><ul>${items.join('')}</ul></nav>`;
}

const renderSearch = (
  sections: string,
) => `<dialog id="search" aria-label="Search" data-sections="${sections}">
<div class="panel">
<input type="text" role="combobox" aria-label="Search the guide" aria-autocomplete="list" aria-expanded="false"
 aria-controls="found" placeholder="Search the guide" maxlength="100" autocomplete="off" spellcheck="false">
<p role="status"></p>
<div id="found" role="listbox" aria-label="Results"></div>
</div>
</dialog>`;

const escapeHtml = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
