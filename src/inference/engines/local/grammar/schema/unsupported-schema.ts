// The one thing this folder throws: a schema that asks for what a grammar can't promise. Callers show
// `path` to the client, who can then change that keyword.

export class UnsupportedSchema extends Error {
  /** Where, from the schema's root: `properties.a.not`. Empty for the schema as a whole. */
  readonly path: string;
  /** Empty when no single keyword is at fault. */
  readonly keyword: string;
  /** The same without its keyword, and what is wrong, to say it again from further out. */
  readonly location: string;
  readonly reason: string;

  constructor(location: string, keyword: string, reason = 'is not supported') {
    const path = join(location, keyword);
    super(path ? `'${path}' ${reason}` : `the schema ${reason}`);
    this.name = 'UnsupportedSchema';
    this.path = path;
    this.keyword = keyword;
    this.location = location;
    this.reason = reason;
  }
}

export function join(location: string, segment: string | number): string {
  if (segment === '') return location;
  return location ? `${location}.${segment}` : String(segment);
}
