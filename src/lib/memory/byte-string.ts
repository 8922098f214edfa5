// Bytes as a string of one character each (latin1): what is cut in two by the network is whole again when
// joined, and Node writes such a string without a copy in between.

/** UTF-8 as a string of bytes. */
export function toBytes(text: string): string {
  return isAscii.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

export function fromBytes(bytes: string): string {
  return isAscii.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString('utf8');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
const isAscii = /^[\x00-\x7f]*$/;
