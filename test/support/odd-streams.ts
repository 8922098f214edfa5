// Streams of upstreams, generated: what a model says, and the odd ways in which servers send it. Each comes with what
// every API must make of it.

import fc from 'fast-check';

export interface SaidCall {
  /** Empty if the server sends none. */
  id: string;
  name: string;
  arguments: string;
}

export interface OddStream {
  /** The whole stream. */
  sent: string;
  packetBytes: number;
  text: string;
  thoughts: string;
  /** In the order in which they began. */
  calls: SaidCall[];
  finish: string;
}

type Delta = Record<string, unknown>;

/** Not white space alone: Messages has no blocks of that. */
const saidText = fc.oneof(
  { weight: 1, arbitrary: fc.constant('') },
  {
    weight: 6,
    arbitrary: fc.string({ unit: 'grapheme', maxLength: 10 }).map((text) => `${text}.`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('"tool_calls":[{', '\n\ndata: [DONE]', '"finish_reason":"stop"'),
  },
);

const callArguments = fc.oneof(
  fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value)),
  fc.constantFrom('', '{}', 'not JSON', '{"cut":', '"text"', '5', 'null', '{"name":"index"}'),
);

/** How a server tells its calls apart. Without a number of its own, each piece has the id or calls follow each other. */
const numberings = ['index', 'no index', 'no index, ids', 'all zero', 'all zero, ids'] as const;
type Numbering = (typeof numberings)[number];

const cut = (text: string, lengths: readonly number[]): string[] => {
  let rest = text;
  const pieces = lengths.map((length) => {
    const piece = rest.slice(0, length);
    rest = rest.slice(length);
    return piece;
  });
  return [...pieces, rest];
};

interface Plan {
  calls: { args: string; lengths: number[] }[];
  others: { isThought: boolean; text: string }[];
  numbering: Numbering;
  hasIds: boolean;
  /** Which lane the next piece is of. */
  order: number[];
}

/** The deltas of each lane follow each other: those of the text, and those of each call. */
function toDeltas({ calls, others, numbering, hasIds, order }: Plan, thought: string): Delta[] {
  const repeatsId = numbering.endsWith('ids');
  const isAlone = numbering === 'no index' || numbering === 'all zero';
  const callLanes = calls.map(({ args, lengths }, number) =>
    cut(args, lengths).map((piece, at) => ({
      tool_calls: [
        {
          ...(numbering === 'index' && { index: number }),
          ...(numbering.startsWith('all zero') && { index: 0 }),
          ...((at === 0 || repeatsId) && hasIds && { id: `call_${number}`, type: 'function' }),
          function: { ...(at === 0 && { name: `tool_${number}` }), arguments: piece },
        },
      ],
    })),
  );
  const saidLane = others.map(({ isThought, text }) => ({
    [isThought ? thought : 'content']: text,
  }));
  const lanes: Delta[][] = isAlone ? [callLanes.flat(), saidLane] : [...callLanes, saidLane];
  const deltas: Delta[] = [];
  for (let at = 0; lanes.some((lane) => lane.length > 0); at++) {
    const left = lanes.filter((lane) => lane.length > 0);
    const lane = left[(order[at % order.length] ?? 0) % left.length];
    deltas.push(lane?.shift() ?? {});
  }
  return deltas;
}

const inOrder = (deltas: readonly Delta[], calls: readonly SaidCall[]): SaidCall[] => {
  const names = deltas.flatMap(({ tool_calls }) =>
    ((tool_calls ?? []) as { function: { name?: string } }[]).map((call) => call.function.name),
  );
  return calls.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
};

const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };

