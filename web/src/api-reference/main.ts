// The API reference: Scalar's component, which a script of its own defines, without anything from other hosts.

import './style.css';

interface Scalar {
  createApiReference(selector: string, configuration: object): void;
}

const url = location.pathname.replace(/docs\/?$/, 'openapi.json');
document.querySelector('#description')?.setAttribute('href', url);

(window as unknown as { Scalar: Scalar }).Scalar.createApiReference('#reference', {
  url,
  theme: 'none',
  ...toDarkMode(),
  // Scalar's own services stay out: fonts, proxy, telemetry, agent and hosted client.
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: 'never',
  hideClientButton: true,
  agent: { disabled: true },
  mcp: { disabled: true },
  // The description has its own examples.
  hiddenClients: true,
  documentDownloadType: 'none',
  metaData: { title: 'Millrace API' },
});
completePage();

/** What the dashboard is set to. The system decides if it is not set. */
function toDarkMode(): { darkMode?: boolean } {
  const scheme = localStorage.getItem('mantine-color-scheme-value');
  return scheme === 'dark' || scheme === 'light' ? { darkMode: scheme === 'dark' } : {};
}

/** Removes the introduction once the reference shows it. Adds what screen readers need and Scalar leaves out: names of
 * copy buttons, and the state of the search box. Its cards of responses all have the same name, so they are no landmarks. */
function completePage(): void {
  const complete = () => {
    if (document.querySelector('#reference h1')) document.querySelector('.introduction')?.remove();
    for (const card of document.querySelectorAll('.scalar-card[role="region"]')) {
      card.setAttribute('role', 'group');
    }
    for (const button of document.querySelectorAll('[class*="/copy-button"]:not([aria-label])')) {
      button.setAttribute('aria-label', 'Copy');
    }
    for (const box of document.querySelectorAll('[role="combobox"]:not([aria-expanded])')) {
      box.setAttribute('aria-expanded', 'true');
    }
  };
  new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
}
