// Reads a vocabulary in hypertok's format.

export interface VocabularyFile {
  /** All tokens in the order of their ids, one after the other. */
  readonly bytes: Buffer;
  /** Where each token starts; the last entry is the end. */
  readonly starts: Uint32Array;
}

/** Numbers of the sections in the file. */
const tokenSection = 2;
const lengthSection = 3;

/** Throws if the file is in another format. */
export function readVocabularyFile(file: Buffer): VocabularyFile {
  if (file.toString('latin1', 0, 8) !== 'HTKVOCAB' || file.readUInt32LE(8) !== 1)
    throw new Error('the vocabulary is not in version 1 of its format');
  const count = file.readUInt32LE(16);
  const lengths = findSection(file, lengthSection);
  const starts = new Uint32Array(count + 1);
  let at = 0;
  for (let id = 0; id < count; id++) {
    let length = 0;
    // Seven bits a byte, the lowest first. The highest bit says that more follow.
    for (let shift = 0, isLast = false; !isLast; shift += 7) {
      const byte = lengths.readUInt8(at++);
      length |= (byte & 0x7f) << shift;
      isLast = byte < 0x80;
    }
    starts[id + 1] = (starts[id] ?? 0) + length;
  }
  return { bytes: findSection(file, tokenSection), starts };
}

function findSection(file: Buffer, wanted: number): Buffer {
  const sections = file.readUInt32LE(24);
  const table = file.readUInt32LE(28);
  for (let entry = table; entry < table + 16 * sections; entry += 16) {
    const offset = file.readUInt32LE(entry + 4);
    if (file.readUInt32LE(entry) === wanted)
      return file.subarray(offset, offset + file.readUInt32LE(entry + 8));
  }
  throw new Error(`the vocabulary has no section ${wanted}`);
}
