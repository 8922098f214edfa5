// Scans JSON text that is known to be valid, without parsing it.

export const quote = 0x22;
export const backslash = 0x5c;

/** Returns the position after the closing quote of the string that begins at `from`. */
export function skipString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text.charCodeAt(at) !== quote)
    at += text.charCodeAt(at) === backslash ? 2 : 1;
  return at + 1;
}

export const isOpening = (code: number) => code === 0x7b || code === 0x5b;
export const isClosing = (code: number) => code === 0x7d || code === 0x5d;
