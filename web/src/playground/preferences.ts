// What the playground keeps in this browser: the last model, and whether chats are temporary. Never what was written.

export interface Preferences {
  model: string | null;
  /** True if new chats are not saved. */
  temporary: boolean;
}

const key = 'millrace.playground';
/** Versions up to 0.2 stored the conversation here. */
const oldKeys = /^millrace\.conversation\./;

export function loadPreferences(): Preferences {
  for (const name of Object.keys(localStorage)) {
    if (oldKeys.test(name)) localStorage.removeItem(name);
  }
  try {
    const { model, temporary } = JSON.parse(localStorage.getItem(key) ?? '{}');
    return { model: typeof model === 'string' ? model : null, temporary: temporary === true };
  } catch {
    return { model: null, temporary: false };
  }
}

export function storePreferences(preferences: Preferences): void {
  try {
    localStorage.setItem(key, JSON.stringify(preferences));
  } catch {
    // Storage is full or disabled. The preferences last until the page is closed.
  }
}
