// Transfers a parsed body from one thread to another in pieces. The receiver deserializes each message on its event
// loop: a body with very many values would block it for a tenth of a second, but a piece takes a few milliseconds.

/** Maximum values per piece. With property names that V8 has not seen, each value takes up to two microseconds. */
const pieceValues = 4_000;

type Members = Record<string, unknown>;

/** Members to add to the array or object at a path of the body. */
export interface Piece {
  readonly path: readonly string[];
  readonly part: unknown[] | Members;
}

/** Yields the pieces in the order in which they must be added. */
export function* toPieces(body: Members): Generator<Piece> {
  const weights = new Map<unknown, number>();
  weigh(body, weights);
  yield* cut(body, [], weights);
}

function* cut(
  container: object,
  path: readonly string[],
  weights: ReadonlyMap<unknown, number>,
): Generator<Piece> {
  let part = emptyLike(container);
  let total = 0;
  for (const [name, member] of Object.entries(container)) {
    const weight = weights.get(member) ?? 1;
    const isHeavy = weight > pieceValues;
    if (total > 0 && (isHeavy || total + weight > pieceValues)) {
      yield { path, part };
      part = emptyLike(container);
      total = 0;
    }
    add(part, name, isHeavy ? emptyLike(member) : member);
    total += isHeavy ? 1 : weight;
    if (!isHeavy) continue;
    yield { path, part };
    part = emptyLike(container);
    total = 0;
    yield* cut(member as object, [...path, name], weights);
  }
  if (total > 0) yield { path, part };
}

/** Adds a piece to a body that started empty. */
export function addPiece(body: Members, { path, part }: Piece): void {
  const container = path.reduce<unknown>((node, name) => (node as Members)[name], body);
  for (const [name, member] of Object.entries(part)) add(container as Members, name, member);
}

const emptyLike = (container: unknown): unknown[] | Members => (Array.isArray(container) ? [] : {});

function add(container: unknown[] | Members, name: string, member: unknown): void {
  if (Array.isArray(container)) container.push(member);
  else if (name !== '__proto__') container[name] = member;
  // Assigning `__proto__` would set the object's prototype.
  else Object.defineProperty(container, name, { ...plain, value: member });
}

const plain = { configurable: true, enumerable: true, writable: true };

/** Counts the values of each container, including itself. */
function weigh(value: unknown, weights: Map<unknown, number>): number {
  if (typeof value !== 'object' || value === null) return 1;
  let weight = 1;
  for (const member of Object.values(value)) weight += weigh(member, weights);
  weights.set(value, weight);
  return weight;
}
