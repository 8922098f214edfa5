// The search dialog: a field, and the sections that it finds. The sections are loaded when it is opened first.

import { findSections, type Section, toWords } from './sections.ts';

/** How much text of a section is shown before and after the first word found. */
const shownBefore = 40;
const shownAfter = 120;

export function addSearch(): void {
  const dialog = find<HTMLDialogElement>('#search');
  const input = find<HTMLInputElement>('#search input');
  const list = find('#search [role="listbox"]');
  const status = find('#search [role="status"]');
  let sections: Promise<Section[]> | undefined;
  let active = 0;

  function open() {
    if (dialog.open) return;
    dialog.showModal();
    input.select();
    sections ??= load(dialog.dataset.sections ?? '');
    void show();
  }

  async function show() {
    const query = input.value;
    const loaded = await sections?.catch(() => undefined);
    if (loaded === undefined) {
      sections = undefined;
      status.textContent = 'The search could not be loaded. Open it again to retry.';
      return;
    }
    // Another key was pressed while the sections were loading.
    if (query !== input.value) return;
    const found = findSections(loaded, query);
    list.replaceChildren(...found.map((section, index) => toOption(section, index, query)));
    status.textContent = toStatus(query, found.length);
    input.setAttribute('aria-expanded', String(found.length > 0));
    activate(0);
  }

  function activate(index: number) {
    const options = [...list.children];
    active = options.length === 0 ? 0 : (index + options.length) % options.length;
    for (const [at, option] of options.entries()) {
      option.setAttribute('aria-selected', String(at === active));
    }
    options[active]?.scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', options[active]?.id ?? '');
  }

  for (const button of document.querySelectorAll('.open-search')) {
    button.addEventListener('click', open);
  }
  document.addEventListener('keydown', (event) => {
    const isShortcut = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey);
    if (!isShortcut && (event.key !== '/' || dialog.open)) return;
    event.preventDefault();
    open();
  });
  input.addEventListener('input', () => void show());
  input.addEventListener('keydown', (event) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step === undefined && event.key !== 'Enter') return;
    event.preventDefault();
    if (step !== undefined) activate(active + step);
    else (list.children[active] as HTMLElement | undefined)?.click();
  });
  // A result may be on this page, which then stays.
  list.addEventListener('click', () => dialog.close());
  // Only a click beside the dialog's content has the dialog itself as its target.
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog) dialog.close();
  });
}

const find = <T extends HTMLElement>(selector: string) => document.querySelector<T>(selector) as T;

async function load(address: string): Promise<Section[]> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`The search answered ${response.status}.`);
  return response.json();
}

function toStatus(query: string, count: number): string {
  if (query.trim() === '') return 'Type to search all pages.';
  if (count === 0) return `Nothing found for “${query.trim()}”.`;
  return count === 1 ? '1 section' : `${count} sections`;
}

function toOption(section: Section, index: number, query: string): HTMLElement {
  const option = document.createElement('a');
  option.setAttribute('role', 'option');
  option.id = `found-${index}`;
  option.href = section.address;
  option.tabIndex = -1;
  const title = document.createElement('strong');
  title.textContent = section.heading === '' ? section.page : section.heading;
  const page = document.createElement('span');
  page.textContent = section.heading === '' ? '' : section.page;
  const excerpt = document.createElement('small');
  excerpt.append(...toExcerpt(section.text, toWords(query)));
  option.append(title, page, excerpt);
  return option;
}

/** The text around the first word found, with that word marked. */
function toExcerpt(text: string, words: readonly string[]): (string | HTMLElement)[] {
  const lower = text.toLowerCase();
  const [first] = words
    .map((word) => ({ at: lower.indexOf(word), length: word.length }))
    .filter(({ at }) => at !== -1)
    .sort((one, other) => one.at - other.at);
  if (first === undefined) return [cut(text.slice(0, shownAfter), text.length > shownAfter)];
  const { at, length } = first;
  const from = at <= shownBefore ? 0 : text.indexOf(' ', at - shownBefore) + 1;
  const start = Math.min(from, at);
  const end = at + length;
  const mark = document.createElement('mark');
  mark.textContent = text.slice(at, end);
  return [
    `${start > 0 ? '… ' : ''}${text.slice(start, at)}`,
    mark,
    cut(text.slice(end, end + shownAfter), text.length > end + shownAfter),
  ];
}

const cut = (text: string, isCut: boolean) => (isCut ? `${text} …` : text);
