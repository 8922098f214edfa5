// What pages of the guide do besides being read: copy code, and open the search.

import './style.css';
import { copyText } from '../../src/browser/clipboard.ts';
import { addSearch } from './search.ts';

const copiedMs = 1500;

for (const code of document.querySelectorAll('.code')) code.append(createCopyButton(code));
addSearch();
// They do nothing without scripts.
for (const button of document.querySelectorAll<HTMLElement>('[data-needs-script]')) {
  button.hidden = false;
}
document.querySelector('#pages [aria-current]')?.scrollIntoView({ block: 'nearest' });

function createCopyButton(code: Element): HTMLButtonElement {
  const button = document.createElement('button');
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    const text = code.querySelector('pre')?.textContent ?? '';
    if (!(await copyText(text.trimEnd()))) return;
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, copiedMs);
  });
  return button;
}