/** What stands between the events that say something. */
const fillers = [
  '',
  ': comment\n\n',
  'data: null\n\n',
  'event: noise\n\n',
  `data: ${JSON.stringify({ id: 'x', created: 1, choices: [] })}\n\n`,
  `data: ${JSON.stringify({ id: 'x', created: 1, choices: [], usage })}\n\n`,
  `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta: null, finish_reason: null }] })}\n\n`,
  `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, finish_reason: '' }] })}\n\n`,
  `data: ${JSON.stringify({ id: 'x', choices: [null, { delta: { content: null, tool_calls: null } }] })}\n\n`,
  `data: ${JSON.stringify({ id: 'x', choices: [{ delta: { tool_calls: [] }, finish_reason: null }], usage })}\n\n`,
];

const toEvent = (choices: unknown, isSpaced: boolean, more: object = {}): string => {
  const event = {
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices,
    ...more,
  };
  const text = JSON.stringify(event, null, isSpaced ? 1 : 0);
  return `data: ${isSpaced ? text.replaceAll(/\n */g, ' ') : text}\n\n`;
};

/** Servers put the last words into the event that finishes, or send an event for that. Some finish twice. */
const endings = ['apart', 'with the last', 'twice', 'with usage'] as const;

const plan: fc.Arbitrary<Plan> = fc.record({
  calls: fc.array(
    fc.record({ args: callArguments, lengths: fc.array(fc.nat(12), { maxLength: 4 }) }),
    { maxLength: 4 },
  ),
  others: fc.array(fc.record({ isThought: fc.boolean(), text: saidText }), { maxLength: 10 }),
  numbering: fc.constantFrom(...numberings),
  hasIds: fc.boolean(),
  order: fc.array(fc.nat(), { minLength: 30, maxLength: 30 }),
});

export const oddStream: fc.Arbitrary<OddStream> = fc
  .record({
    plan,
    fill: fc.array(fc.nat(fillers.length * 2), { minLength: 12, maxLength: 12 }),
    thought: fc.constantFrom('reasoning_content', 'reasoning'),
    isSpaced: fc.boolean(),
    hasRole: fc.boolean(),
    finish: fc.constantFrom('stop', 'length', 'tool_calls', 'content_filter'),
    ending: fc.constantFrom(...endings),
    packetBytes: fc.integer({ min: 1, max: 400 }),
  })
  .map((given) => {
    const { isSpaced, finish, ending, fill, packetBytes } = given;
    // Only ids tell calls of the same number apart.
    const hasIds =
      given.plan.hasIds ||
      given.plan.numbering.includes('zero') ||
      given.plan.numbering.endsWith('ids');
    const deltas = toDeltas({ ...given.plan, hasIds }, given.thought);
    const filler = (at: number) => fillers[fill[at % fill.length] ?? 0] ?? '';
    const lastDelta = ending === 'with the last' ? deltas.length - 1 : -1;
    const events = deltas.map(
      (delta, at) =>
        filler(at) +
        toEvent(
          [{ index: 0, delta, logprobs: null, finish_reason: at === lastDelta ? finish : null }],
          isSpaced,
        ),
    );
    const role = { index: 0, delta: { role: 'assistant', content: null }, finish_reason: null };
    const end = [{ index: 0, delta: {}, logprobs: null, finish_reason: finish }];
    const late = [{ index: 0, delta: { content: 'too late' }, finish_reason: 'stop' }];
    const text = [
      given.hasRole ? toEvent([role], isSpaced) : '',
      ...events,
      lastDelta === -1 ? toEvent(end, isSpaced, ending === 'with usage' ? { usage } : {}) : '',
      ending === 'twice' ? toEvent(late, isSpaced) : '',
      ending === 'with usage' ? '' : toEvent([], isSpaced, { usage }),
      'data: [DONE]\n\n',
    ].join('');
    const calls = given.plan.calls.map(({ args }, number) => ({
      id: hasIds ? `call_${number}` : '',
      name: `tool_${number}`,
      arguments: args,
    }));
    const said = (isThought: boolean) =>
      given.plan.others.map((one) => (one.isThought === isThought ? one.text : '')).join('');
    return {
      sent: text,
      packetBytes,
      text: said(false),
      thoughts: said(true),
      calls: inOrder(deltas, calls),
      finish,
    };
  });
