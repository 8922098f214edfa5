// The search of the guide: which sections have all words of a query, the best first.

/** The text from one heading of a page to the next. */
export interface Section {
  /** The page's title. */
  page: string;
  /** Empty for the text above the first heading. */
  heading: string;
  /** Relative to the guide. */
  address: string;
  text: string;
}

const maxResults = 20;
/** What a word is worth where it is found. A word in a heading says what the section is about. */
const inHeading = 10;
const inPage = 6;
const inText = 1;
/** The whole query is in one place as it was typed, or is the whole title. */
const phrase = 2;
const wholeTitle = 4;
const wordStart = 2;

export function findSections(sections: readonly Section[], query: string): Section[] {
  const words = toWords(query);
  if (words.length === 0) return [];
  return sections
    .map((section) => ({ section, score: rate(section, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, maxResults)
    .map(({ section }) => section);
}

export const toWords = (query: string): string[] =>
  query.toLowerCase().split(/\s+/).filter(Boolean);

/** 0 unless each word is somewhere in the section. */
function rate({ page, heading, text }: Section, words: readonly string[]): number {
  const places: [string, number][] = [
    [heading.toLowerCase(), inHeading],
    // The text above the first heading is about the page.
    [page.toLowerCase(), heading === '' ? inHeading : inPage],
    [text.toLowerCase(), inText],
  ];
  let score = 0;
  for (const word of words) {
    const found = places.map(([place, worth]) => worth * weigh(place, word));
    if (found.every((one) => one === 0)) return 0;
    score += found.reduce((sum, one) => sum + one, 0);
  }
  const whole = words.join(' ');
  const title = (heading === '' ? page : heading).toLowerCase();
  if (title === whole) return score * wholeTitle;
  const hasPhrase = words.length > 1 && places.some(([place]) => place.includes(whole));
  return hasPhrase ? score * phrase : score;
}

function weigh(place: string, word: string): number {
  const at = place.indexOf(word);
  if (at === -1) return 0;
  return at === 0 || !/[\p{L}\p{N}]/u.test(place[at - 1] as string) ? wordStart : 1;
}
