// Copies text to the clipboard. Over plain HTTP, common on home and lab networks, browsers offer no clipboard
// object; the older copy command works there.

export async function copyText(text: string): Promise<boolean> {
  try {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return true;
    }
  } catch {
    // Denied, e.g. by a permission. The copy command may still work.
  }
  const focused = document.activeElement as HTMLElement | null;
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.className = 'visually-hidden';
  // An open dialog takes the focus back from elements outside of it, so the text area goes inside.
  (focused?.parentElement ?? document.body).append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return copied;
}
