// Applies the color scheme that was chosen in the guide or the dashboard, before the page is painted. Without a choice,
// the page follows the system. The build makes a plain script of this file: it must import nothing.

/** Where the dashboard's component library stores it. */
const storageKey = 'mantine-color-scheme-value';
const dark = matchMedia('(prefers-color-scheme: dark)');

const { dataset } = document.documentElement;
const stored = readStored();
if (stored === 'light' || stored === 'dark') dataset.colorScheme = stored;

document.addEventListener('click', ({ target }) => {
  if (!(target instanceof Element) || target.closest('#color-scheme') === null) return;
  const now = dataset.colorScheme ?? (dark.matches ? 'dark' : 'light');
  dataset.colorScheme = now === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem(storageKey, dataset.colorScheme);
  } catch {
    // The choice lasts for this page.
  }
});

/** A browser that blocks storage throws. */
function readStored(): string | null {
  try {
    return localStorage.getItem(storageKey);
  } catch {
    return null;
  }
}
