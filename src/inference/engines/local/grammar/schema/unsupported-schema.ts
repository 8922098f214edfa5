// The only error that compiling a grammar throws: the schema demands what a grammar can't guarantee. `path` names
// the keyword that the client must change.

export class UnsupportedSchema extends Error {
  /** The keyword's place from the schema's root: `properties.a.not`. Empty for the schema as a whole. */
  readonly path: string;
  /** Empty when no single keyword is at fault. */
  readonly keyword: string;
  /** `path` without the keyword, to create the same error for an enclosing schema. */
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
