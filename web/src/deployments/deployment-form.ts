// The fields of the form for deployments, as the API takes them.

import type { DeploymentChange, DeploymentView } from '#deployments/ground/schema.ts';
import { parseTimeWindow, type TimeWindow } from '#lib/text/schedule-text.ts';
import { toFieldText } from '../browser/form-data.ts';
import { FieldProblem } from '../field-errors.ts';
import type { Engine } from './deployments.ts';

/** How the fields of an engine differ. An engine without a source or a program has no such field. */
export interface EngineFields {
  source?: Field;
  program?: Field;
}

interface Field {
  placeholder: string;
  required?: boolean;
}

const repository: Field = { placeholder: 'The model’s known repository' };

export const engineFields: Record<Engine, EngineFields> = {
  vllm: { source: repository, program: { placeholder: 'vllm' } },
  sglang: { source: repository, program: { placeholder: 'python3' } },
  'llama-server': {
    source: { placeholder: '/models/model.gguf', required: true },
    program: { placeholder: 'llama-server' },
  },
  builtin: { source: { placeholder: '/models/model.gguf' } },
  command: { program: { placeholder: '/usr/local/bin/engine', required: true } },
};

interface NumberField {
  name: 'min' | 'max' | 'target';
  label: string;
  description: string;
  /** The same as the API's default. */
  initial: number;
  min: number;
  max: number;
}

export const numberFields: readonly NumberField[] = [
  {
    name: 'min',
    label: 'Minimum replicas',
    description: 'They always run. 0 frees the GPU.',
    initial: 0,
    min: 0,
    max: 64,
  },
  {
    name: 'max',
    label: 'Maximum replicas',
    description: 'How many may run at once.',
    initial: 1,
    min: 1,
    max: 64,
  },
  {
    name: 'target',
    label: 'Requests per replica',
    description: 'Above it, another one starts.',
    initial: 8,
    min: 1,
    max: 10_000,
  },
];

interface LadderField {
  name: keyof DeploymentView['ladder'];
  label: string;
  description: string;
}

/** In the order in which a replica takes these steps. */
export const ladderFields: readonly LadderField[] = [
  {
    name: 'asleep',
    label: 'Sleep after (s)',
    description: 'An unused engine gives its memory back. Empty: never.',
  },
  {
    name: 'stopped',
    label: 'Stop after (s)',
    description: 'An unused engine ends, and its machine stays. Empty: never.',
  },
  {
    name: 'gone',
    label: 'Remove after (s)',
    description: 'An unused replica is removed. Empty: never.',
  },
];

/** The same as the API's. */
export const defaultLadder: DeploymentView['ladder'] = { asleep: null, stopped: null, gone: 600 };

type Settings = Required<
  Pick<
    DeploymentChange,
    | NumberField['name']
    | 'args'
    | 'source'
    | 'program'
    | 'image'
    | 'check_memory'
    | 'setup'
    | 'schedule'
    | 'ladder'
  >
> &
  Pick<DeploymentChange, 'env'>;

/** Throws a FieldProblem if a field can't be sent. An empty text is not set. An empty environment is omitted. */
export function parseSettings(form: FormData): Settings {
  const numbers = Object.fromEntries(
    numberFields.map(({ name }) => [name, Number(toFieldText(form, name))]),
  ) as Record<NumberField['name'], number>;
  if (numbers.min > numbers.max) {
    throw new FieldProblem('min', `Use at most ${numbers.max}, the maximum.`);
  }
  const env = parseEnvironment(toFieldText(form, 'env'));
  return {
    ...numbers,
    ladder: parseLadder(form),
    args: toLines(toFieldText(form, 'args')),
    check_memory: form.get('check_memory') !== null,
    schedule: toLines(toFieldText(form, 'schedule')).map(toWindow),
    source: toFieldText(form, 'source') || null,
    program: toFieldText(form, 'program') || null,
    image: toFieldText(form, 'image') || null,
    setup: toFieldText(form, 'setup') || null,
    ...(env === null && form.get('clear_env') === null ? {} : { env: env ?? {} }),
  };
}

/** Steps without a field, or with an empty one, are left out. */
function parseLadder(form: FormData): DeploymentView['ladder'] {
  const ladder = { ...defaultLadder };
  let longest = 0;
  for (const { name } of ladderFields) {
    const seconds = Number(toFieldText(form, name)) || null;
    if (seconds !== null && seconds <= longest)
      throw new FieldProblem(name, `Use more than ${longest}, the time of the step before.`);
    ladder[name] = seconds;
    longest = seconds ?? longest;
  }
  return ladder;
}

function toWindow(line: string): TimeWindow {
  const window = parseTimeWindow(line);
  if (window === undefined)
    throw new FieldProblem(
      'schedule',
      `“${line}” is not like mon-fri 08:00-18:00 2 Europe/Berlin.`,
    );
  return window;
}

/** Null if there is none. */
function parseEnvironment(text: string): Record<string, string> | null {
  const lines = toLines(text);
  if (lines.length === 0) return null;
  return Object.fromEntries(
    lines.map((line, index) => {
      const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/.exec(line) ?? [];
      if (name === undefined || value === undefined) {
        throw new FieldProblem('env', `Line ${index + 1} is not NAME=value.`);
      }
      return [name, value];
    }),
  );
}

const toLines = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
