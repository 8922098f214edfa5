// The text that a model gives to a custom tool, read from the arguments of the function that stands for the tool while
// they arrive: `{"input": "..."}` in pieces of any size.

const opening = '{"input":"';
/** Arguments with more white space before the text are read at their end: each piece of an opening is read again. */
const maxOpeningLength = 256;

export class CustomInput {
  /** Arguments that were not read yet. */
  #rest = '';
  /** `other`: the arguments have another form, which is known only at their end. */
  #state: 'opening' | 'text' | 'closed' | 'other' = 'opening';

  /** Returns the text that is known with this piece. */
  take(piece: string): string {
    if (this.#state === 'closed') return '';
    this.#rest += piece;
    if (this.#state === 'opening') this.#skipOpening();
    return this.#state === 'text' ? this.#readText() : '';
  }

  /** Returns the text that is left when the arguments are complete. */
  end(): string {
    const rest = this.#rest;
    this.#rest = '';
    // An escape that was cut off is left out.
    return this.#state === 'opening' || this.#state === 'other' ? toInput(rest) : '';
  }

  #skipOpening(): void {
    const found = /^\s*\{\s*"input"\s*:\s*"/.exec(this.#rest);
    if (found !== null) {
      this.#rest = this.#rest.slice(found[0].length);
      this.#state = 'text';
    } else if (this.#rest.length > maxOpeningLength || !isOpening(this.#rest))
      this.#state = 'other';
  }

  #readText(): string {
    const whole = /^(?:[^"\\]+|\\(?:[^u]|u[0-9a-fA-F]{4}))*/.exec(this.#rest)?.[0] ?? '';
    const next = this.#rest[whole.length];
    // What follows is the closing quote, an escape in two pieces, or one that JSON doesn't have.
    if (next === '"') this.#state = 'closed';
    const isBroken = next === '\\' && this.#rest.length - whole.length >= '\\u0000'.length;
    const text = isBroken ? this.#rest : whole;
    this.#rest = next === '"' ? '' : this.#rest.slice(text.length);
    return toPlain(text);
  }
}

const isOpening = (text: string) => opening.startsWith(text.replaceAll(/\s/g, ''));

function toPlain(text: string): string {
  if (!text.includes('\\')) return text;
  try {
    // Models write line breaks as they are now and then.
    return JSON.parse(`"${text.replaceAll(/\p{Cc}/gu, toEscape)}"`) as string;
  } catch {
    return text;
  }
}

const toEscape = (character: string) => JSON.stringify(character).slice(1, -1);

/** The only text in the arguments, or else the arguments as they are. */
function toInput(args: string): string {
  try {
    const value = JSON.parse(args) as unknown;
    const texts = typeof value === 'object' && value !== null ? Object.values(value) : [value];
    return texts.length === 1 && typeof texts[0] === 'string' ? texts[0] : args;
  } catch {
    return args;
  }
}
