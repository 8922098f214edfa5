// Byte strings: bytes as a latin1 string, one character per byte. Characters that the network split across
// packets are whole again when the strings are joined, and Node writes such a string without an extra copy.

/** Encodes text as UTF-8 in a byte string. */
export function toBytes(text: string): string {
  return isAscii.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** Decodes a byte string that holds UTF-8. */
export function fromBytes(bytes: string): string {
  return isAscii.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches all of ASCII, control characters included.
const isAscii = /^[\x00-\x7f]*$/;
